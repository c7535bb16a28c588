"""The saver on stores in a PostgreSQL database: on one, and on several of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import forge_store
import pytest
import test_delta_laws
from forge_store import Shards
from forge_store.langgraph import ForgeSaver, ForgeStore, importer
from postgres import PostgresServer
from saver_steps import config, put
from test_postgres import connections
from test_processes import in_child

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

THREADS = [f"thread {number}" for number in range(12)]


@pytest.fixture
def shards(database: str) -> Iterator[Shards]:
    with forge_store.open_shards(
        database, name="threads", shards=4, create=True, redact=False
    ) as shards:
        yield shards


@pytest.fixture
def saver(shards: Shards) -> ForgeSaver:
    return ForgeSaver(shards)


def ids(found: Any) -> list[str]:
    return [one.config["configurable"]["checkpoint_id"] for one in found]


def fill(saver: ForgeSaver) -> list[str]:
    """Three checkpoints in each thread, whose ids take turns; returns the ids."""
    made = []
    for step in range(3):
        for place, thread in enumerate(THREADS):
            id, parent = f"{step}-{place:02}", f"{step - 1}-{place:02}" if step else None
            described = {"step": step, "run_id": f"run {place % 2}"}
            put(saver, id, {"c": id}, thread=thread, parent=parent, metadata=described)
            saver.put_writes(config(thread, step=id), [("c", "written")], "task")
            made.append(id)
    return made


def test_a_thread_is_in_the_shard_of_its_id(saver: ForgeSaver, shards: Shards) -> None:
    fill(saver)
    assert sum(bool(store.sessions()) for store in shards.all()) > 1
    for place, thread in enumerate(THREADS):
        assert thread in [info.name for info in shards.of(thread).sessions()]
        latest = saver.get_tuple(config(thread))
        assert latest is not None and latest.checkpoint["channel_values"] == {"c": f"2-{place:02}"}
        assert latest.pending_writes == [("task", "c", "written")]
        assert len(ids(saver.list(config(thread)))) == 3
    odd = "no valid name \n" * 40
    put(saver, "1", {"c": 1}, thread=odd)
    assert ids(saver.list(config(odd))) == ["1"]


def test_a_list_of_all_threads_is_in_order(saver: ForgeSaver) -> None:
    made = sorted(fill(saver), reverse=True)
    assert ids(saver.list(None)) == made
    assert ids(saver.list(None, limit=15)) == made[:15]
    before: Any = {"configurable": {"checkpoint_id": "1-05"}}
    assert ids(saver.list(None, before=before, limit=4)) == ["1-04", "1-03", "1-02", "1-01"]
    assert ids(saver.list(None, filter={"step": 0})) == made[-12:]

    async def listed() -> list[str]:
        return ids([one async for one in saver.alist(None)])

    assert asyncio.run(listed()) == made


def test_forgetting_reaches_all_shards(saver: ForgeSaver, shards: Shards) -> None:
    made = sorted(fill(saver), reverse=True)
    saver.delete_for_runs(["run 1"])
    left = [id for id in made if int(id[2:]) % 2 == 0]
    assert ids(saver.list(None)) == left
    saver.prune(THREADS)
    assert ids(saver.list(None)) == left[:6]
    asyncio.run(saver.aprune(THREADS[:2], strategy="delete"))
    saver.delete_thread(THREADS[2])
    assert ids(saver.list(None)) == left[:4]
    shards.of(THREADS[2]).restore_session(THREADS[2], "graph")
    assert ids(saver.list(None)) == left[:5]


def test_a_copy_in_another_shard_has_everything(saver: ForgeSaver, shards: Shards) -> None:
    fill(saver)
    own_shard = shards.of(THREADS[0])
    target = next(name for name in map(str, range(99)) if shards.of(name) is not own_shard)
    for _ in range(2):
        saver.copy_thread(THREADS[0], target)
        for own, copy in zip(saver.list(config(THREADS[0])), saver.list(config(target)), strict=True):
            assert own.checkpoint == copy.checkpoint and own.metadata == copy.metadata
            assert own.pending_writes == copy.pending_writes


@pytest.mark.parametrize("seed", range(4))
def test_states_stay_what_they_were_in_copies(saver: ForgeSaver, seed: int) -> None:
    test_delta_laws.test_states_stay_what_they_were(saver, seed)


def test_there_is_no_single_store_and_no_lease(saver: ForgeSaver, shards: Shards) -> None:
    with pytest.raises(forge_store.Invalid, match="in shards"):
        saver.store  # noqa: B018
    with pytest.raises(forge_store.Invalid, match="on_fork='raise'"):
        with saver.writing("tea"):
            pass
    strict = ForgeSaver(shards, on_fork="raise")
    put(saver, "1", {"c": 1})
    put(saver, "2", {"c": 2}, parent="1")
    with pytest.raises(forge_store.Conflict):
        put(strict, "3", {"c": 3}, parent="1")


def test_processes_put_into_the_same_threads(saver: ForgeSaver, database: str) -> None:
    program = """
        import sys, forge_store
        sys.path[:0] = sys.argv[3:]
        from forge_store.langgraph import ForgeSaver
        from saver_steps import put
        with forge_store.open_shards(sys.argv[1], name="threads") as shards:
            saver, worker = ForgeSaver(shards), sys.argv[2]
            for step in range(10):
                parent = f"{worker}{step - 1}" if step else None
                put(saver, f"{worker}{step}", {"c": [worker] * 40 + [step]}, parent=parent)
        """
    command = [sys.executable, "-c", textwrap.dedent(program), database]
    running = [
        subprocess.Popen([*command, worker, str(Path(__file__).parent)]) for worker in "ab"
    ]
    assert [one.wait() for one in running] == [0, 0]
    assert len(ids(saver.list(config()))) == 20
    for worker in "ab":
        last = saver.get_tuple(config(step=f"{worker}9"))
        assert last is not None and last.checkpoint["channel_values"]["c"] == [worker] * 40 + [9]


def test_a_forked_worker_uses_the_saver_of_its_parent(saver: ForgeSaver) -> None:
    put(saver, "1", {"c": 1})

    def child() -> str:
        put(saver, "2", {"c": 2}, parent="1")
        return ",".join(ids(saver.list(None)))

    assert in_child(child) == "2,1"
    put(saver, "3", {"c": 3}, parent="2")
    assert ids(saver.list(None)) == ["3", "2", "1"]


def test_a_saver_keeps_no_connection_of_closed_shards(
    shards: Shards, saver: ForgeSaver, database: str, postgres: PostgresServer
) -> None:
    fill(saver)
    assert connections(postgres, database)
    shards.close()
    with pytest.raises(forge_store.Invalid, match="closed"):
        saver.get_tuple(config())
    assert not connections(postgres, database)


def test_threads_are_taken_over_into_shards(saver: ForgeSaver, shards: Shards, path: Path) -> None:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with sqlite.SqliteSaver.from_conn_string(str(path)) as source:
        source.setup()
        made = fill(source)
    with importer.sqlite_source(path) as found:
        done = importer.import_threads(found, shards)
    assert (done.threads, done.checkpoints, done.bytes_here) == (len(THREADS), len(made), 0)
    assert ids(saver.list(None)) == sorted(made, reverse=True)


def test_the_items_of_a_memory_are_in_one_shard(shards: Shards) -> None:
    with closing(ForgeStore(shards.of("langgraph"))) as memories:
        memories.put(("users",), "tea", {"kind": "green"})
        assert [item.key for item in memories.search(("users",))] == ["tea"]
