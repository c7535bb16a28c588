"""pytest -p langgraph_store_plugin: LangGraph's own tests with forge's store in place of theirs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

sys.path.insert(0, os.getcwd())

import langgraph.store.memory as memory
import langgraph.store.sqlite as sqlite
import langgraph.store.sqlite.aio as sqlite_aio

from forge_store.langgraph import ForgeStore
from forge_store.langgraph.store_expiry import ExpirySweeper


class _Store(ForgeStore):
    """A ForgeStore that is created like SqliteStore, with the same defaults."""

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: Any = None, ttl: Any = None
    ) -> Iterator[Any]:
        if index is not None:
            # SqliteStore has another name for the fields.
            index = {**index, "fields": index.get("text_fields")}
        if ttl is not None:
            ttl = {"refresh_on_read": False, **ttl}
        if conn_string == ":memory:":
            with cls(index=index, ttl=ttl) as store:
                yield store
        else:
            with cls.from_path(f"{conn_string}.forge", index=index, ttl=ttl) as store:
                yield store

    def setup(self) -> None:
        """There is nothing to set up."""


class _AsyncStore(_Store):
    """A ForgeStore with the coroutines of AsyncSqliteStore."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # The thread must call a function, not a coroutine.
        self._sweeper = ExpirySweeper(partial(ForgeStore.sweep_ttl, self))

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, *arguments: Any, **more: Any) -> AsyncIterator[Any]:
        with _Store.from_conn_string.__func__(cls, *arguments, **more) as store:
            yield store

    async def setup(self) -> None:
        """There is nothing to set up."""

    async def sweep_ttl(self) -> int:
        return ForgeStore.sweep_ttl(self)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        return ForgeStore.start_ttl_sweeper(self, sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        return await asyncio.to_thread(ForgeStore.stop_ttl_sweeper, self, timeout)


memory.InMemoryStore = ForgeStore
sqlite.SqliteStore = _Store
sqlite.AsyncSqliteStore = sqlite_aio.AsyncSqliteStore = _AsyncStore
