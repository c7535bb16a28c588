"""Open tool calls are answered, and threads that wait are left alone."""

from __future__ import annotations

from typing import Any

from forge_store.langgraph import ForgeSaver, answered, repair
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from saver_steps import config


def call(name: str) -> Any:
    return {"id": name, "name": "search", "args": {}}


def asked(*names: str) -> AIMessage:
    return AIMessage("", id="-".join(names), tool_calls=[call(name) for name in names])


def result(name: str) -> ToolMessage:
    return ToolMessage("found", tool_call_id=name, id=f"result-{name}")


def shapes(messages: Any) -> list[str]:
    return [getattr(one, "tool_call_id", one.type) for one in messages]


def test_answers_stand_where_the_results_stand() -> None:
    messages = [asked("a", "b"), result("b"), HumanMessage("well?"), asked("c"), HumanMessage("?")]
    mended = answered(messages, {"c": "the result after all"})
    assert mended is not None
    assert shapes(mended) == ["ai", "b", "a", "human", "ai", "c", "human"]
    assert (mended[2].status, mended[5].status) == ("error", "success")  # type: ignore[attr-defined]
    assert mended[5].content == "the result after all"
    assert answered(mended) is None


def test_calls_that_may_still_be_run_are_left_alone() -> None:
    waiting: list[list[BaseMessage]] = [[], [asked("a")], [asked("a", "b"), result("a")]]
    waiting.append([HumanMessage("x")])
    for messages in waiting:
        assert answered(messages) is None


def test_a_thread_is_repaired_unless_it_waits(saver: ForgeSaver) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [asked("a")]})
    builder.add_node("tools", lambda state: {"messages": [result("a")]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "tools")
    builder.add_edge("tools", END)
    graph = builder.compile(checkpointer=saver, interrupt_before=["tools"])
    graph.invoke({"messages": [HumanMessage("find it", id="h1")]}, config())
    assert graph.get_state(config()).next == ("tools",)
    assert not repair(graph, config())
    # The person goes on instead of letting the tools run.
    ending = [HumanMessage("never mind", id="h2")]
    graph.update_state(config(), {"messages": ending}, as_node="tools")
    assert repair(graph, config())
    assert shapes(graph.get_state(config()).values["messages"]) == ["human", "ai", "a", "human"]
    assert not repair(graph, config())
