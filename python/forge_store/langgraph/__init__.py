"""LangGraph on a forge store: a checkpoint saver with the whole contract.

A thread is a session with history, branches and undo; a checkpoint stores only what changed.
"""

from .saver import ForgeSaver, checkpointer

__all__ = ["ForgeSaver", "checkpointer"]
