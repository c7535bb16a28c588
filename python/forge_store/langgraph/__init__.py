"""LangGraph on a forge store: a checkpoint saver with the whole contract.

A thread is a session with history, branches and undo; a checkpoint stores only what changed.
"""

from .saver import ForgeSaver, checkpointer
from .tool_calls import answered, repair

__all__ = ["ForgeSaver", "answered", "checkpointer", "repair"]
