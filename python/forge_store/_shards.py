"""Several stores under one name, for many writers."""

from __future__ import annotations

from types import TracebackType
from typing import Iterable

from . import _forge
from ._store import Store
from ._values import listed, refusal


class Shards:
    """Stores in one database that share a name. Use them in a ``with`` statement, or close them.

    The name of a session chooses the shard that it is in. One store has one writer at a time, so
    with several, writers of different sessions seldom wait for each other. A shard is opened when
    it is first used. All shards use the same connections.
    """

    __slots__ = ("_closed", "_native", "_stores")

    def __init__(self, native: _forge.Shards) -> None:
        self._native = native
        self._stores: dict[int, Store] = {}
        self._closed = False

    @property
    def name(self) -> str:
        """Their name."""
        return self._native.name

    @property
    def count(self) -> int:
        """The number of shards."""
        return self._native.count

    @property
    def closed(self) -> bool:
        """Whether the shards were closed."""
        return self._closed

    def of(self, session: str) -> Store:
        """The store of the session with this name."""
        return self._shard(self._native.number_of(session))

    def all(self) -> list[Store]:
        """All stores, in the order of their numbers."""
        return [self._shard(number) for number in range(self.count)]

    def _shard(self, number: int) -> Store:
        if self._closed:
            next = "open them again with forge_store.open_shards()"
            raise refusal(_forge.Invalid, "the shards are closed", next)
        known = self._stores.get(number)
        if known is not None:
            return known
        # Without a lock, which a process could have when it is forked.
        opened = Store(self._native.shard(number))
        known = self._stores.setdefault(number, opened)
        if known is not opened:
            opened.close()
        return known

    def close(self) -> None:
        """Closes the shards. A call that is still running in another thread completes."""
        self._closed = True
        for store in list(self._stores.values()):
            store.close()

    def __enter__(self) -> Shards:
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
        return f"<Shards {self.name}, {self.count} stores{state}>"


def open_shards(
    address: str,
    *,
    name: str,
    shards: int | None = None,
    create: bool = False,
    read_only: bool = False,
    redact: bool = True,
    allow: Iterable[str] = (),
    sealed: bool = False,
    encrypted: bool = False,
    lock_timeout: float = 5.0,
    checkpoints: bool = True,
) -> Shards:
    """Opens the stores with this name in the database ``postgres://HOST/DATABASE``.

    With ``create``, this number of ``shards`` is made if there are none; their number cannot be
    changed later. The other arguments are the same as for ``open``.
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
    return Shards(_forge.Shards.open(address, name, shards, arguments))
