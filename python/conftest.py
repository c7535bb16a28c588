"""Gives every test its own home directory, so that it uses no store, key or setting of the user."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import forge_store
import pytest

if TYPE_CHECKING:
    from forge_store.langgraph import ForgeSaver
    from postgres import PostgresServer

# CrewAI has an environment of its own, since it needs other versions of packages than the others.
collect_ignore = (
    [] if find_spec("crewai") else ["forge_store/crewai.py", "tests/frameworks/test_crewai.py"]
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("FORGE_STORE", "FORGE_KEYRING", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def anyio_backend() -> str:
    """Tests that are coroutines run with asyncio."""
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[forge_store.Store]:
    with forge_store.open(path, create=True) as store:
        yield store


@pytest.fixture
def session(store: forge_store.Store) -> forge_store.Session:
    return store.session("bug-42")


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace: dict[str, Any], tmp_path: Path) -> None:
    doctest_namespace["forge_store"] = forge_store
    doctest_namespace["path"] = tmp_path / "doctest"


@pytest.fixture
def saver(path: Path) -> Iterator[ForgeSaver]:
    """A LangGraph saver on a store in a folder."""
    from forge_store.langgraph import ForgeSaver

    with ForgeSaver.from_path(path) as saver:
        yield saver


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    from postgres import started_server

    with started_server() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The address of a new database."""
    return postgres.new_database()
