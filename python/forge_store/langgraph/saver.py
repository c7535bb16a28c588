"""The checkpoint saver."""

from __future__ import annotations

import asyncio
import builtins
import random
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from os import PathLike
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .. import Conflict, Invalid, Shards, Store, in_memory
from .. import open as open_store
from .._closing import Closing
from .._forge import Graphs
from .._store import native_of
from .._values import listed, refusal
from . import lease

#: The field of metadata that names the channels whose state is made from the writes of tasks.
_DELTA = "counters_since_delta_snapshot"

#: The prefix of a channel that triggers a node.
_TRIGGER = "branch:to:"

#: How many checkpoints a list reads before it returns the first of them.
_PAGE = 32

_Typed = tuple[str, bytes]


class ForgeSaver(Closing, BaseCheckpointSaver[Any]):
    """A LangGraph checkpoint saver that keeps threads in a forge store.

    It works with sync and async graphs, any number of threads, and any number of processes on one
    store. With shards, the id of a thread chooses its shard. Without a store, everything is kept in
    memory.

    `on_fork` says what happens if a checkpoint is put after one that another checkpoint already
    follows, for example after going back in time, or if two workers run one thread: `"branch"`
    begins a branch, `"raise"` raises `Conflict` and writes nothing.

    >>> from forge_store.langgraph import ForgeSaver
    >>> with ForgeSaver() as saver:
    ...     print(saver.get_tuple({"configurable": {"thread_id": "none"}}))
    None
    """

    def __init__(
        self,
        store: Store | Shards | None = None,
        *,
        serde: SerializerProtocol | None = None,
        on_fork: Literal["branch", "raise"] = "branch",
    ) -> None:
        super().__init__(serde=serde)
        if on_fork not in ("branch", "raise"):
            raise ValueError(f"on_fork={on_fork!r} is unknown: use 'branch' or 'raise'")
        if store is not None and not isinstance(store, Shards):
            native_of(store)
        self._owned = store is None
        self._place = in_memory(redact=False) if store is None else store
        self.on_fork = on_fork
        self._seen = _LastSteps()

    @property
    def store(self) -> Store:
        """The store, unless the threads are in shards."""
        if isinstance(self._place, Shards):
            raise refusal(Invalid, "the threads are in shards", "use the store that of(ID) returns")
        return self._place

    @classmethod
    @contextmanager
    def from_path(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        encrypted: bool = False,
        serde: SerializerProtocol | None = None,
        on_fork: Literal["branch", "raise"] = "branch",
    ) -> Generator[ForgeSaver]:
        """Opens or creates the store at a path, and closes it at the end.

        Secrets are not removed from what is stored, because a graph must get back exactly what
        it put.
        """
        store = open_store(path, create=True, redact=False, encrypted=encrypted)
        saver = cls(store, serde=serde, on_fork=on_fork)
        saver._owned = True
        with saver:
            yield saver

    def close(self) -> None:
        """Closes the store, if the saver opened it."""
        if self._owned:
            self._place.close()

    def writing(self, thread_id: str, *, wait: float = 30) -> AbstractContextManager[None]:
        """Lets one writer at a time into a thread: `with saver.writing("tea"): graph.invoke(...)`.

        The lease is valid across threads and processes, and ends with the process that has it, even if
        the process is killed. A second writer waits at most `wait` seconds, and then gets `Locked`.
        Writers that do not ask for the lease are not stopped. A thread cannot have it twice.
        """
        thread = _thread(thread_id)
        return lease.writing(self._store_of(thread), thread, wait)

    def awriting(self, thread_id: str, *, wait: float = 30) -> AbstractAsyncContextManager[None]:
        """The same as `writing`, for `async with`; waiting does not block the event loop."""
        thread = _thread(thread_id)
        return lease.awriting(self._store_of(thread), thread, wait)

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint after the one in `config`, and returns its own config."""
        thread, namespace, parent = _address(config)
        values = checkpoint["channel_values"]
        head = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        described: dict[str, Any] = dict(get_checkpoint_metadata(config, metadata))
        notes = self._notes(thread, namespace, parent, checkpoint, described)
        stored_head, stored_metadata = self._dumps(head), self._dumps(described)
        given: dict[str, _Typed] = {
            name: self._dumps_channel(name, values[name])
            for name in checkpoint["channel_versions"]
            if name in new_versions and name in values
        }
        graphs = self._graphs_of(thread)
        while True:
            channels = [
                (name, _version(version), name in new_versions, name in values, given.get(name))
                for name, version in checkpoint["channel_versions"].items()
            ]
            with _naming_largest(given.items()):
                written, needed = graphs.put(
                    thread,
                    namespace,
                    checkpoint["id"],
                    parent,
                    stored_head,
                    stored_metadata,
                    channels,
                    notes,
                    self.on_fork == "raise",
                )
            if written is not None:
                break
            if not needed:
                what = f"another checkpoint follows '{parent}' in thread '{thread}' already"
                next = "read the latest one and go on from there, or use on_fork='branch'"
                raise refusal(Conflict, what, next)
            given.update((name, self._dumps_channel(name, values[name])) for name in needed)
        self._seen.note(thread, namespace, checkpoint)
        return _config(_wanted(config)["thread_id"], namespace, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint, which need not be there yet."""
        thread, namespace, checkpoint_id = _address(config)
        if checkpoint_id is None:
            raise ValueError("put_writes needs a checkpoint_id in config['configurable']")
        rows = [
            (WRITES_IDX_MAP.get(channel, place), channel, self._dumps_channel(channel, value))
            for place, (channel, value) in enumerate(writes)
        ]
        if rows:
            graphs = self._graphs_of(thread)
            with _naming_largest((channel, value) for _, channel, value in rows):
                graphs.put_writes(thread, namespace, checkpoint_id, task_id, task_path, rows)

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint of `config`; without a checkpoint_id, the latest one."""
        thread, namespace, checkpoint_id = _address(config)
        found = self._graphs_of(thread).get(thread, namespace, checkpoint_id)
        return None if found is None else self._tuple(_wanted(config)["thread_id"], found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Returns checkpoints, the newest first. No lock is held while the caller pauses."""
        for page in self._pages(config, filter, before, limit):
            yield from page()

    def _pages(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[Callable[[], Sequence[CheckpointTuple]]]:
        """Returns what reads the pages of a list, one after the other, up to the limit."""
        wanted = {} if config is None else _wanted(config)
        thread = None if config is None else _thread(wanted.get("thread_id"))
        names = [
            name
            for store in (self._stores() if thread is None else [self._store_of(thread)])
            for name in Graphs(store.native).find(
                thread,
                wanted.get("checkpoint_ns"),
                wanted.get("checkpoint_id") or None,
                (get_checkpoint_id(before) or None) if before else None,
            )
        ]
        # The checkpoints of one store are already in order.
        names.sort(key=lambda name: name[2], reverse=True)
        left = len(names) if limit is None else limit

        def read(part: Sequence[tuple[str, str, str]]) -> Sequence[CheckpointTuple]:
            nonlocal left
            found: builtins.list[CheckpointTuple] = []
            for of, namespace, checkpoint_id in part:
                if left <= 0:
                    break
                stored = self._graphs_of(of).get(of, namespace, checkpoint_id)
                if stored is None:
                    continue  # It was dropped since the list began.
                if filter:
                    metadata = self.serde.loads_typed(stored[4])
                    if any(metadata.get(key) != value for key, value in filter.items()):
                        continue
                found.append(self._tuple(of, stored))
                left -= 1
            return found

        for start in range(0, len(names), _PAGE):
            if left <= 0:
                return
            part = names[start : start + _PAGE]
            yield lambda part=part: read(part)  # type: ignore[misc]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns what was written to channels before a checkpoint, and the values it began with."""
        if not channels:
            return {}
        thread, namespace, checkpoint_id = _address(config)
        found = self._graphs_of(thread).history(thread, namespace, checkpoint_id, [*channels])
        histories: dict[str, DeltaChannelHistory] = {}
        for name, (writes, seed) in found.items():
            loaded = [(task, name, self.serde.loads_typed(value)) for task, value in writes]
            history: DeltaChannelHistory = {"writes": loaded}
            if seed is not None:
                history["seed"] = self.serde.loads_typed(seed)
            histories[name] = history
        return histories

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Drops a thread with all its namespaces."""
        thread = _thread(thread_id)
        self._graphs_of(thread).delete_thread(thread)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Drops the checkpoints of these runs and their writes, in all threads."""
        runs = [str(run) for run in listed("run_ids", run_ids)]
        for store in self._stores():
            Graphs(store.native).delete_for_runs(runs)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread with everything in it."""
        source, target = _thread(source_thread_id), _thread(target_thread_id)
        is_near = self._store_of(source) is self._store_of(target)
        other = None if is_near else self._graphs_of(target)
        self._graphs_of(source).copy_thread(source, target, other)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drops all checkpoints of threads but the latest of each namespace, or the threads.

        Channels whose state is made from the writes of tasks keep it.
        """
        threads = [_thread(thread) for thread in listed("thread_ids", thread_ids)]
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy={strategy!r} is unknown: use 'keep_latest' or 'delete'")
        for thread in threads:
            self._graphs_of(thread).prune([thread], strategy)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Returns the version after `current`: a whole number, or a text if `current` is a text."""
        if isinstance(current, str):
            # A thread that another saver began.
            return f"{int(current.split('.')[0]) + 1:032}.{random.random():016}"
        return 1 if current is None else int(current) + 1

    # The same for graphs that are run with asyncio

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Does the same as `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Does the same as `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Does the same as `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Does the same as `list`."""
        pages = self._pages(config, filter, before, limit)
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            for one in await asyncio.to_thread(page):
                yield one

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Does the same as `get_delta_channel_history`."""
        return await asyncio.to_thread(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )

    async def adelete_thread(self, thread_id: str) -> None:
        """Does the same as `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Does the same as `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Does the same as `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Does the same as `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # Helpers

    def _store_of(self, thread: str) -> Store:
        return self._place.of(thread) if isinstance(self._place, Shards) else self._place

    def _stores(self) -> builtins.list[Store]:
        return self._place.all() if isinstance(self._place, Shards) else [self._place]

    def _graphs_of(self, thread: str) -> Graphs:
        return Graphs(self._store_of(thread).native)

    def _dumps(self, value: Any) -> _Typed:
        encoding, data = self.serde.dumps_typed(value)
        return encoding, bytes(data)

    def _dumps_channel(self, channel: str, value: Any) -> _Typed:
        try:
            return self._dumps(value)
        except Exception as error:
            _add_note(error, f"this happened to the value of the channel '{channel}'")
            raise

    def _tuple(self, thread: Any, stored: Any) -> CheckpointTuple:
        namespace, checkpoint_id, parent, head, metadata, channels, writes = stored
        load = self.serde.loads_typed
        checkpoint = {
            **load(head),
            "channel_values": {name: load(value) for name, value in channels},
        }
        return CheckpointTuple(
            config=_config(thread, namespace, checkpoint_id),
            checkpoint=checkpoint,  # type: ignore[arg-type]
            metadata=load(metadata),
            parent_config=None if parent is None else _config(thread, namespace, parent),
            pending_writes=[(task, channel, load(value)) for task, channel, value in writes],
        )

    def _notes(
        self,
        thread: str,
        namespace: str,
        parent: str | None,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
    ) -> tuple[str, str | None, int | None, str | None, str | None, builtins.list[str]]:
        """Returns what people see of a checkpoint, and what finds it."""
        source, step, run = (metadata.get(name) for name in ("source", "step", "run_id"))
        root = _entries(metadata.get("parents")).get("") if namespace else None
        step = step if isinstance(step, int) and not isinstance(step, bool) else None
        source = source if isinstance(source, str) else None
        ran = self._seen.ran(thread, namespace, parent, checkpoint)
        words = f"step {step}" if step is not None else source or "step"
        if source is not None and source != "loop" and step is not None:
            words = f"{words}: {source}"
        elif ran:
            words = f"{words}: {', '.join(ran)}"
        following = [
            name.removeprefix(_TRIGGER)
            for name in checkpoint.get("updated_channels") or ()
            if name.startswith(_TRIGGER)
        ]
        if following:
            words = f"{words} -> {', '.join(following)}"
        return (
            words,
            source,
            step,
            None if run is None else str(run),
            root if isinstance(root, str) else None,
            builtins.list(_entries(metadata.get(_DELTA))),
        )


class _LastSteps:
    """What the nodes of the last checkpoints had seen, to say which of them ran since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, str, str], Mapping[str, Any]] = OrderedDict()

    def note(self, thread: str, namespace: str, checkpoint: Checkpoint) -> None:
        with self._lock:
            self._seen[thread, namespace, checkpoint["id"]] = dict(checkpoint["versions_seen"])
            while len(self._seen) > 256:
                self._seen.popitem(last=False)

    def ran(
        self, thread: str, namespace: str, parent: str | None, checkpoint: Checkpoint
    ) -> Sequence[str]:
        if parent is None:
            return []
        with self._lock:
            known = self._seen.get((thread, namespace, parent))
        if known is None:
            return []
        seen = checkpoint["versions_seen"]
        return [
            name
            for name, versions in seen.items()
            if not name.startswith("__") and known.get(name) != versions
        ]


@asynccontextmanager
async def checkpointer() -> AsyncGenerator[ForgeSaver]:
    """Opens the saver for `langgraph.json`: the store that forge finds from the current folder.

    `{"checkpointer": {"path": "forge_store.langgraph:checkpointer"}}`
    """
    opened = await asyncio.to_thread(lambda: open_store(create=True, redact=False))
    saver = ForgeSaver(opened)
    saver._owned = True
    async with saver:
        yield saver


def _address(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Returns the thread, the namespace and the checkpoint of a config."""
    wanted = _wanted(config)
    namespace = wanted.get("checkpoint_ns")
    checkpoint_id = get_checkpoint_id(config)
    return _thread(wanted.get("thread_id")), namespace or "", checkpoint_id or None


def _thread(id: Any) -> str:
    """Returns the id of a thread. `None` would be the thread 'None', of all that have no id."""
    if id is None:
        raise ValueError("the thread_id is None or missing: give config['configurable'] one")
    return str(id)


def _add_note(error: Exception, text: str) -> None:
    """Adds a note, which Python 3.11 shows; the exception itself passes through unchanged."""
    note = getattr(error, "add_note", None)
    if note is not None:
        note(text)


@contextmanager
def _naming_largest(values: Iterable[tuple[str, _Typed]]) -> Generator[None]:
    """Notes in a refusal which channel has the largest value, because it may be too large."""
    try:
        yield
    except Invalid as error:
        for size, channel in sorted((len(data), channel) for channel, (_, data) in values)[-1:]:
            _add_note(error, f"the largest value, {size} bytes, is of the channel '{channel}'")
        raise


def _entries(value: Any) -> dict[str, Any]:
    """Returns a value of metadata if it is a dictionary, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _wanted(config: RunnableConfig) -> dict[str, Any]:
    """Returns what a config selects."""
    return config.get("configurable", {})


def _config(thread: Any, namespace: str, checkpoint_id: str) -> RunnableConfig:
    where = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": where}


def _version(version: Any) -> str:
    """Returns a version as text that tells numbers from text."""
    return f"'{version}" if isinstance(version, str) else repr(version)
