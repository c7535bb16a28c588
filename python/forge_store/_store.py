"""Stores."""

from __future__ import annotations

import atexit
import weakref
from datetime import datetime, timedelta, timezone
from os import PathLike
from types import TracebackType
from typing import Iterable

from . import _forge
from ._session import Async, Progress, Session
from ._values import (
    SearchHit,
    SearchPage,
    SessionInfo,
    Verification,
    listed,
    refusal,
    verification_of,
)

_open: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """An open store. Use it in a ``with`` statement, or close it.

    Any number of threads may use it. After ``os.fork``, the child opens it again automatically.

    >>> with forge_store.in_memory() as store:
    ...     _ = store.session("slow queue").note("it began on Monday")
    ...     [info.name for info in store.sessions()]
    ['slow queue']
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _forge.Store) -> None:
        if not isinstance(native, _forge.Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("forge_store.open(...) and forge_store.in_memory() make a Store")
        self._native = native
        _open.add(self)

    @property
    def native(self) -> _forge.Store:
        """The native object, for classes that build on a store."""
        return self._native

    @property
    def path(self) -> str | None:
        """Its folder; ``None`` if it is in memory or in a database."""
        path = self._native.path
        return None if path is None else str(path)

    @property
    def address(self) -> str | None:
        """The address of the database that it is in, without a password; else ``None``."""
        place = self._native.database
        return None if place is None else place[0]

    @property
    def name(self) -> str | None:
        """Its name in the database; ``None`` if it is in files or in memory."""
        place = self._native.database
        return None if place is None else place[1]

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    @property
    def encrypted(self) -> bool:
        """Whether it is encrypted."""
        return bool(self._native.about()["encrypted"])

    @property
    def seals(self) -> str:
        """``sealed``; ``unsealed``; ``no_key`` or ``no_witness``, if the key or the witness is not on
        this machine: then what is read cannot be fully verified, and claims cannot be changed."""
        return str(self._native.about()["seals"])

    def close(self) -> None:
        """Closes it. A call that is still running in another thread completes."""
        self._native.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        place = "in memory" if self.address is None else f"{self.name} in {self.address}"
        return f"<Store {self.path or place}{state}>"

    def session(self, name: str | None = None, *, create: bool = True) -> Session:
        """The debugging session with this name, which is created if there is none.

        With ``create=False`` a name, an id, the beginning of an id or an agent's own id finds a
        session, also one of another kind such as a thread, or raises ``NotFound``. Without a name
        it is the current session, which the command ``forge`` uses too.
        """
        return Session(self, self._native.session(name, create))

    def sessions(self) -> list[SessionInfo]:
        """The sessions of all kinds."""
        return [SessionInfo(**known) for known in self._native.sessions()]

    def restore_session(self, name: str, kind: str = "debug") -> Session:
        """Brings back the session with this name or id that was dropped last, for example a thread
        that a saver deleted (kind ``graph``) or a memory (kind ``memory``).

        Raises ``NotFound`` if there is none, or if a sweep has removed it, and ``Conflict`` if
        another session has its name by now.
        """
        return Session(self, self._native.restore_session(name, kind))

    def search(
        self,
        words: str,
        *,
        sessions: Iterable[Session | Async[Session]] | None = None,
        kinds: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Everything recorded that has all these words, the latest first.

        >>> store = forge_store.in_memory()
        >>> _ = store.session("slow queue").note("the lease is too short")
        >>> store.search("lease").hits[0].id
        'N1'
        """
        if limit == 0:
            next = "leave 'limit' out, or give it 1 or more"
            raise refusal(_forge.Invalid, "a search shows at least one hit", next)
        ids = _ids_of(sessions)
        kinds = listed("kinds", kinds)
        page = self._native.search(words, ids, kinds, since, until, limit, cursor)
        hits = tuple(SearchHit(**hit) for hit in page["hits"])
        return SearchPage(hits, page["cursor"], page["total"])

    def verify(self, *, full: bool = False, progress: Progress | None = None) -> Verification:
        """Checks the store; with ``full`` every object and every derived row as well.

        ``progress`` is called with the seconds that it has taken so far; an exception from it, or
        Ctrl-C, ends the call.
        """
        return verification_of(self._native.verify(full, progress))

    def backup(self, to: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Copies the store to a folder, as of one moment, while others write to it.

        A store in a database is backed up with the database.
        """
        self._native.backup(to, progress)

    def export_bundle(
        self,
        to: str | PathLike[str],
        *,
        sessions: Iterable[Session | Async[Session]] | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Writes these sessions, or all, as one file; returns its size.

        ``progress`` is called with the bytes written so far; after an exception from it, or
        Ctrl-C, no file is left.
        """
        ids = _ids_of(sessions)
        return int(self._native.export_bundle(to, ids, progress)["bytes"])

    def import_bundle(
        self,
        source: str | PathLike[str],
        *,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Imports the sessions of a bundle; returns their names. ``name`` renames the only session."""
        return list(self._native.import_bundle(source, name, progress)["sessions"])

    def sweep(
        self, *, older_than: timedelta = timedelta(days=14), progress: Progress | None = None
    ) -> None:
        """Permanently removes what was pruned longer ago than this; ``undo`` cannot restore it then."""
        self._native.sweep(datetime.now(timezone.utc) - older_than, progress)


def open(
    path: str | PathLike[str] | None = None,
    *,
    name: str | None = None,
    create: bool = False,
    read_only: bool = False,
    redact: bool = True,
    allow: Iterable[str] = (),
    sealed: bool | None = None,
    encrypted: bool = False,
    lock_timeout: float = 5.0,
    checkpoints: bool = True,
) -> Store:
    """Opens a store.

    Without a path it is the one that ``FORGE_STORE`` names, or the nearest ``.forge`` in the
    working directory or above, as for the command ``forge``. ``postgres://HOST/DATABASE`` is the
    store ``name`` in a PostgreSQL database.

    With ``create`` it is made if there is none: ``encrypted`` if that is asked for, and sealed,
    unless ``sealed`` is false. In a database it is sealed only if ``sealed`` is true, because all
    that write to a sealed store need its key. Keys are in forge's keyring. An existing store that
    is not encrypted or sealed is refused, if that is asked for.

    Secrets of known forms are removed from everything that is written, unless ``redact`` is false;
    ``allow`` names exceptions (a text, or ``kind:NAME``). The settings of the command ``forge`` are
    not read.

    Events (a confirmed hypothesis, a finished check) make checkpoints, unless ``checkpoints`` is
    false.
    """
    arguments: _forge.OpenArguments = {
        "create": create,
        "read_only": read_only,
        "redact": redact,
        "allow": listed("allow", allow),
        "sealed": sealed,
        "encrypted": encrypted,
        "lock_timeout": lock_timeout,
        "checkpoints": checkpoints,
    }
    return Store(_forge.Store.open(path, name, arguments))


def in_memory(
    *, redact: bool = True, allow: Iterable[str] = (), checkpoints: bool = True
) -> Store:
    """Makes a store in memory, for tests and temporary work. It ends with its process."""
    allow = listed("allow", allow)
    return Store(_forge.Store.in_memory(redact=redact, allow=allow, checkpoints=checkpoints))


def _ids_of(sessions: Iterable[Session | Async[Session]] | None) -> list[str] | None:
    if sessions is None:
        return None
    given = [one.sync if isinstance(one, Async) else one for one in listed("sessions", sessions)]
    for one in given:
        if not isinstance(one, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{one!r} is no session: give what store.session(...) returns")
    return [one.id for one in given]


def native_of(store: Store) -> _forge.Store:
    """The native object of an argument. Refuses what is no store, such as the path of one."""
    if not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = f"the store is of type {type(store).__name__}"
        raise TypeError(f"{what}: give a Store, such as forge_store.open(...) returns")
    return store.native


@atexit.register
def _close_all() -> None:
    for store in list(_open):
        store.close()
