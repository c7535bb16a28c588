"""Pydantic AI's conversations in a forge store: its own agent and store methods, with a stand-in model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import forge_store
import pytest
from forge_store import ForgeError, Invalid
from forge_store.pydantic_ai import ForgeConversationStore
from pydantic_ai import Agent, BinaryContent, Conversation, DeferredToolRequests, UserError
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from framework_processes import run

pytestmark = pytest.mark.anyio
agent = Agent(TestModel())


@pytest.fixture
def kept(store: forge_store.Store) -> ForgeConversationStore:
    return ForgeConversationStore(store)


@pytest.fixture(params=["theirs", "ours"])
def any_store(request: pytest.FixtureRequest, path: Path) -> Iterator[ConversationStore]:
    """Pydantic AI's own implementation, which shows that the tests are right, and forge's."""
    if request.param == "theirs":
        yield InMemoryConversationStore()
    else:
        with ForgeConversationStore.from_path(path) as ours:
            yield ours


async def talk(store: ConversationStore, name: str, *prompts: str) -> Conversation:
    for prompt in prompts:
        talked = await store.load(name) or Conversation(conversation_id=name)
        await store.save(await agent.run(prompt, conversation=talked))
    found = await store.load(name)
    assert found is not None
    return found


def prompts(conversation: Conversation | None) -> list[Any]:
    assert conversation is not None
    parts = [part for message in conversation.messages for part in message.parts]
    return [part.content for part in parts if isinstance(part, UserPromptPart)]


async def test_a_conversation_is_continued(any_store: ConversationStore) -> None:
    assert await any_store.load("tea") is None
    found = await talk(any_store, "tea", "one", "two", "three")
    assert prompts(found) == ["one", "two", "three"] and len(found.messages) == 6
    assert found.usage.requests == 3
    entries = await any_store.load_entries("tea")
    assert entries is not None and len(entries) == 6
    assert [one.parent_id for one in entries] == [None, *(one.id for one in entries[:-1])]
    for limit in range(7):
        some = await any_store.load("tea", limit=limit)
        assert some is not None and some.messages == found.messages[len(found.messages) - limit :]
    # A run on the last messages only is appended to the whole.
    short = await any_store.load("tea", limit=2)
    await any_store.save(await agent.run("four", conversation=short))
    assert prompts(await any_store.load("tea")) == ["one", "two", "three", "four"]


async def test_a_save_that_is_too_late_is_refused(any_store: ConversationStore) -> None:
    stale = await talk(any_store, "tea", "one")
    await talk(any_store, "tea", "two")
    with pytest.raises(ConversationConflict):
        await any_store.save(await agent.run("lost", conversation=stale))
    with pytest.raises(ConversationConflict):
        await any_store.save(await agent.run("new", conversation=Conversation(conversation_id="tea")))
    assert prompts(await any_store.load("tea")) == ["one", "two"]


async def test_forks_share_what_came_before(any_store: ConversationStore) -> None:
    await talk(any_store, "tea", "one", "two")
    fork = await any_store.fork("tea", at=2, new_conversation_id="green")
    again = await any_store.fork("green", new_conversation_id="jasmine")
    assert prompts(fork) == prompts(again) == ["one"]
    await talk(any_store, "green", "three")
    await talk(any_store, "jasmine", "four")
    assert prompts(await any_store.load("tea")) == ["one", "two"]
    assert prompts(await any_store.load("green")) == ["one", "three"]
    assert prompts(await any_store.load("jasmine")) == ["one", "four"]
    shared = [await any_store.load_entries(name) for name in ("tea", "green", "jasmine")]
    assert len({entries[0].id for entries in shared if entries}) == 1
    with pytest.raises(ConversationConflict):
        await any_store.fork("tea", new_conversation_id="green")
    # What a fork reads stays, whichever is deleted first.
    await any_store.delete("tea")
    await any_store.delete("green")
    assert await any_store.load("tea") is None and await any_store.load("green") is None
    assert prompts(await any_store.load("jasmine")) == ["one", "four"]
    await talk(any_store, "tea", "again")
    assert prompts(await any_store.load("tea")) == ["again"]
    assert prompts(await any_store.load("jasmine")) == ["one", "four"]


async def test_a_branch_leaves_its_history_stored(any_store: ConversationStore) -> None:
    found = await talk(any_store, "tea", "one", "two")
    entries = await any_store.load_entries("tea")
    assert entries is not None
    branch = await any_store.branch("tea", at=2, expected_revision=found.revision)
    await any_store.save(await agent.run("other", conversation=branch))
    now = await any_store.load("tea")
    assert prompts(now) == ["one", "other"] and now is not None
    back = await any_store.branch("tea", from_entry=entries[3].id, expected_revision=now.revision)
    assert prompts(back) == ["one", "two"]
    with pytest.raises(ConversationConflict):
        await any_store.branch("tea", at=0, expected_revision=now.revision)


async def test_branching_a_fork_into_what_it_shares(any_store: ConversationStore) -> None:
    await talk(any_store, "tea", "one", "two", "three")
    fork = await any_store.fork("tea", new_conversation_id="green")
    branch = await any_store.branch("green", at=2, expected_revision=fork.revision)
    await any_store.save(await agent.run("other", conversation=branch))
    await any_store.delete("tea")
    assert prompts(await any_store.load("green")) == ["one", "other"]


async def test_scopes_and_the_order_of_lists(any_store: ConversationStore) -> None:
    for name, scope in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        await any_store.save(await agent.run("hi", conversation=Conversation(conversation_id=name)), scope=scope)
    assert [one.conversation_id for one in await any_store.list_conversations()] == ["c", "b", "a"]
    assert [one.conversation_id for one in await any_store.list_conversations(scope="ann")] == ["c", "a"]
    assert [one.conversation_id for one in await any_store.list_conversations(limit=1)] == ["c"]
    assert await any_store.load("a", scope="bob") is None
    await any_store.delete("a", scope="bob")
    assert await any_store.load("a") is not None
    with pytest.raises(UserError):
        await any_store.list_conversations(limit=-1)


async def test_everything_of_a_record_and_a_message_comes_back(any_store: ConversationStore) -> None:
    data = BinaryContent(bytes(range(256)), media_type="application/octet-stream")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=["see", data])]),
        ModelResponse(parts=[TextPart("\u00e9\U0001f600\n\x00 end")], metadata={"deep": [None, {"a": 1.5}]}),
    ]
    entries = [ConversationEntry(id="e1", parent_id=None, message=messages[0])]
    entries.append(ConversationEntry(id="e2", parent_id="e1", message=messages[1]))
    record = ConversationRecord(
        conversation_id=" odd/%id~\n\u00e9 " + "x" * 300,
        head_id="e2",
        usage=RunUsage(requests=3, input_tokens=7),
        deferred_tool_requests=DeferredToolRequests(metadata={"call": {"why": None}}),
        scope="ann",
        branches=["e1"],
    )
    await any_store.write_record(record, new_entries=entries, expected_revision=None)
    assert await any_store.read_record(record.conversation_id) == record
    assert await any_store.read_history("e2") == entries
    assert await any_store.read_entry("e1") == entries[0]
    assert list(await any_store.read_records()) == [record]


async def test_unknown_ids(any_store: ConversationStore) -> None:
    with pytest.raises(LookupError):
        await any_store.read_entry("none")
    assert await any_store.read_record("none") is None
    with pytest.raises(ConversationConflict):
        await any_store.delete_record("none", expected_revision="r")
    with pytest.raises(ConversationConflict):
        lost = ConversationRecord(conversation_id="c", head_id="none")
        await any_store.write_record(lost, expected_revision=None)
    assert await any_store.read_record("c") is None
    await any_store.delete("none")


async def test_another_store_object_finds_an_entry_by_its_id(kept: ForgeConversationStore) -> None:
    await talk(kept, "tea", "one")
    await talk(kept, "coffee", "two")
    entries = await kept.load_entries("coffee")
    assert entries is not None
    other = ForgeConversationStore(kept.store)
    assert await other.read_entry(entries[0].id) == entries[0]


async def test_an_earlier_moment(kept: ForgeConversationStore) -> None:
    await talk(kept, "tea", "one")
    time.sleep(0.01)
    moment = datetime.now(timezone.utc)
    time.sleep(0.01)
    await talk(kept, "tea", "two")
    await talk(kept, "coffee", "three")
    past = kept.at(moment)
    assert prompts(await past.load("tea")) == ["one"]
    assert [one.conversation_id for one in await past.list_conversations()] == ["tea"]
    assert await kept.at("2 hours ago").load("tea") is None
    with pytest.raises(ForgeError):
        await kept.at("no such moment").load("tea")
    with pytest.raises(Invalid, match="past"):
        await past.save(await agent.run("no", conversation=await past.load("tea")))
    assert prompts(await kept.load("tea")) == ["one", "two"]


async def test_deletions_leave_no_memory(kept: ForgeConversationStore) -> None:
    await talk(kept, "tea", "one")
    await kept.fork("tea", new_conversation_id="green")
    await kept.fork("green", new_conversation_id="jasmine")
    for name in ("tea", "jasmine", "green"):
        await kept.delete(name)
    assert [one.name for one in kept.store.sessions() if one.kind == "memory"] == []


async def test_a_fork_costs_no_copies(kept: ForgeConversationStore) -> None:
    await talk(kept, "tea", *(f"{number}" for number in range(10)))
    await kept.fork("tea", new_conversation_id="green")
    assert not [one for one in kept._forge.items("pydantic-ai/green") if one.key.startswith("entry/")]
    assert len(kept._forge.items("pydantic-ai/tea", "entry/")) == 20


async def test_threads_of_one_process(kept: ForgeConversationStore) -> None:
    """Of concurrent saves one succeeds, the others are refused and may load again."""

    async def add(number: int) -> None:
        while True:
            try:
                found = await kept.load("tea") or Conversation(conversation_id="tea")
                await kept.save(await agent.run(f"{number}", conversation=found))
                return
            except ConversationConflict:
                continue

    await asyncio.gather(*(add(number) for number in range(6)))
    assert sorted(prompts(await kept.load("tea"))) == [str(number) for number in range(6)]


ADDER = """
import asyncio, sys
from forge_store.pydantic_ai import ForgeConversationStore
from pydantic_ai import Agent, Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.models.test import TestModel

async def main(path, name, count):
    agent, conflicts = Agent(TestModel()), 0
    with ForgeConversationStore.from_path(path) as store:
        for number in range(count):
            while True:
                found = await store.load("tea") or Conversation(conversation_id="tea")
                try:
                    await store.save(await agent.run(f"{name}{number}", conversation=found))
                    break
                except ConversationConflict:
                    conflicts += 1
    print(conflicts)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def test_two_processes(path: Path) -> None:
    with ForgeConversationStore.from_path(path) as kept:
        run(ADDER, [(path, "a", 5), (path, "b", 5)])
        said = prompts(await kept.load("tea"))
    expected = [f"{name}{number}" for name in "ab" for number in range(5)]
    assert sorted(said) == expected


CRASH = """
import asyncio, os, sys
from forge_store.pydantic_ai import ForgeConversationStore
from pydantic_ai import Agent, Conversation
from pydantic_ai.models.test import TestModel

async def main(path):
    store = ForgeConversationStore.from_path(path)
    talk = Conversation(conversation_id="tea")
    await store.save(await Agent(TestModel()).run("before", conversation=talk))
    os._exit(9)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_process_that_ends_abruptly(path: Path) -> None:
    run(CRASH, [(path,)], code=9)
    with ForgeConversationStore.from_path(path) as kept:
        assert prompts(await talk(kept, "tea", "after")) == ["before", "after"]
