"""The common part of the adapters of agent frameworks: a store, and memories named by ids."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _forge
from ._closing import Closing
from ._store import Store, in_memory, native_of
from ._store import open as open_store
from ._values import refusal
from .memory import Item, Memory

if TYPE_CHECKING:
    from typing_extensions import Self

#: How long a part of a name may be. Three parts and a prefix are a valid name of a session.
_PART_BYTES = 56


def missing(extra: str, error: ImportError) -> ImportError:
    """The error for a framework that is not installed; it names the extra that installs it."""
    what = f"this needs the extra '{extra}' ({error})"
    return ImportError(f"{what}; install it with: pip install 'forge-store[{extra}]'")


def memory_name(*parts: str) -> str:
    """A name made of ids of any form, with ``/`` between them. Different ids make different names:
    what a name cannot hold is replaced by ``%`` and its code, and the end of a long id by a hash.

    >>> memory_name("adk", "tea", "user/7", "s1")
    'adk/tea/user%2F7/s1'
    """
    return "/".join(_part(part) for part in parts)


def _part(text: str) -> str:
    # An empty id is a name of its own too: no other id is written as a lone "%".
    quoted = "".join(_quoted(letter) for letter in text) or "%"
    data = quoted.encode()
    if len(data) <= _PART_BYTES:
        return quoted
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return data[: _PART_BYTES - 33].decode(errors="ignore") + "~" + digest


def _quoted(letter: str) -> str:
    if letter not in "/%~" and letter.isprintable() and (letter == " " or not letter.isspace()):
        return "%20" if letter == " " else letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


class Memories:
    """The memories of a store, now or as they were at a moment. Its methods block the caller."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.moment: str | datetime | None = None

    def at(self, moment: str | datetime) -> Self:
        """The same memories as they were at a moment."""
        past = copy.copy(self)
        past.moment = moment
        return past

    def get(self, name: str, key: str) -> Item | None:
        """An item of a memory."""
        try:
            return Memory(self.store, name).get(key, at=self.moment)
        except _forge.NotFound as error:
            self._began_later(error)
            return None

    def items(
        self, name: str, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Item]:
        """Items of a memory, in the order of their keys."""
        memory = Memory(self.store, name)
        try:
            return memory.items(prefix, after=after, limit=limit, at=self.moment)
        except _forge.NotFound as error:
            self._began_later(error)
            return []

    def names(self, prefix: str) -> list[str]:
        """The names of the memories."""
        return Memory.names(self.store, prefix)

    def write(
        self,
        name: str,
        puts: Mapping[str, Any],
        deletes: Iterable[str] = (),
        *,
        expected: Mapping[str, int | None] | None = None,
        message: str | None = None,
    ) -> None:
        """Changes a memory in one record; raises `Conflict` if a version is not as expected."""
        self._refuse_in_the_past()
        Memory(self.store, name).write(puts, deletes, expected=expected, message=message)

    def drop(self, name: str) -> bool:
        """Drops a memory, so that `forge session restore` can bring it back."""
        self._refuse_in_the_past()
        return Memory(self.store, name).drop()

    def _began_later(self, error: _forge.NotFound) -> None:
        """Raises the error, unless it says that the memory began after the moment."""
        if self.moment is None or not str(error).startswith("nothing is known at "):
            raise error

    def _refuse_in_the_past(self) -> None:
        if self.moment is not None:
            what = "a past moment cannot be changed"
            raise refusal(_forge.Invalid, what, "write through the object that at() was called on")


M = TypeVar("M", bound=Memories)


class Adapter(Closing, Generic[M]):
    """The base of the adapters: it has memories, and closes a store that it opened.

    Without a store, everything is kept in memory. A store that the caller passes is not closed.
    """

    # Frameworks have private names of their own, hence the prefix.
    _forge: M
    _forge_owned: bool

    def _forge_use(self, kind: type[M], store: Store | None) -> None:
        self._forge_owned = store is None
        if store is not None:
            native_of(store)
        self._forge = kind(in_memory(redact=False) if store is None else store)

    @classmethod
    def from_path(
        cls, path: str | PathLike[str] | None = None, *, encrypted: bool = False, **options: Any
    ) -> Self:
        """Opens or creates the store at a path. Use it in a ``with`` statement, or close it.

        Secrets are not removed from what is stored, because a framework must get back exactly
        what it wrote.
        """
        store = open_store(path, create=True, redact=False, encrypted=encrypted)
        make: Any = cls
        made: Self = make(store, **options)
        made._forge_owned = True
        return made

    @property
    def store(self) -> Store:
        """The store."""
        return self._forge.store

    def at(self, moment: str | datetime) -> Self:
        """A read-only view of it at a moment (``"2 hours ago"``, an aware ``datetime``)."""
        past = copy.copy(self)
        past._forge_owned = False
        past._forge = self._forge.at(moment)
        return past

    def close(self) -> None:
        """Closes the store, if it was opened here."""
        if self._forge_owned:
            self._forge.store.close()
