"""ADK's sessions in a forge store: the same tests on ADK's own service, and its runner with a stand-in model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import forge_store
import pytest
from forge_store import Invalid
from forge_store.adk import ForgeSessionService
from forge_store.memory import Memory
from framework_processes import run
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.genai import types

pytestmark = pytest.mark.anyio

WHO: dict[str, Any] = {"app_name": "tea", "user_id": "ann"}


@pytest.fixture
def kept(store: forge_store.Store) -> ForgeSessionService:
    return ForgeSessionService(store)


@pytest.fixture(params=["theirs", "ours"])
def service(request: pytest.FixtureRequest, path: Path) -> Iterator[BaseSessionService]:
    """ADK's own implementation, which shows that the tests are right, and forge's."""
    if request.param == "theirs":
        yield InMemorySessionService()
    else:
        with ForgeSessionService.from_path(path) as ours:
            yield ours


def event(text: str = "hi", *, at: float | None = None, **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    state = {key.replace("__", ":"): value for key, value in delta.items()}
    made = Event(author="user", invocation_id="i", content=content, actions=EventActions(state_delta=state))
    if at is not None:
        made.timestamp = at
    return made


async def get(service: BaseSessionService, name: str, **config: Any) -> Session:
    chosen = GetSessionConfig(**config) if config else None
    found = await service.get_session(**WHO, session_id=name, config=chosen)
    assert found is not None
    return found


def texts(session: Session) -> list[str]:
    parts = [part for one in session.events if one.content for part in one.content.parts or []]
    return [part.text or "" for part in parts]


async def test_a_session_is_created_read_and_deleted(service: BaseSessionService) -> None:
    made = await service.create_session(**WHO, session_id="s1", state={"key": {"deep": [None, 1.5, "\u00e9"]}})
    assert (made.id, made.app_name, made.user_id, made.events) == ("s1", "tea", "ann", [])
    assert made.state == {"key": {"deep": [None, 1.5, "\u00e9"]}} and made.last_update_time > 0
    assert await get(service, "s1") == made
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**WHO, session_id="s1")
    other = await service.create_session(**WHO)
    assert other.id not in ("", "s1")
    await service.delete_session(**WHO, session_id="s1")
    await service.delete_session(**WHO, session_id="none")
    assert await service.get_session(**WHO, session_id="s1") is None
    assert await service.get_session(app_name="tea", user_id="bob", session_id=other.id) is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(made, event())
    again = await service.create_session(**WHO, session_id=" s1 ")
    assert again.id == "s1" and again.state == {}


async def test_events_change_the_state_of_their_scope(service: BaseSessionService) -> None:
    first = await service.create_session(**WHO, session_id="s1", state={"app:a": 1, "user:u": 2, "own": 3, "temp:t": 4})
    assert first.state == {"app:a": 1, "user:u": 2, "own": 3}
    await service.append_event(first, event(app__a=10, user__new="x", own=30, temp__t=40))
    assert first.state == {"app:a": 10, "user:u": 2, "user:new": "x", "own": 30, "temp:t": 40}
    stored = {"app:a": 10, "user:u": 2, "user:new": "x", "own": 30}
    found = await get(service, "s1")
    assert found.state == stored
    assert found.events[0].actions.state_delta == {"app:a": 10, "user:new": "x", "own": 30}
    assert await service.get_user_state(**WHO) == {"u": 2, "new": "x"}
    assert await service.get_user_state(app_name="tea", user_id="bob") == {}
    same_user = await service.create_session(**WHO, session_id="s2")
    assert same_user.state == {"app:a": 10, "user:u": 2, "user:new": "x"}
    other_user = await service.create_session(app_name="tea", user_id="bob")
    assert other_user.state == {"app:a": 10}
    other_app = await service.create_session(app_name="coffee", user_id="ann")
    assert other_app.state == {}
    await service.delete_session(**WHO, session_id="s1")
    assert await service.get_user_state(**WHO) == {"u": 2, "new": "x"}


async def test_lists_have_no_events_and_the_latest_last(service: BaseSessionService) -> None:
    for user, name, at in (("ann", "s1", 3e9), ("ann", "s2", 2e9), ("bob", "s3", 2.5e9)):
        made = await service.create_session(app_name="tea", user_id=user, session_id=name, state={"own": name})
        await service.append_event(made, event(at=at, user__name=user))
    await service.create_session(app_name="tea2", user_id="ann", session_id="s4")
    mine = (await service.list_sessions(**WHO)).sessions
    assert [one.id for one in mine] == ["s2", "s1"]
    every = (await service.list_sessions(app_name="tea")).sessions
    assert [(one.id, one.user_id) for one in every] == [("s2", "ann"), ("s3", "bob"), ("s1", "ann")]
    assert [one.events for one in every] == [[], [], []]
    assert every[1].state == {"own": "s3", "user:name": "bob"}
    assert every[1].last_update_time == 2.5e9
    assert (await service.list_sessions(app_name="none")).sessions == []
    assert (await service.list_sessions(app_name="tea", user_id="none")).sessions == []


async def test_only_some_events_are_read(service: BaseSessionService) -> None:
    made = await service.create_session(**WHO, session_id="s1")
    for number in range(1, 6):
        await service.append_event(made, event(f"{number}", at=float(number)))
    everything = ["1", "2", "3", "4", "5"]
    assert texts(await get(service, "s1")) == texts(made) == everything
    for number in range(7):
        some = await get(service, "s1", num_recent_events=number)
        assert texts(some) == everything[max(0, 5 - number) :]
    assert texts(await get(service, "s1", after_timestamp=4.0)) == ["4", "5"]
    assert texts(await get(service, "s1", after_timestamp=9.0)) == []
    assert texts(await get(service, "s1", after_timestamp=2.0, num_recent_events=2)) == ["4", "5"]
    with pytest.raises(ValueError):
        await get(service, "s1", num_recent_events=-1)
    # A session that was read in part is continued as a whole.
    await service.append_event(await get(service, "s1", num_recent_events=0), event("6"))
    assert texts(await get(service, "s1")) == [*everything, "6"]


async def test_everything_of_an_event_comes_back(service: BaseSessionService) -> None:
    made = await service.create_session(**WHO, session_id="s1")
    parts = [
        types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="image/png")),
        types.Part(function_call=types.FunctionCall(id="c", name="f", args={"x": [None, {"y": 1.5}]})),
    ]
    whole = Event(
        author="agent",
        invocation_id="i",
        content=types.Content(role="model", parts=parts),
        actions=EventActions(artifact_delta={"file": 1}, transfer_to_agent="other", escalate=True),
        long_running_tool_ids={"c"},
        branch="a.b",
        turn_complete=True,
        error_code="E",
        custom_metadata={"k": "v"},
        grounding_metadata=types.GroundingMetadata(web_search_queries=["q"]),
    )
    await service.append_event(made, whole)
    assert (await get(service, "s1")).events == [whole]


async def test_a_partial_event_is_not_stored(service: BaseSessionService) -> None:
    made = await service.create_session(**WHO, session_id="s1")
    partial = event("half", own=1)
    partial.partial = True
    await service.append_event(made, partial)
    found = await get(service, "s1")
    assert found.events == made.events == [] and found.state == {}


@pytest.mark.parametrize("odd", ["a/b", "%2F", " \u00e9~", "x" * 300, "a\nb\x00"])
async def test_ids_of_any_form(service: BaseSessionService, odd: str) -> None:
    made = await service.create_session(app_name=odd, user_id=odd, session_id=odd)
    await service.append_event(made, event(app__k=odd, user__k=odd))
    found = (await service.list_sessions(app_name=odd)).sessions
    assert [(one.app_name, one.user_id, one.id) for one in found] == [(odd, odd, odd.strip())]
    assert found[0].state == {"app:k": odd, "user:k": odd}
    assert (await service.list_sessions(app_name=odd[:1])).sessions == []


async def test_a_stale_session_is_refused(kept: ForgeSessionService) -> None:
    await kept.create_session(**WHO, session_id="s1")
    first, second = await get(kept, "s1"), await get(kept, "s1")
    await kept.append_event(first, event("1", app__n=1))
    with pytest.raises(StaleSessionError, match="get_session"):
        await kept.append_event(second, event("2", app__n=2, user__n=2, own=2))
    found = await get(kept, "s1")
    assert texts(found) == ["1"] and found.state == {"app:n": 1} and texts(second) == []
    await kept.append_event(found, event("3"))
    await kept.append_event(found, event("4"))
    # An object that was made by hand may continue, if its last event is the last one.
    by_hand = Session(id="s1", **WHO, events=found.events[:-1], last_update_time=0.0)
    with pytest.raises(StaleSessionError):
        await kept.append_event(by_hand, event("5"))
    by_hand.events = list(found.events)
    await kept.append_event(by_hand, event("5"))
    assert texts(await get(kept, "s1")) == ["1", "3", "4", "5"]


async def test_a_session_that_was_deleted_and_made_again(kept: ForgeSessionService) -> None:
    old = await kept.create_session(**WHO, session_id="s1")
    await kept.delete_session(**WHO, session_id="s1")
    await kept.create_session(**WHO, session_id="s1")
    with pytest.raises(StaleSessionError):
        await kept.append_event(old, event("lost"))
    assert texts(await get(kept, "s1")) == []


async def test_branches_of_one_run_share_a_session_object(kept: ForgeSessionService) -> None:
    made = await kept.create_session(**WHO, session_id="s1")
    await asyncio.gather(*(kept.append_event(made, event(f"{number}", app__n=number)) for number in range(20)))
    found = await get(kept, "s1")
    assert sorted(texts(found)) == sorted(str(number) for number in range(20))
    last = found.events[-1].actions.state_delta
    assert found.state == last


async def test_shared_state_that_an_ended_process_left(kept: ForgeSessionService) -> None:
    """A change of shared state is stored with its event until it was moved to the shared state."""
    made = await kept.create_session(**WHO, session_id="s1", state={"app:a": 0})
    Memory(kept.store, "adk/tea/ann/s1").write({"shared": {"app:": {"a": 1}, "user:": {"u": 2}}})
    found = await get(kept, "s1")
    assert found.state == {"app:a": 1, "user:u": 2} and await kept.get_user_state(**WHO) == {}
    await kept.append_event(made, event(user__u=3))
    assert (await get(kept, "s1")).state == {"app:a": 1, "user:u": 3}
    assert await kept.get_user_state(**WHO) == {"u": 3}
    shared = Memory(kept.store, "adk/tea/ann/s1").get("shared")
    assert shared is not None and shared.value == {}


async def test_state_that_is_not_json(kept: ForgeSessionService) -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    made = await kept.create_session(**WHO, session_id="s1", state={"when": moment, "call": len})
    assert made.state == {"when": "2026-01-02T00:00:00Z", "call": "<built-in function len>"}


async def test_an_earlier_moment(kept: ForgeSessionService) -> None:
    made = await kept.create_session(**WHO, session_id="s1", state={"app:a": 1})
    await kept.append_event(made, event("before", own=1))
    time.sleep(0.01)
    moment = datetime.now(timezone.utc)
    time.sleep(0.01)
    await kept.append_event(made, event("after", own=2, app__a=2, user__u=1))
    await kept.create_session(**WHO, session_id="s2")
    past = kept.at(moment)
    found = await get(past, "s1")
    assert texts(found) == ["before"] and found.state == {"app:a": 1, "own": 1}
    assert [one.id for one in (await past.list_sessions(**WHO)).sessions] == ["s1"]
    assert await past.get_user_state(**WHO) == {}
    with pytest.raises(Invalid, match="past"):
        await past.append_event(found, event())
    assert (await get(kept, "s1")).state == {"app:a": 2, "own": 2, "user:u": 1}


class Echo(BaseLlm):
    """A stand-in model: it repeats what the user said last, and how often the user spoke."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = [one.parts[0].text for one in llm_request.contents if one.role == "user" and one.parts]
        reply = types.Part(text=f"{said[-1]} {len(said)}")
        yield LlmResponse(content=types.Content(role="model", parts=[reply]))


async def ask(service: BaseSessionService, name: str, words: str) -> str | None:
    agent = LlmAgent(name="echo", model=Echo(model="echo"), output_key="user:last")
    runner = Runner(app_name="tea", agent=agent, session_service=service)
    message = types.Content(role="user", parts=[types.Part(text=words)])
    answer = None
    async for one in runner.run_async(user_id="ann", session_id=name, new_message=message):
        if one.content and one.content.parts:
            answer = one.content.parts[0].text
    return answer


async def test_a_runner_of_adk(service: BaseSessionService) -> None:
    await service.create_session(**WHO, session_id="s1")
    assert await ask(service, "s1", "green") == "green 1"
    assert await ask(service, "s1", "black") == "black 2"
    found = await get(service, "s1")
    assert texts(found) == ["green", "green 1", "black", "black 2"]
    assert found.state == {"user:last": "black 2"}


WORKER = """
import asyncio, os, sys
from forge_store.adk import ForgeSessionService
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

async def main(path, name, count, end):
    service = ForgeSessionService.from_path(path)
    for number in range(count):
        while True:
            session = await service.get_session(app_name="tea", user_id="ann", session_id="s1")
            seen = session.state.get("app:count", 0)
            delta = {f"{name}{number}": True, "app:count": seen + 1}
            made = Event(author=name, invocation_id="i", actions=EventActions(state_delta=delta))
            try:
                await service.append_event(session, made)
                break
            except StaleSessionError:
                pass
    if end:
        os._exit(end)
    service.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


async def test_two_processes(path: Path) -> None:
    with ForgeSessionService.from_path(path) as kept:
        await kept.create_session(**WHO, session_id="s1")
        run(WORKER, [(path, "a", 8, 0), (path, "b", 8, 0)])
        found = await get(kept, "s1")
    names = {f"{name}{number}": True for name in "ab" for number in range(8)}
    assert found.state == {**names, "app:count": 16} and len(found.events) == 16


async def test_a_process_that_ends_abruptly(path: Path) -> None:
    with ForgeSessionService.from_path(path) as kept:
        await kept.create_session(**WHO, session_id="s1")
        run(WORKER, [(path, "a", 2, 9)], code=9)
        assert await ask(kept, "s1", "green") == "green 1"
        found = await get(kept, "s1")
    assert found.state == {"a0": True, "a1": True, "app:count": 2, "user:last": "green 1"}
