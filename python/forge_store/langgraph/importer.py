"""Takes over the threads of LangGraph's SqliteSaver and PostgresSaver.

It does not write to the source, and does not construct any of its values: values that only LangGraph
can read are stored as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .. import Invalid, NotFound, Shards, Store, Unavailable
from .._import_source import postgres_connection
from .._values import refusal
from .saver import ForgeSaver

_Query = Callable[..., Sequence[tuple[Any, ...]]]


@dataclass
class Imported:
    """What an import saved. Threads and checkpoints that were there before are not counted."""

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    """The pending writes."""
    known: int = 0
    """The checkpoints that were there before."""
    bytes_there: int = 0
    """The size of the tables of the source, with everything in them."""
    bytes_here: int = 0
    """By how much the folder of the store grew; 0 for one without a folder."""

    def to_dict(self) -> dict[str, int]:
        """The fields by name."""
        return asdict(self)


class _Opaque:
    """A value in an encoding that the import does not decode."""

    def __init__(self, encoding: str, data: bytes) -> None:
        self.typed = (encoding, data)


class _CarryingSerializer(JsonPlusSerializer):
    """Reads and writes values without constructing what only LangGraph or the program knows."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        encoding, stored = data
        if encoding == "msgpack":
            option = ormsgpack.OPT_NON_STR_KEYS
            return ormsgpack.unpackb(stored, ext_hook=ormsgpack.Ext, option=option)
        if encoding in ("null", "bytes", "bytearray"):
            return super().loads_typed(data)
        return _Opaque(encoding, stored)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return obj.typed if isinstance(obj, _Opaque) else super().dumps_typed(obj)


@dataclass
class ThreadSource:
    """Threads that another saver keeps."""

    saver: BaseCheckpointSaver[Any]
    query: _Query
    """Runs a query with ``?`` for each argument."""
    writes: str
    """The table of the pending writes."""
    has_paths: bool
    """Whether that table has the paths of tasks."""
    bytes: int


@contextmanager
def sqlite_source(path: str | Path) -> Generator[ThreadSource]:
    """Opens a database of SqliteSaver, for reading."""
    module = _saver_module("sqlite", "langgraph-checkpoint-sqlite")
    file = Path(path).resolve()
    if not file.is_file():
        raise refusal(NotFound, f"there is no file '{path}'", "name the database of SqliteSaver")
    address = f"{file.as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:

        def query(text: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
            return connection.execute(text, arguments).fetchall()

        try:
            columns = {row[1] for row in query("PRAGMA table_info(writes)")}
            encodings = [row[0] for row in query("SELECT DISTINCT type FROM checkpoints")]
        except sqlite3.Error as error:
            what = f"'{path}' is not a database of SqliteSaver: {error}"
            raise refusal(Invalid, what, "name another") from error
        for encoding in encodings:
            if encoding != "msgpack":
                what = f"'{path}' has checkpoints that are stored as '{encoding}'"
                raise refusal(Invalid, what, "let LangGraph store them as msgpack first")
        saver = module.SqliteSaver(connection, serde=_CarryingSerializer())
        # The tables are not created, because the database is only read.
        saver.is_setup, saver._has_task_path = True, "task_path" in columns
        files = (file, file.with_name(f"{file.name}-wal"))
        size = sum(one.stat().st_size for one in files if one.exists())
        yield ThreadSource(saver, query, "writes", "task_path" in columns, size)


@contextmanager
def postgres_source(address: str) -> Generator[ThreadSource]:
    """Opens a database of PostgresSaver, for reading."""
    module = _saver_module("postgres", "langgraph-checkpoint-postgres 'psycopg[binary]'")
    with postgres_connection(address, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = on")

        def query(text: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
            rows = connection.execute(text.replace("?", "%s"), arguments).fetchall()
            return [tuple(row.values()) for row in rows]

        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        sizes = [query("SELECT pg_total_relation_size(to_regclass(?))", name) for name in tables]
        if any(size == [(None,)] for size in sizes):
            what = "the database has no tables of PostgresSaver"
            raise refusal(Invalid, what, "name another, or its schema in options")
        saver = module.PostgresSaver(connection, serde=_CarryingSerializer())
        yield ThreadSource(saver, query, "checkpoint_writes", True, sum(size[0][0] for size in sizes))


def import_threads(source: ThreadSource, store: Store | Shards) -> Imported:
    """Takes over all threads with their checkpoints, namespaces, writes and metadata.

    The store, or the shards, must be opened with ``redact=False``, as `ForgeSaver.from_path` does.

    What is already in the store is not changed, so a second import saves only what is new, and
    continues an interrupted one.
    """
    target = ForgeSaver(store, serde=_CarryingSerializer())
    done, before = Imported(bytes_there=source.bytes), _size(store)
    for (thread,) in source.query("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1"):
        graphs = target._graphs_of(thread)
        is_new = not graphs.find(thread)
        versions: dict[tuple[str, str], ChannelVersions] = {}
        for namespace, checkpoint_id, parent in _in_order(source, thread):
            config = _config(thread, namespace, checkpoint_id)
            found = source.saver.get_tuple(config)
            if found is None:
                continue  # It was deleted since the import began.
            versions[namespace, checkpoint_id] = found.checkpoint["channel_versions"]
            is_known = bool(graphs.find(thread, namespace, checkpoint_id))
            # The writes are stored first, so that a stored checkpoint has all of them.
            done.writes += _take_writes(source, target, found)
            if is_known:
                done.known += 1
                continue
            known = versions.get((namespace, parent or ""), {})
            current = found.checkpoint["channel_versions"]
            new = {name: one for name, one in current.items() if known.get(name) != one}
            after = _config(thread, namespace, parent)
            target.put(after, found.checkpoint, found.metadata, new)
            done.checkpoints += 1
        done.threads += is_new
    done.bytes_here = max(0, _size(store) - before)
    return done


def _in_order(source: ThreadSource, thread: str) -> Iterator[tuple[str, str, str | None]]:
    """The checkpoints of a thread, the oldest first, and each after its parent."""
    rows = source.query(
        "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints "
        "WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns",
        thread,
    )
    left = {(namespace, id): parent or None for namespace, id, parent in rows}
    for first in list(left):
        line = [first] if first in left else []
        while line:
            parent = left[line[-1]]
            before = (line[-1][0], parent or "")
            # The second condition ends a cycle of parents.
            if before not in left or before in line:
                break
            line.append(before)
        for namespace, id in reversed(line):
            yield namespace, id, left.pop((namespace, id))


def _take_writes(source: ThreadSource, target: ForgeSaver, found: CheckpointTuple) -> int:
    """Stores the pending writes of a checkpoint that are not stored yet; returns their number."""
    wanted = cast("dict[str, str]", found.config.get("configurable"))
    address = (wanted["thread_id"], wanted["checkpoint_ns"], wanted["checkpoint_id"])
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in found.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    if not tasks:
        return 0
    stored = target._graphs_of(address[0]).get(*address)
    known = [] if stored is None else [(task, channel) for task, channel, _ in stored[6]]
    given = [(task, channel) for task, writes in tasks.items() for channel, _ in writes]
    if sorted(known) == sorted(given):
        return 0
    paths: dict[str, str] = {}
    if source.has_paths:
        rows = source.query(
            f"SELECT task_id, task_path FROM {source.writes} "
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            *address,
        )
        paths = {task: path for task, path in rows}
    for task, writes in tasks.items():
        target.put_writes(found.config, writes, task, paths.get(task, ""))
    return len(given) - len(known)


def _config(thread: str, namespace: str, checkpoint_id: str | None) -> RunnableConfig:
    where = {"thread_id": thread, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        where["checkpoint_id"] = checkpoint_id
    return {"configurable": where}


def _saver_module(name: str, packages: str) -> Any:
    try:
        return import_module(f"langgraph.checkpoint.{name}")
    except ImportError as error:
        what = f"the saver of LangGraph for this database is not installed: {error}"
        raise refusal(Unavailable, what, f"install it with: pip install {packages}") from error


def _size(store: Store | Shards) -> int:
    if isinstance(store, Shards) or store.path is None:
        return 0
    return sum(file.stat().st_size for file in Path(store.path).rglob("*") if file.is_file())
