"""The middleware for agents of LangChain. It needs the package `langchain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import RemoveMessage

from .tool_calls import REMOVE_ALL, answered


class RepairToolCalls(AgentMiddleware[AgentState[Any], Any]):
    """Answers the open tool calls of a thread before each call of the model, as `repair` does.

    `results` has the known results of calls, by their id.
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
        """The same as `before_model`, which does not block."""
        return self.before_model(state, runtime)
