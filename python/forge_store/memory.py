"""Memories: values under keys, each with a version, two times and its history.

>>> from forge_store.memory import Memory
>>> memory = Memory(forge_store.in_memory(), "settings")
>>> memory.write({"theme": "dark", "tabs": [1, 2]})
>>> memory.get("theme").value
'dark'
>>> memory.write({"theme": "light"}, expected={"theme": 1})
>>> [(item.key, item.value, item.version) for item in memory.items()]
[('tabs', [1, 2], 1), ('theme', 'light', 2)]
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Iterable, Mapping

from . import _forge
from ._session import MomentLike, Session
from ._store import Store, native_of
from ._values import listed


@dataclass(frozen=True)
class Item:
    """A value of a memory."""

    key: str
    value: Any
    """A JSON value."""
    version: int
    """How often it was written since it was added: 1, 2, 3."""
    created_at: datetime
    updated_at: datetime


class Memory:
    """A memory of a store. It begins with its first write.

    Values are JSON values and come back as they are (a tuple as a list), unless the store removes a
    secret from them. Keys are texts of at most 4096 bytes. A memory is a session of kind
    ``memory``, so it has a history:

    >>> memory = Memory(forge_store.in_memory(), "settings")
    >>> memory.write({"theme": "dark"})
    >>> before = memory.session.head
    >>> memory.write({"theme": "light"})
    >>> memory.get("theme", at=before).value
    'dark'
    >>> _ = memory.session.undo()
    >>> memory.get("theme").value
    'dark'
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._native = _forge.Memory(native_of(store), name)

    @property
    def session(self) -> Session | None:
        """Its session, for ``diff``, ``restore``, ``undo`` and ``branch``; ``None`` before the
        first write."""
        id = self._native.session_id()
        return None if id is None else Session(self._store, self._store.native.session(id, False))

    def get(self, key: str, *, at: MomentLike = None) -> Item | None:
        """The item with this key; with ``at`` as it was at a moment that ``Session.at`` takes."""
        found = self._native.get(key, self._moment(at))
        return None if found is None else Item(*found)

    def items(
        self,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int | None = None,
        at: MomentLike = None,
    ) -> list[Item]:
        """The items whose keys begin with ``prefix``, in the order of the keys' UTF-8 bytes.

        ``after`` leaves out all keys up to this one, and ``limit`` is the maximum number of items, so
        a long list can be read in pages. ``at`` reads them as they were.
        """
        found = self._native.items(prefix, after, limit, self._moment(at))
        return [Item(*item) for item in found]

    def write(
        self,
        puts: Mapping[str, Any] = {},
        deletes: Iterable[str] = (),
        *,
        expected: Mapping[str, int | None] | None = None,
        message: str | None = None,
    ) -> None:
        """Sets these items and removes those, all in one record or nothing.

        ``expected`` says which version of an item the caller has seen (``None``: there was none).
        If one has another version, ``Conflict`` is raised and nothing is written. If several processes
        expect the same version, one succeeds. ``message`` also makes a checkpoint.
        """
        gone = set(listed("deletes", deletes))
        self._native.write(dict(puts), gone, dict(expected or {}), message)

    def drop(self) -> bool:
        """Drops the memory; its name can be used again at once. Returns ``False`` if there was none.

        Until a sweep removes it, ``store.restore_session(name, "memory")`` brings it back.
        """
        return self._native.drop()

    @staticmethod
    def names(store: Store, prefix: str = "") -> list[str]:
        """The names of the memories of a store."""
        return _forge.Memory.names(native_of(store), prefix)

    def _moment(self, at: MomentLike) -> _forge.Moment | None:
        session = None if at is None else self.session
        return None if session is None else session.at(at)._native
