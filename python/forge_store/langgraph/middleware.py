"""The middleware for agents of LangChain, which the package `langchain` has to be installed for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import RemoveMessage

from .tool_calls import REMOVE_ALL, answered


class RepairToolCalls(AgentMiddleware[AgentState[Any], Any]):
    """Answers the open tool calls of a thread before each call of the model, as `repair` does.

    `results` has what is known of calls, by their id.
    """

    def __init__(self, results: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.tools = []
        self.results = results

    def before_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        """The messages in place of those of the state; nothing if no call is open."""
        mended = answered(state["messages"], self.results)
        if mended is None:
            return None
        return {"messages": [RemoveMessage(id=REMOVE_ALL), *mended]}

    async def abefore_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        """As `before_model`, which only looks at the messages."""
        return self.before_model(state, runtime)
