"""The middleware answers open tool calls in an agent of LangChain, with a model that keeps what it was asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from forge_store.langgraph import ForgeSaver, RepairToolCalls
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from saver_steps import config


class Answers(BaseChatModel):
    """Gives these answers one after the other, and refuses open calls as providers do."""

    answers: list[AIMessage]
    asked: list[list[str]] = []

    @property
    def _llm_type(self) -> str:
        return "answers"

    def bind_tools(self, *tools: Any, **more: Any) -> Answers:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> ChatResult:
        results = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
        calls = {call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls}
        if calls - results:
            raise ValueError("a tool call has no result")
        self.asked.append([one.type for one in messages])
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


@tool
def search(words: str) -> str:
    """Searches."""
    return f"found {words}"


def call(name: str) -> AIMessage:
    asked: Any = {"id": name, "name": "search", "args": {"words": "tea"}}
    return AIMessage("", tool_calls=[asked])


def interrupted(saver: ForgeSaver, *answers: AIMessage, repairs: bool = True, **more: Any) -> Any:
    """An agent whose process ended before it ran a call of its thread."""
    middleware = [RepairToolCalls(**more)] if repairs else []
    model = Answers(answers=list(answers), asked=[])
    agent = create_agent(model, [search], middleware=middleware, checkpointer=saver)
    lost = [HumanMessage("find it"), call("lost")]
    agent.update_state(config(), {"messages": lost})
    return agent, model


GO_ON: Any = {"messages": [HumanMessage("go on")]}


def test_without_it_the_model_refuses(saver: ForgeSaver) -> None:
    agent, _ = interrupted(saver, AIMessage("done"), repairs=False)
    with pytest.raises(ValueError, match="no result"):
        agent.invoke(GO_ON, config())


def test_a_lost_call_is_answered_before_the_model_is_called(saver: ForgeSaver) -> None:
    agent, model = interrupted(saver, call("c2"), AIMessage("done"))
    done = agent.invoke(GO_ON, config())
    kinds = ["human", "ai", "tool", "human", "ai", "tool", "ai"]
    assert [message.type for message in done["messages"]] == kinds
    assert [message.status for message in done["messages"] if message.type == "tool"] == [
        "error",
        "success",
    ]
    # The agent's own call was run, and not treated as a lost one.
    assert model.asked == [kinds[:4], kinds[:6]]
    assert [one.type for one in agent.get_state(config()).values["messages"]] == kinds


def test_a_known_result_is_given_also_without_blocking(saver: ForgeSaver) -> None:
    agent, _ = interrupted(saver, AIMessage("done"), results={"lost": "it was tea"})
    done = asyncio.run(agent.ainvoke(GO_ON, config()))
    (answer,) = [message for message in done["messages"] if message.type == "tool"]
    assert (answer.content, answer.status) == ("it was tea", "success")
