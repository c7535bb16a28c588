"""What the saver does beyond the conformance suite."""

from __future__ import annotations

import asyncio
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, TypedDict

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from saver_steps import checkpoint, config, put

import forge_store
from forge_store.langgraph import ForgeSaver, checkpointer


class State(TypedDict):
    """The state of the graph of these tests."""

    words: list[str]


def graph(saver: Any) -> Any:
    """Returns a graph of two nodes, each of which adds a word."""
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"words": [*state["words"], "one"]})
    builder.add_node("two", lambda state: {"words": [*state["words"], "two"]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    return builder.compile(checkpointer=saver)


def test_a_thread_goes_on_in_another_process(tmp_path: Path) -> None:
    with ForgeSaver.from_path(tmp_path / "store") as saver:
        graph(saver).invoke({"words": []}, config())
    with ForgeSaver.from_path(tmp_path / "store") as saver:
        state = graph(saver).get_state(config())
        assert state.values == {"words": ["one", "two"]}
        assert len([*graph(saver).get_state_history(config())]) == 4
        assert graph(saver).invoke({"words": ["x"]}, config())["words"] == ["x", "one", "two"]
    with pytest.raises(forge_store.Invalid, match="closed"):
        saver.get_tuple(config())


def test_messages_say_what_ran_and_what_follows(tmp_path: Path) -> None:
    with ForgeSaver.from_path(tmp_path / "store") as saver:
        graph(saver).invoke({"words": []}, config())
        found = [one.metadata["step"] for one in saver.list(config())]
        assert found == [2, 1, 0, -1]


def test_sync_and_async_see_the_same(saver: ForgeSaver) -> None:
    async def run() -> None:
        assert await graph(saver).ainvoke({"words": []}, config()) == {"words": ["one", "two"]}
        ids = [one.config["configurable"]["checkpoint_id"] async for one in saver.alist(config())]
        assert ids == [one.config["configurable"]["checkpoint_id"] for one in saver.list(config())]
        # From the thread of the loop itself.
        assert graph(saver).get_state(config()).values == {"words": ["one", "two"]}

    asyncio.run(run())


def test_values_of_any_form_come_back(saver: ForgeSaver) -> None:
    values: dict[str, Any] = {
        "list": [{"role": "user", "content": "a word " * n} for n in range(40)],
        "map": {f"key {n}": {"n": n, "text": "x" * n} for n in range(40)},
        "none": None,
        "bytes": b"\xc1\x00",
        "odd/name \x01": 1.5,
        "": "a channel without a name",
    }
    put(saver, "1", values)
    changed = {**values, "list": values["list"][3:] + ["new"], "none": 0}
    new = {"list": 2, "none": 2}
    put(saver, "2", changed, parent="1", versions={**dict.fromkeys(values, 1), **new}, new=new)
    for step, wanted in (("1", values), ("2", changed)):
        found = saver.get_tuple(config(step=step))
        assert found is not None
        assert found.checkpoint["channel_values"] == wanted
        assert found.checkpoint["channel_versions"].keys() == wanted.keys()


def test_a_copy_of_a_checkpoint_has_its_values_without_new_versions(saver: ForgeSaver) -> None:
    put(saver, "1", {"c": "old"})
    put(saver, "2", {"c": "new", "d": 1}, parent="1", versions={"c": 2, "d": 1})
    # As the framework copies a checkpoint: after the parent of the copied one, nothing new.
    put(saver, "3", {"c": "new", "d": 1}, parent="1", versions={"c": 2, "d": 1}, new={})
    found = saver.get_tuple(config(step="3"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"c": "new", "d": 1}


def test_a_fork_is_a_branch_or_refused(saver: ForgeSaver) -> None:
    put(saver, "1", {"c": 1})
    put(saver, "2", {"c": 2}, parent="1")
    put(saver, "3", {"c": 3}, parent="1")
    assert [one.config["configurable"]["checkpoint_id"] for one in saver.list(config())] == [*"321"]
    strict = copy.copy(saver)
    strict.on_fork = "raise"
    with pytest.raises(forge_store.Conflict, match="go on from there"):
        put(strict, "4", {"c": 4}, parent="1")
    assert strict.get_tuple(config(step="4")) is None
    with pytest.raises(ValueError, match="on_fork"):
        ForgeSaver(saver.store, on_fork="maybe")  # type: ignore[arg-type]


def test_an_interrupt_in_a_subgraph_is_no_fork(path: Path) -> None:
    """LangGraph puts the checkpoints of a graph and of its subgraph at the same time."""
    inner = StateGraph(State)
    inner.add_node("ask", lambda state: {"words": [*state["words"], interrupt("which tea?")]})
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("before", lambda state: state)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "before")
    outer.add_edge("before", "inner")
    with ForgeSaver.from_path(path, on_fork="raise") as saver:
        asking = outer.compile(checkpointer=saver)
        for turn in range(8):
            asking.invoke({"words": []}, config())
            answer: Any = Command(resume=f"tea {turn}")
            assert asking.invoke(answer, config())["words"] == [f"tea {turn}"]
        session = saver.store.session("t", create=False)
        assert [branch.name for branch in session.branches] == ["main"]


def test_a_copied_saver_shares_the_store(saver: ForgeSaver) -> None:
    other = saver.with_allowlist([("decimal", "Decimal")])
    assert isinstance(other, BaseCheckpointSaver)
    put(other, "1", {"c": 1})
    assert saver.get_tuple(config()) is not None


def test_versions_go_on_as_they_began(saver: ForgeSaver) -> None:
    assert [saver.get_next_version(None, None), saver.get_next_version(3, None)] == [1, 4]
    text = saver.get_next_version("00000000000000000000000000000009.0.123", None)
    assert isinstance(text, str)
    assert text > "00000000000000000000000000000009.9"


def test_many_threads_write_one_thread_and_others(saver: ForgeSaver) -> None:
    put(saver, "0", {"c": 0})
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for step in range(5):
            name = f"{number}-{step}"
            put(saver, name, {"c": name}, parent="0")
            saver.put_writes(config(step="0"), [("c", name)], name)
            put(saver, name, {"c": name}, thread=f"own {number}")

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(work, range(8))] == [None] * 8
    found = [*saver.list(config())]
    assert len(found) == 41
    for one in found[:-1]:
        step = one.config["configurable"]["checkpoint_id"]
        assert one.checkpoint["channel_values"] == {"c": step}
    first = found[-1].pending_writes
    assert first is not None
    assert len(first) == 40


def test_a_paused_list_holds_nothing(saver: ForgeSaver) -> None:
    for step in "12345":
        put(saver, step, {"c": step})
    found = saver.list(config())
    assert next(found).config["configurable"]["checkpoint_id"] == "5"
    put(saver, "6", {"c": "6"})
    saver.delete_thread("t")
    assert all(one.checkpoint["channel_values"] for one in found)


def test_a_list_is_filtered_before_it_is_limited(saver: ForgeSaver) -> None:
    for number in range(8):
        put(saver, f"{number}", metadata={"odd": number % 2, "nested": {"n": number}})
    ids = [
        one.config["configurable"]["checkpoint_id"]
        for one in saver.list(config(), filter={"odd": 1}, limit=2, before=config(step="7"))
    ]
    assert ids == ["5", "3"]
    assert len([*saver.list(None, filter={"nested": {"n": 3}})]) == 1
    assert [*saver.list(config(), limit=0)] == []


def test_the_saver_of_langgraph_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def run() -> None:
        async with checkpointer() as saver:
            await graph(saver).ainvoke({"words": []}, config())

    asyncio.run(run())
    assert (tmp_path / ".forge").is_dir()


def test_an_error_of_the_serialiser_passes_through(saver: ForgeSaver) -> None:
    class Odd:
        pass

    with pytest.raises(TypeError) as raised:
        put(saver, "1", {"good": 1, "odd": Odd()})
    notes = getattr(raised.value, "__notes__", ["channel 'odd'"])
    assert any("'odd'" in note for note in notes)
    assert saver.get_tuple(config()) is None


def test_one_text_is_no_list_of_ids(saver: ForgeSaver) -> None:
    with pytest.raises(TypeError, match=r"write thread_ids=\[\.\.\.\]"):
        saver.prune("t")
    with pytest.raises(TypeError):
        saver.delete_for_runs("r")
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["t"], strategy="none")


def test_none_is_no_thread(saver: ForgeSaver) -> None:
    """All conversations without an id were one thread, 'None'."""
    nothing: Any = None
    calls: list[Callable[[], object]] = [
        lambda: graph(saver).invoke({"words": []}, config(nothing)),
        lambda: saver.get_tuple({"configurable": {}}),
        lambda: [*saver.list(config(nothing))],
        lambda: saver.writing(nothing),
        lambda: saver.delete_thread(nothing),
        lambda: saver.copy_thread("t", nothing),
        lambda: saver.prune([nothing]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="thread_id is None or missing"):
            call()
    assert saver.store.sessions() == []


def test_unknown_fields_of_a_checkpoint_come_back(saver: ForgeSaver) -> None:
    one: Any = {**checkpoint("1", {"c": 1}), "later": {"x": 1}}
    saver.put(config(), one, {"source": "input", "step": -1, "parents": {}}, {"c": 1})
    found = saver.get_tuple(config())
    assert found is not None
    assert found.checkpoint == one
