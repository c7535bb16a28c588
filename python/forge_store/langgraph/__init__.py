"""LangGraph on a forge store: a checkpoint saver with the whole contract, and a long-term memory.

A thread is a session with history, branches and undo; a checkpoint stores only what changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._framework import missing

try:
    from .saver import ForgeSaver, checkpointer
    from .store import ForgeStore
    from .tool_calls import answered, repair
except ImportError as error:
    raise missing("langgraph", error) from error

if TYPE_CHECKING:
    from .middleware import RepairToolCalls

__all__ = ["ForgeSaver", "ForgeStore", "RepairToolCalls", "answered", "checkpointer", "repair"]


def __getattr__(name: str) -> Any:
    # Only the middleware needs the package langchain.
    if name == "RepairToolCalls":
        from .middleware import RepairToolCalls

        return RepairToolCalls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
