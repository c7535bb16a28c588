"""Microsoft Agent Framework on a forge store: its own workflows and agents, with a stand-in model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import forge_store
import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    CheckpointStorage,
    Executor,
    FileCheckpointStorage,
    FileHistoryProvider,
    HistoryProvider,
    InMemoryCheckpointStorage,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowEvent,
    WorkflowMessage,
    handler,
)
from forge_store import Corrupt, Invalid
from forge_store.agent_framework import ForgeCheckpointStorage, ForgeHistoryProvider
from forge_store.memory import Memory
from framework_processes import run

pytestmark = pytest.mark.anyio


@dataclass
class Cup:
    """A type that only this test knows."""

    size: int


CUP = f"{Cup.__module__}:Cup"


@pytest.fixture
def kept(store: forge_store.Store) -> ForgeCheckpointStorage:
    return ForgeCheckpointStorage(store)


@pytest.fixture(params=["memory", "file", "ours"])
def storage(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Iterator[CheckpointStorage]:
    """The framework's own implementations, which show that the tests are right, and forge's."""
    if request.param == "memory":
        yield InMemoryCheckpointStorage()
    elif request.param == "file":
        yield FileCheckpointStorage(tmp_path / "files", allowed_checkpoint_types=[CUP])
    else:
        with ForgeCheckpointStorage.from_path(path, allowed_checkpoint_types=[CUP]) as ours:
            yield ours


def checkpoint(name: str = "tea", **fields: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(workflow_name=name, graph_signature_hash="hash", **fields)


async def test_everything_of_a_checkpoint_comes_back(storage: CheckpointStorage) -> None:
    whole = checkpoint(
        checkpoint_id="c%~ \u00e9",
        previous_checkpoint_id="c0",
        messages={"pour": [WorkflowMessage(data={"a": (1, 2)}, source_id="boil", target_id="pour")]},
        state={
            "plain": {"deep": [None, 1.5, "\u00e9", {}, []]},
            "a/b": {1, 2},
            "cup": Cup(3),
            "when": datetime(2026, 1, 2, tzinfo=timezone.utc),
            "_executor_state": {"boil": {"heat": b"\x00\xff"}, "pour/x": {}},
            "_edge_state": {},
        },
        pending_request_info_events={"r1": WorkflowEvent.request_info("r1", "boil", "which?", str)},
        iteration_count=7,
        metadata={"superstep": 7},
    )
    assert await storage.save(whole) == whole.checkpoint_id
    found = await storage.load(whole.checkpoint_id)
    assert found.pending_request_info_events["r1"].data == "which?"
    found.pending_request_info_events = whole.pending_request_info_events
    assert found == whole
    assert [one.checkpoint_id for one in await storage.list_checkpoints(workflow_name="tea")] == ["c%~ \u00e9"]


@pytest.mark.parametrize("executors", [{}, None, Cup(1), {"__pickled__": 1}])
async def test_odd_states_of_executors(storage: CheckpointStorage, executors: object) -> None:
    await storage.save(checkpoint(checkpoint_id="c", state={"_executor_state": executors}))
    assert (await storage.load("c")).state == {"_executor_state": executors}


async def test_lists_and_the_latest(storage: CheckpointStorage) -> None:
    for number, name in enumerate(("tea", "coffee", "tea")):
        time_of = f"2026-01-0{3 - number}T00:00:00+00:00"
        await storage.save(checkpoint(name, checkpoint_id=f"c{number}", timestamp=time_of))
    assert sorted(await storage.list_checkpoint_ids(workflow_name="tea")) == ["c0", "c2"]
    found = await storage.list_checkpoints(workflow_name="tea")
    assert sorted(one.checkpoint_id for one in found) == ["c0", "c2"]
    latest = await storage.get_latest(workflow_name="tea")
    assert latest is not None and latest.checkpoint_id == "c0"
    assert await storage.get_latest(workflow_name="none") is None
    assert await storage.list_checkpoint_ids(workflow_name="none") == []


async def test_unknown_ids_and_deletions(storage: CheckpointStorage) -> None:
    with pytest.raises(WorkflowCheckpointException, match="none"):
        await storage.load("none")
    assert await storage.delete("none") is False
    await storage.save(checkpoint(checkpoint_id="c", state={"a": 1}))
    assert await storage.delete("c") is True
    assert await storage.delete("c") is False
    with pytest.raises(WorkflowCheckpointException):
        await storage.load("c")
    assert await storage.get_latest(workflow_name="tea") is None


async def test_saving_an_id_again_replaces_it(storage: CheckpointStorage) -> None:
    await storage.save(checkpoint(checkpoint_id="c", state={"a": 1, "b": 2}))
    await storage.save(checkpoint(checkpoint_id="c", state={"b": 3}, iteration_count=2))
    found = await storage.load("c")
    assert (found.state, found.iteration_count) == ({"b": 3}, 2)
    assert await storage.list_checkpoint_ids(workflow_name="tea") == ["c"]


async def test_a_large_value_is_stored_once(kept: ForgeCheckpointStorage) -> None:
    def state(number: int) -> dict[str, Any]:
        executors = {"a": {"text": "x" * 5000}, "b": {"number": number, "text": f"{number}" * 3000}}
        return {"_executor_state": executors, "small": number}

    def parts() -> int:
        return len(Memory(kept.store, "agent-framework/workflow/tea").items("part/"))

    for number in range(4):
        await kept.save(checkpoint(checkpoint_id=f"c{number}", state=state(number)))
    assert parts() == 5
    for number in range(4):
        assert (await kept.load(f"c{number}")).state == state(number)
    await kept.delete("c0")
    await kept.save(checkpoint(checkpoint_id="c1", state=state(2)))
    assert parts() == 3
    assert (await kept.load("c1")).state == (await kept.load("c2")).state == state(2)
    assert (await kept.load("c3")).state == state(3)
    for number in range(1, 4):
        await kept.delete(f"c{number}")
    assert parts() == 0


async def test_saves_and_deletions_at_the_same_time_lose_no_value(kept: ForgeCheckpointStorage) -> None:
    shared = {"text": "x" * 5000}

    async def work(number: int) -> None:
        await kept.save(checkpoint(checkpoint_id=f"c{number}", state=shared))
        if number % 2:
            await kept.delete(f"c{number}")

    await asyncio.gather(*(work(number) for number in range(12)))
    found = await kept.list_checkpoints(workflow_name="tea")
    assert [one.state for one in found] == [shared] * 6


async def test_a_value_that_is_lost_is_reported(kept: ForgeCheckpointStorage) -> None:
    await kept.save(checkpoint(checkpoint_id="c", state={"text": "x" * 5000}))
    memory = Memory(kept.store, "agent-framework/workflow/tea")
    memory.write(deletes=[one.key for one in memory.items("part/")])
    with pytest.raises(Corrupt, match="'c' has lost"):
        await kept.load("c")


async def test_copies_belong_to_their_callers(storage: CheckpointStorage) -> None:
    mine = checkpoint(checkpoint_id="c", state={"deep": {"list": [1]}})
    await storage.save(mine)
    mine.state["deep"]["list"].append(2)
    loaded = await storage.load("c")
    latest = await storage.get_latest(workflow_name="tea")
    listed = await storage.list_checkpoints(workflow_name="tea")
    assert latest is not None
    for copy in (loaded, latest, *listed):
        assert copy.state == {"deep": {"list": [1]}}
        copy.state["deep"]["list"].append(3)
    assert (await storage.load("c")).state == {"deep": {"list": [1]}}


async def test_types_that_are_not_allowed(kept: ForgeCheckpointStorage, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(WorkflowCheckpointException, match="allowed"):
        await kept.save(checkpoint(checkpoint_id="c", state={"cup": Cup(1)}))
    assert await kept.list_checkpoint_ids(workflow_name="tea") == []
    allowing = ForgeCheckpointStorage(kept.store, allowed_checkpoint_types=[CUP])
    await allowing.save(checkpoint(checkpoint_id="c", state={"cup": Cup(1)}))
    with pytest.raises(WorkflowCheckpointException, match="allowed"):
        await kept.load("c")
    with caplog.at_level(logging.WARNING):
        assert await kept.list_checkpoint_ids(workflow_name="tea") == []
        assert await kept.get_latest(workflow_name="tea") is None
    assert "checkpoint c was left out" in caplog.text
    assert (await allowing.load("c")).state == {"cup": Cup(1)}


async def test_an_earlier_moment(kept: ForgeCheckpointStorage) -> None:
    await kept.save(checkpoint(checkpoint_id="c1", state={"a": 1}))
    time.sleep(0.01)
    moment = datetime.now(timezone.utc)
    time.sleep(0.01)
    await kept.save(checkpoint(checkpoint_id="c2"))
    await kept.delete("c1")
    past = kept.at(moment)
    assert await past.list_checkpoint_ids(workflow_name="tea") == ["c1"]
    assert (await past.load("c1")).state == {"a": 1}
    with pytest.raises(Invalid, match="past"):
        await past.save(checkpoint())
    assert await kept.list_checkpoint_ids(workflow_name="tea") == ["c2"]


class Boil(Executor):
    """Counts, and keeps how often."""

    def __init__(self) -> None:
        super().__init__(id="boil")
        self.count = 0

    @handler
    async def boil(self, words: str, context: WorkflowContext[str]) -> None:
        self.count += 1
        await context.send_message(f"{words} boiled {self.count}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"count": self.count}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class Pour(Executor):
    """Ends the workflow, or fails."""

    def __init__(self, fails: bool) -> None:
        super().__init__(id="pour")
        self.fails = fails

    @handler
    async def pour(self, words: str, context: WorkflowContext[Any, str]) -> None:
        if self.fails:
            raise RuntimeError("the cup broke")
        await context.yield_output(f"{words} poured")


def workflow(storage: CheckpointStorage, *, fails: bool = False) -> Workflow:
    boil = Boil()
    built = WorkflowBuilder(name="tea", start_executor=boil, checkpoint_storage=storage)
    return built.add_edge(boil, Pour(fails)).build()


async def test_a_workflow_resumes_after_a_failure(storage: CheckpointStorage) -> None:
    with pytest.raises(RuntimeError, match="cup"):
        await workflow(storage, fails=True).run("green")
    latest = await storage.get_latest(workflow_name="tea")
    assert latest is not None and latest.state["_executor_state"]["boil"] == {"count": 1}
    done = await workflow(storage).run(checkpoint_id=latest.checkpoint_id)
    assert done.get_outputs() == ["green boiled 1 poured"]
    known = await storage.list_checkpoints(workflow_name="tea")
    after = [one for one in known if one.previous_checkpoint_id == latest.checkpoint_id]
    assert len(after) == 1


class Echo(BaseChatClient):
    """A stand-in model: it says how many messages it was given."""

    async def _answer(self, messages: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [f"{len(messages)} messages"])])

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        assert not stream
        return self._answer(messages)


@pytest.fixture(params=["file", "ours"])
def history(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Iterator[HistoryProvider]:
    if request.param == "file":
        yield FileHistoryProvider(tmp_path / "files")
    else:
        with ForgeHistoryProvider.from_path(path) as ours:
            yield ours


def texts(messages: list[Message]) -> list[str]:
    return [one.text for one in messages]


async def test_an_agent_remembers(history: HistoryProvider) -> None:
    for expected in ("1 messages", "3 messages", "5 messages"):
        # As after a new start: only the id of the session is known.
        agent = Agent(client=Echo(), context_providers=[history])
        session = agent.create_session(session_id="s1")
        assert (await agent.run("hello", session=session)).text == expected
    found = await history.get_messages("s1")
    assert texts(found) == ["hello", "1 messages", "hello", "3 messages", "hello", "5 messages"]
    assert [one.role for one in found] == ["user", "assistant"] * 3


async def test_messages_come_back_and_replays_are_left_out(history: HistoryProvider) -> None:
    assert await history.get_messages("none") == [] == await history.get_messages(None)
    first = [Message("user", ["\u00e9\x00"], message_id="m1"), Message("assistant", ["b"], message_id="m2")]
    first[1].additional_properties["k"] = {"deep": [None, 1.5]}
    await history.save_messages("odd/%~\n", first)
    await history.save_messages("odd/%~\n", [])
    found = await history.get_messages("odd/%~\n")
    assert [one.to_dict() for one in found] == [one.to_dict() for one in first]
    more = [Message("user", ["c"], message_id="m3"), Message("assistant", ["d"], message_id="m4")]
    await history.save_messages("odd/%~\n", [*first, *more])
    await history.save_messages("odd/%~\n", [first[1], *more])
    await history.save_messages("odd/%~\n", more[1:])
    assert texts(await history.get_messages("odd/%~\n")) == ["\u00e9\x00", "b", "c", "d"]
    await history.save_messages(None, more)
    assert texts(await history.get_messages(None)) == ["c", "d"]


async def test_histories_of_two_sources_and_a_deletion(store: forge_store.Store) -> None:
    chat, audit = ForgeHistoryProvider(store), ForgeHistoryProvider(store, source_id="audit", skip_excluded=True)
    hidden = Message("user", ["hidden"], additional_properties={"_excluded": True})
    for provider in (chat, audit):
        await provider.save_messages("s1", [hidden, Message("user", ["seen"])])
    assert texts(await chat.get_messages("s1")) == ["hidden", "seen"]
    assert texts(await audit.get_messages("s1")) == ["seen"]
    assert await chat.delete_messages("s1") is True
    assert await chat.delete_messages("s1") is False
    assert await chat.get_messages("s1") == []
    assert Memory.names(store, "agent-framework/") == ["agent-framework/history/audit/s1"]


async def test_a_history_at_an_earlier_moment(store: forge_store.Store) -> None:
    chat = ForgeHistoryProvider(store)
    await chat.save_messages("s1", [Message("user", ["before"])])
    time.sleep(0.01)
    moment = datetime.now(timezone.utc)
    time.sleep(0.01)
    await chat.save_messages("s1", [Message("assistant", ["after"])])
    assert texts(await chat.at(moment).get_messages("s1")) == ["before"]


async def test_threads_of_one_process(store: forge_store.Store) -> None:
    chat = ForgeHistoryProvider(store)
    given = [f"{number}" for number in range(16)]
    await asyncio.gather(*(chat.save_messages("s1", [Message("user", [one])]) for one in given))
    assert sorted(texts(await chat.get_messages("s1"))) == sorted(given)


WORKER = """
import asyncio, os, sys
from agent_framework import Message, WorkflowCheckpoint
from forge_store.agent_framework import ForgeCheckpointStorage, ForgeHistoryProvider

async def main(path, name, count, end):
    storage = ForgeCheckpointStorage.from_path(path)
    history = ForgeHistoryProvider(storage.store)
    for number in range(count):
        words = f"{name}{number}"
        await history.save_messages("s1", [Message("user", [words])])
        await storage.save(WorkflowCheckpoint("tea", "hash", checkpoint_id=words))
    if end:
        os._exit(end)
    storage.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


@pytest.mark.parametrize("end", [0, 9])
async def test_two_processes(path: Path, end: int) -> None:
    expected = sorted(f"{name}{number}" for name in "ab" for number in range(8))
    with ForgeCheckpointStorage.from_path(path) as kept:
        run(WORKER, [(path, "a", 8, end), (path, "b", 8, end)], code=end)
        assert sorted(await kept.list_checkpoint_ids(workflow_name="tea")) == expected
        history = ForgeHistoryProvider(kept.store)
        assert sorted(texts(await history.get_messages("s1"))) == expected
