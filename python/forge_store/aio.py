"""The same API for asyncio: each call runs in a thread, so that the event loop is not blocked.

>>> import asyncio
>>> from forge_store import aio
>>> async def main():
...     async with await aio.open(path, create=True) as store:
...         session = await store.session("slow queue")
...         note = await session.note("it began on Monday")
...         return note.id, len(await session.log())
>>> asyncio.run(main())
('N1', 1)

Every method of ``Store``, ``Shards``, ``Session`` and ``Moment`` has the same name here, and is
awaited. Properties (``head``, ``state``, ``info``, ...) are methods here. If an ``await`` is
cancelled, its call still completes in its thread.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import forge_store

from ._session import Async, Moment, Session
from ._shards import Shards
from ._store import Store
from ._values import Branch, Checkpoint, SessionInfo, State

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Self

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Store | Shards)

Read = Callable[[], Coroutine[Any, Any, R]]


class _Method(Generic[P, R]):
    """The type of a method that is awaited."""

    def __get__(self, holder: object, owner: Any = None) -> Callable[P, Coroutine[Any, Any, R]]:
        raise NotImplementedError


@overload
def _awaited(member: Callable[Concatenate[Any, P], Store]) -> _Method[P, AsyncStore]: ...
@overload
def _awaited(member: Callable[Concatenate[Any, P], list[Store]]) -> _Method[P, list[AsyncStore]]: ...
@overload
def _awaited(member: Callable[Concatenate[Any, P], Session]) -> _Method[P, AsyncSession]: ...
@overload
def _awaited(member: Callable[Concatenate[Any, P], Moment]) -> _Method[P, AsyncMoment]: ...
@overload
def _awaited(member: Callable[Concatenate[Any, P], R]) -> _Method[P, R]: ...
def _awaited(member: Callable[..., Any]) -> Any:
    return _method(member)


def _read(member: Any) -> Any:
    """The method of an object of this module that reads this property in a thread."""
    return _method(member.fget)


def _method(member: Callable[..., Any]) -> Any:
    """The method of an object of this module that calls this one in a thread."""

    @functools.wraps(member)
    async def call(self: Async[Any], *arguments: Any, **options: Any) -> Any:
        return _wrap(await asyncio.to_thread(member, self.sync, *arguments, **options))

    return call


class _Closing(Async[C]):
    """A base for what is closed at the end of ``async with``."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.close)


class AsyncMoment(Async[Moment]):
    """A `Moment` whose calls are awaited."""

    __slots__ = ()

    revision: Read[int | None] = _read(Moment.revision)
    time: Read[datetime | None] = _read(Moment.time)
    branch: Read[str] = _read(Moment.branch)
    checkpoint: Read[Checkpoint | None] = _read(Moment.checkpoint)
    state: Read[State] = _read(Moment.state)
    branches: Read[list[Branch]] = _read(Moment.branches)
    claim = _awaited(Moment.claim)
    facts = _awaited(Moment.facts)
    log = _awaited(Moment.log)
    history = _awaited(Moment.history)
    why = _awaited(Moment.why)
    brief = _awaited(Moment.brief)


class AsyncSession(Async[Session]):
    """A `Session` whose calls are awaited."""

    __slots__ = ()

    id: Read[str] = _read(Session.id)
    info: Read[SessionInfo] = _read(Session.info)
    name: Read[str] = _read(Session.name)
    head: Read[AsyncMoment] = _read(Session.head)
    branches: Read[list[Branch]] = _read(Session.branches)
    hypothesis = _awaited(Session.hypothesis)
    evidence = _awaited(Session.evidence)
    belief = _awaited(Session.belief)
    gap = _awaited(Session.gap)
    note = _awaited(Session.note)
    add = _awaited(Session.add)
    update = _awaited(Session.update)
    confirm = _awaited(Session.confirm)
    reject = _awaited(Session.reject)
    fill = _awaited(Session.fill)
    retract = _awaited(Session.retract)
    depend = _awaited(Session.depend)
    contradict = _awaited(Session.contradict)
    command = _awaited(Session.command)
    message = _awaited(Session.message)
    verification = _awaited(Session.verification)
    measurement = _awaited(Session.measurement)
    record = _awaited(Session.record)
    checkpoint = _awaited(Session.checkpoint)
    checkpoints = _awaited(Session.checkpoints)
    at = _awaited(Session.at)
    diff = _awaited(Session.diff)
    restore = _awaited(Session.restore)
    undo = _awaited(Session.undo)
    redo = _awaited(Session.redo)
    operations = _awaited(Session.operations)
    why = _awaited(Session.why)
    log = _awaited(Session.log)
    brief = _awaited(Session.brief)
    search = _awaited(Session.search)
    branch = _awaited(Session.branch)
    switch = _awaited(Session.switch)
    merge = _awaited(Session.merge)
    prune = _awaited(Session.prune)


class AsyncStore(_Closing[Store]):
    """A `Store` whose calls are awaited."""

    __slots__ = ()

    path: Read[str | None] = _read(Store.path)
    address: Read[str | None] = _read(Store.address)
    name: Read[str | None] = _read(Store.name)
    closed: Read[bool] = _read(Store.closed)
    encrypted: Read[bool] = _read(Store.encrypted)
    seals: Read[str] = _read(Store.seals)
    close = _awaited(Store.close)
    session = _awaited(Store.session)
    sessions = _awaited(Store.sessions)
    restore_session = _awaited(Store.restore_session)
    search = _awaited(Store.search)
    verify = _awaited(Store.verify)
    backup = _awaited(Store.backup)
    export_bundle = _awaited(Store.export_bundle)
    import_bundle = _awaited(Store.import_bundle)
    sweep = _awaited(Store.sweep)


class AsyncShards(_Closing[Shards]):
    """`Shards` whose calls are awaited."""

    __slots__ = ()

    name: Read[str] = _read(Shards.name)
    count: Read[int] = _read(Shards.count)
    closed: Read[bool] = _read(Shards.closed)
    close = _awaited(Shards.close)
    of = _awaited(Shards.of)
    all = _awaited(Shards.all)


_CLASSES: dict[type, type[Async[Any]]] = {
    Store: AsyncStore,
    Shards: AsyncShards,
    Session: AsyncSession,
    Moment: AsyncMoment,
}


def _wrap(value: Any) -> Any:
    if isinstance(value, list):
        return [_wrap(one) for one in cast("Iterable[Any]", value)]
    kind = _CLASSES.get(value.__class__)
    return value if kind is None else kind(value)


def _opening(function: Callable[P, C], kind: Callable[[C], R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(function)
    async def call(*arguments: P.args, **options: P.kwargs) -> R:
        return kind(await asyncio.to_thread(function, *arguments, **options))

    return call


open = _opening(forge_store.open, AsyncStore)
open_shards = _opening(forge_store.open_shards, AsyncShards)
