"""The session of the OpenAI Agents SDK, with the real package and a model that answers from a list."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import forge_store
import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory import Session, SessionSettings
from forge_store.openai_agents import ForgeSession
from forge_store.systems import Thread
from framework_processes import run
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class Answers(Model):
    """Gives these answers one after the other, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def get_response(self, *rest: Any, **more: Any) -> ModelResponse:
        input = more["input"]
        self.asked.append(list(input) if isinstance(input, list) else input)
        return ModelResponse(output=[self.answers.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    # An id begins with the kind of the item, and no two items have the same one.
    return ResponseOutputMessage(
        id=f"msg_{text.encode().hex()}"[:64],
        content=[part],
        role="assistant",
        status="completed",
        type="message",
    )


ODD: list[Any] = [
    {"role": "user", "content": "it is slow \U0001f600 \ud800"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "call_id": "c1", "name": "look up!", "arguments": {"n": 1.0}},
    {"type": "of_tomorrow", "payload": {"deep": [None, True, 1e-7, 12345678901234567890]}},
    {"type": "function_call_output", "call_id": "unknown", "output": [1, 2]},
    {"no": "type"},
    {"role": "user", "content": ""},
]


def test_items_come_back_equal_whatever_they_are(store: forge_store.Store) -> None:
    async def main() -> None:
        session = ForgeSession("odd", store)
        assert isinstance(session, Session)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.clear_session()
        await session.add_items([])
        await session.add_items(ODD[:3])
        await session.add_items(ODD[3:])
        assert await session.get_items() == ODD
        assert await session.get_items(2) == ODD[-2:]
        assert await session.get_items(0) == []
        assert await session.get_items(100) == ODD
        for item in reversed(ODD[2:]):
            assert await session.pop_item() == item
        assert await ForgeSession("odd", store).get_items() == ODD[:2]
        await session.clear_session()
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items(ODD)
        limited = ForgeSession("odd", store, session_settings=SessionSettings(limit=1))
        assert await limited.get_items() == ODD[-1:]
        assert await limited.get_items(2) == ODD[-2:]
        assert await ForgeSession("another", store).get_items() == []

    asyncio.run(main())


def test_what_is_no_json_is_refused_and_nothing_is_added(store: forge_store.Store) -> None:
    session = ForgeSession("s", store)
    for bad in (float("nan"), {1, 2}):
        items: list[Any] = [{"role": "user", "content": "good"}, {"role": "user", "content": bad}]
        with pytest.raises(forge_store.Invalid, match="json.dumps"):
            asyncio.run(session.add_items(items))
    text: Any = "hello"
    with pytest.raises(TypeError, match="items is a list, and not one text"):
        asyncio.run(session.add_items(text))
    assert asyncio.run(session.get_items()) == []


def test_two_turns_of_an_agent_with_a_tool(path: Path) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"sunny in {city}"

    call = ResponseFunctionToolCall(
        call_id="c1", name="weather", arguments='{"city": "Bonn"}', type="function_call"
    )
    quiet = RunConfig(tracing_disabled=True)
    first = Answers(call, said("Sunny."))
    with forge_store.open(path, create=True) as store:
        session = ForgeSession("trip", store)
        agent = Agent(name="guide", model=first, tools=[weather])
        done = asyncio.run(Runner.run(agent, "weather?", session=session, run_config=quiet))
        assert done.final_output == "Sunny."
    # Another process would open the store again, as this does.
    second = Answers(said("Yes, in Bonn."))
    with forge_store.open(path) as store:
        session = ForgeSession("trip", store)
        agent = Agent(name="guide", model=second, tools=[weather])
        done = asyncio.run(Runner.run(agent, "in Bonn?", session=session, run_config=quiet))
        assert done.final_output == "Yes, in Bonn."
        asked = second.asked[0]
        kinds = [item.get("type") or item["role"] for item in asked]
        assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
        assert asked[2]["output"] == "sunny in Bonn"
        items: list[Any] = asyncio.run(session.get_items())
        assert items[:5] == asked and len(items) == 6
        # It is a thread as any other: what its provider refuses would be mended.
        thread = Thread(store, "trip")
        assert thread.load(sanitize=False) == items == thread.load()
        assert store.search("sunny Bonn").hits


def test_two_processes_add_items_and_none_is_lost(path: Path) -> None:
    program = """
        import asyncio, sys, forge_store
        from forge_store.openai_agents import ForgeSession

        async def main(store):
            session = ForgeSession("both", store)
            for number in range(30):
                pair = [{"role": "user", "content": f"{sys.argv[2]} {number} {half}"} for half in "ab"]
                await session.add_items(pair)

        with forge_store.open(sys.argv[1]) as store:
            asyncio.run(main(store))
        """
    with forge_store.open(path, create=True) as store:
        run(textwrap.dedent(program), [(path, name) for name in ("x", "y")])
        items: list[Any] = asyncio.run(ForgeSession("both", store).get_items())
    texts = [item["content"] for item in items]
    assert len(texts) == 120
    for name in ("x", "y"):
        own = [text for text in texts if text.startswith(name)]
        assert own == [f"{name} {number} {half}" for number in range(30) for half in "ab"]
    # What is added at once stays together.
    assert all(texts[place][:-1] == texts[place + 1][:-1] for place in range(0, 120, 2))


def test_the_sdk_is_imported_only_when_it_is_needed() -> None:
    program = "import sys, forge_store.openai_agents; print('agents' in sys.modules)"
    assert [said.strip() for said in run(program, [()])] == ["False"]
