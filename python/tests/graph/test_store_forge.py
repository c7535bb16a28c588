"""What `ForgeStore` does beyond the contract: expiry, history, many processes, and a real graph."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypedDict

import forge_store
import pytest
from forge_store import Store
from forge_store.langgraph import ForgeSaver, ForgeStore, store_expiry
from forge_store.memory import Memory
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp, TTLConfig


class Clock:
    """A clock for the times of expiry, which moves only when a test sets it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def now(self, _zone: timezone) -> datetime:
        return self.time

    def fromisoformat(self, text: str) -> datetime:
        return datetime.fromisoformat(text)

    def forward(self, minutes: float) -> None:
        self.time += timedelta(minutes=minutes)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(store_expiry, "datetime", clock)
    return clock


def expiring(store: Store, **config: Any) -> ForgeStore:
    ttl: Any = {"default_ttl": 10, "omit_expired": True, **config}
    return ForgeStore(store, ttl=ttl)


def test_an_expired_item_is_omitted_and_removed(store: Store, clock: Clock) -> None:
    memories = expiring(store)
    memories.put(("a",), "ten", {})
    memories.put(("a",), "twenty", {}, ttl=20)
    memories.put(("a",), "ever", {}, ttl=None)
    clock.forward(10)
    assert memories.get(("a",), "ten") is None
    assert [item.key for item in memories.search(("a",), refresh_ttl=False)] == ["ever", "twenty"]
    assert memories.sweep_ttl() == 1 and memories.sweep_ttl() == 0
    clock.forward(10)
    assert memories.sweep_ttl() == 1
    assert [item.key for item in memories.search(("a",))] == ["ever"]
    assert [item.key for item in memories.memory.items()] == ["item/a/ever"]


def test_expired_items_are_read_unless_they_are_to_be_omitted(store: Store, clock: Clock) -> None:
    memories = expiring(store, omit_expired=False, refresh_on_read=False)
    memories.put(("a",), "k", {})
    clock.forward(11)
    assert memories.get(("a",), "k") is not None
    assert memories.list_namespaces() == [("a",)]
    assert expiring(store).list_namespaces() == []
    assert memories.sweep_ttl() == 1 and memories.list_namespaces() == []


@pytest.mark.parametrize("by_search", [False, True])
def test_reading_moves_the_expiry(store: Store, clock: Clock, by_search: bool) -> None:
    memories = expiring(store)
    memories.put(("a",), "k", {"n": 1})
    before = memories.get(("a",), "k", refresh_ttl=False)

    def read(refresh: bool | None) -> int:
        if by_search:
            return len(memories.search(("a",), refresh_ttl=refresh))
        return int(memories.get(("a",), "k", refresh_ttl=refresh) is not None)

    clock.forward(9)
    assert read(None) == 1
    clock.forward(9)
    assert read(False) == 1
    # The item itself was not written.
    after = memories.get(("a",), "k", refresh_ttl=False)
    assert before is not None and after is not None and after.updated_at == before.updated_at
    clock.forward(1)
    assert read(False) == 0


def test_a_put_without_a_time_removes_the_expiry(store: Store, clock: Clock) -> None:
    memories = expiring(store)
    memories.put(("a",), "k", {})
    memories.put(("a",), "k", {}, ttl=None)
    clock.forward(1000)
    assert memories.sweep_ttl() == 0 and memories.get(("a",), "k") is not None


def test_a_thread_removes_expired_items(store: Store) -> None:
    memories = ForgeStore(store)
    assert memories.stop_ttl_sweeper()
    swept = threading.Event()
    sweep = memories.sweep_ttl

    def note() -> int:
        count = sweep()
        if count:
            swept.set()
        return count

    memories._sweeper._sweep = note
    memories.put(("a",), "k", {}, ttl=0)
    done = memories.start_ttl_sweeper(0.0001)
    assert memories.start_ttl_sweeper() is done
    assert swept.wait(60) and memories.stop_ttl_sweeper(60) and done.done()
    assert memories.get(("a",), "k") is None


def test_the_first_time_of_an_item_stays(store: Store) -> None:
    memories = ForgeStore(store)
    memories.put(("a",), "k", {"n": 1})
    first = memories.get(("a",), "k")
    memories.put(("a",), "k", {"n": 2})
    second = memories.get(("a",), "k")
    assert first is not None and second is not None
    assert second.created_at == first.created_at and second.updated_at > first.updated_at


def test_a_search_gives_the_last_written_first(store: Store) -> None:
    memories = ForgeStore(store)
    for key in ("b", "a", "c", "b"):
        memories.put(("n",), key, {})
    assert [item.key for item in memories.search(("n",))] == ["b", "c", "a"]


def test_a_batch_is_one_record_or_nothing(store: Store) -> None:
    memories = ForgeStore(store)
    memories.batch([PutOp(("a",), str(number), {"n": number}) for number in range(5)])
    session = memories.memory.session
    assert session is not None and session.head.revision == 1
    wrong = {"when": datetime.now(timezone.utc)}
    with pytest.raises(forge_store.Invalid, match=r"item/a/x'.when is a datetime"):
        memories.batch([PutOp(("a",), "good", {}), PutOp(("a",), "x", wrong)])
    assert session.head.revision == 1


def test_an_earlier_memory_is_read_and_brought_back(store: Store) -> None:
    memories = ForgeStore(store)
    memories.put(("users", "42"), "tea", {"kind": "green"})
    memories.put(("users", "42"), "tea", {"kind": "black"})
    session = memories.memory.session
    assert session is not None
    then = memories.memory.get("item/users/42/tea", at=1)
    assert then is not None and then.value == {"kind": "green"}
    session.restore(1)
    item = memories.get(("users", "42"), "tea")
    assert item is not None and item.value == {"kind": "green"}


def test_stores_of_one_forge_store_are_apart_and_last(path: Path) -> None:
    ttl: TTLConfig = {"default_ttl": 5}
    with ForgeStore.from_path(path, name="one", ttl=ttl) as one:
        one.put(("a",), "k", {"token": "ghp_" + "a1B2" * 9})
        assert ForgeStore(one.store, name="two").search(()) == []
    with ForgeStore.from_path(path, name="one") as one:
        item = one.get(("a",), "k")
        assert item is not None and item.value == {"token": "ghp_" + "a1B2" * 9}
        assert Memory.names(one.store) == ["one"]


class State(TypedDict):
    answer: str


def test_a_graph_remembers_across_threads(path: Path) -> None:
    def answer(state: State, runtime: Runtime[None]) -> State:
        assert runtime.store is not None
        known = runtime.store.get(("users", "42"), "visits")
        count = 1 + (known.value["count"] if known else 0)
        runtime.store.put(("users", "42"), "visits", {"count": count})
        return {"answer": f"visit {count}"}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    for visit in (1, 2):
        with ForgeSaver.from_path(path) as saver:
            graph = builder.compile(checkpointer=saver, store=ForgeStore(saver.store))
            config: Any = {"configurable": {"thread_id": f"thread {visit}"}}
            assert graph.invoke({"answer": ""}, config) == {"answer": f"visit {visit}"}


def test_a_label_that_is_no_text_is_refused(store: Store) -> None:
    memories = ForgeStore(store)
    wrong: Any = ("users", 42)
    for op in (GetOp(wrong, "tea"), PutOp(wrong, "tea", {"kind": "green"}), SearchOp(wrong)):
        with pytest.raises(InvalidNamespaceError, match="label 42 of the namespace"):
            memories.batch([PutOp(("users",), "tea", {"kind": "black"}), op])
    text: Any = "users"
    with pytest.raises(InvalidNamespaceError, match="the namespace 'users' is a text"):
        memories.put(text, "tea", {"kind": "black"})
    assert memories.search(()) == []
