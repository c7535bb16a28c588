"""pytest -p langgraph_plugin: LangGraph's own tests with forge's saver in place of SqliteSaver.

With FORGE_LANGGRAPH_POSTGRES, the threads of each test are in shards in a PostgreSQL database, otherwise in memory.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from typing import Any

sys.path.insert(0, os.getcwd())

import tests.conftest_checkpointer as fixtures
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

import forge_store
from forge_store.langgraph import ForgeSaver

numbers = count()
address = None
if os.environ.get("FORGE_LANGGRAPH_POSTGRES"):
    from postgres import started_server

    servers = ExitStack()
    atexit.register(servers.close)
    address = servers.enter_context(started_server()).new_database()


@contextmanager
def _saver(**options: Any) -> Iterator[ForgeSaver]:
    if address is None:
        with ForgeSaver(**options) as saver:
            yield saver
    else:
        name = f"test {next(numbers)}"
        with forge_store.open_shards(address, name=name, shards=2, create=True, redact=False) as shards:
            yield ForgeSaver(shards, **options)


@contextmanager
def _plain() -> Iterator[ForgeSaver]:
    with _saver() as saver:
        fixtures._apply_strict_msgpack(saver)
        yield saver


@contextmanager
def _sealed() -> Iterator[ForgeSaver]:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")
    with _saver(serde=serde) as saver:
        yield saver


@asynccontextmanager
async def _async() -> AsyncIterator[ForgeSaver]:
    with _saver() as saver:
        fixtures._apply_strict_msgpack(saver)
        yield saver


fixtures._checkpointer_sqlite = _plain
fixtures._checkpointer_sqlite_aes = _sealed
fixtures._checkpointer_sqlite_aio = _async
