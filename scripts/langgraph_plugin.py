"""pytest -p langgraph_plugin: LangGraph's own tests with our saver where they use SqliteSaver."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

sys.path.insert(0, os.getcwd())

import tests.conftest_checkpointer as fixtures
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from forge_store.langgraph import ForgeSaver


@contextmanager
def _plain() -> Iterator[ForgeSaver]:
    with ForgeSaver() as saver:
        fixtures._apply_strict_msgpack(saver)
        yield saver


@contextmanager
def _sealed() -> Iterator[ForgeSaver]:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")
    with ForgeSaver(serde=serde) as saver:
        yield saver


@asynccontextmanager
async def _async() -> AsyncIterator[ForgeSaver]:
    async with ForgeSaver() as saver:
        fixtures._apply_strict_msgpack(saver)
        yield saver


fixtures._checkpointer_sqlite = _plain
fixtures._checkpointer_sqlite_aes = _sealed
fixtures._checkpointer_sqlite_aio = _async
