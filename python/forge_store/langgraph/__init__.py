"""LangGraph on a forge store: a checkpoint saver with the whole contract, and a long-term memory.

A thread is a session with history, branches and undo; a checkpoint stores only what changed.
"""

from .saver import ForgeSaver, checkpointer
from .store import ForgeStore
from .tool_calls import answered, repair

__all__ = ["ForgeSaver", "ForgeStore", "answered", "checkpointer", "repair"]
