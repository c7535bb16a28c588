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
awaited.
Properties that read the store (``head``, ``state``, ``info``, ...) are methods here.
"""

from __future__ import annotations

import asyncio
from typing import Any, Callable, cast

import forge_store

_CLOSED = (forge_store.Store, forge_store.Shards)
_WRAPPED = (*_CLOSED, forge_store.Session, forge_store.Moment)


class Async:
    """A store, shards, a session or a moment whose calls are awaited; ``sync`` is the object itself."""

    __slots__ = ("sync",)

    def __init__(self, sync: Any) -> None:
        self.sync = sync

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        # Looked up on the class, since reading a property here would block the loop.
        member: Any = getattr(self.sync.__class__, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            given = [_plain(one) for one in arguments]
            named = {key: _plain(one) for key, one in options.items()}
            if isinstance(member, property):
                if given or named:
                    raise TypeError(f"'{name}' takes no arguments")
                return _wrap(await asyncio.to_thread(getattr, self.sync, name))
            return _wrap(await asyncio.to_thread(getattr(self.sync, name), *given, **named))

        return call

    async def __aenter__(self) -> Async:
        return self

    async def __aexit__(self, *_: object) -> None:
        if isinstance(self.sync, _CLOSED):
            await asyncio.to_thread(self.sync.close)

    def __repr__(self) -> str:
        return f"Async({self.sync!r})"


async def open(*arguments: Any, **options: Any) -> Async:
    """Opens a store as ``forge_store.open`` does."""
    return Async(await asyncio.to_thread(forge_store.open, *arguments, **options))


async def open_shards(*arguments: Any, **options: Any) -> Async:
    """Opens shards as ``forge_store.open_shards`` does."""
    return Async(await asyncio.to_thread(forge_store.open_shards, *arguments, **options))


def _wrap(value: Any) -> Any:
    return Async(value) if isinstance(value, _WRAPPED) else value


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value.sync if isinstance(value, Async) else value
