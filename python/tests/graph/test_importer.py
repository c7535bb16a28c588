"""Threads of LangGraph's own savers are taken over whole."""

from __future__ import annotations

import operator
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import forge_store
import pytest
from forge_store import Store
from forge_store.langgraph import ForgeSaver, importer
from forge_store.langgraph.__main__ import main
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    count: Annotated[int, operator.add]
    extra: Any


def build() -> Any:
    def talk(state: State) -> dict[str, Any]:
        answer = AIMessage(f"answer {len(state['messages'])}")
        return {"messages": [answer], "count": 1, "extra": {"set": {1, 2}, "none": None}}

    def ask(state: State) -> dict[str, Any]:
        return {"extra": interrupt("sure?")}

    inner = StateGraph(State)
    inner.add_node("talk", talk)
    inner.add_edge(START, "talk")
    inner.add_edge("talk", END)
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile(checkpointer=True))
    builder.add_node("ask", ask)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "ask")
    builder.add_edge("ask", END)
    return builder


def fill(saver: Any) -> None:
    """Three threads: one that was answered, one that waits at an interrupt, one with a fork."""
    graph = build().compile(checkpointer=saver)
    for name in ("answered", "waiting", "for\nked"):
        config: Any = {"configurable": {"thread_id": name}}
        for turn in range(3):
            graph.invoke({"messages": [HumanMessage(f"turn {turn}")]}, config)
            if name != "waiting" or turn < 2:
                graph.invoke(Command(resume=f"yes {turn}"), config)
    states = list(graph.get_state_history({"configurable": {"thread_id": "for\nked"}}))
    forked = graph.update_state(states[5].config, {"count": 100})
    graph.invoke(None, forked)


def contents(saver: Any) -> list[Any]:
    found = []
    for one in saver.list(None):
        parent = (one.parent_config or {"configurable": {}})["configurable"].get("checkpoint_id")
        found.append((one.config, one.checkpoint, one.metadata, parent, one.pending_writes))
    key = lambda row: [row[0]["configurable"][name] for name in sorted(row[0]["configurable"])]  # noqa: E731
    return sorted(found, key=key)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with forge_store.open(path, create=True, redact=False) as store:
        yield store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "threads ?.sqlite"
    with sqlite.SqliteSaver.from_conn_string(str(path)) as saver:
        fill(saver)
    return path


def test_all_of_a_sqlite_saver_is_taken_over(database: Path, store: Store) -> None:
    before = database.read_bytes()
    with importer.sqlite_source(database) as source:
        done = importer.import_threads(source, store)
    assert database.read_bytes() == before
    with sqlite.SqliteSaver.from_conn_string(str(database)) as saver:
        expected = contents(saver)
    assert contents(ForgeSaver(store)) == expected
    assert (done.threads, done.checkpoints, done.known) == (3, len(expected), 0)
    assert done.writes == sum(len(row[4]) for row in expected)
    assert done.bytes_there >= len(before) and 0 < done.bytes_here
    assert len({row[0]["configurable"]["checkpoint_ns"] for row in expected}) > 1
    # A second import finds everything there.
    operations = sum(info.checkpoints for info in store.sessions())
    with importer.sqlite_source(database) as source:
        again = importer.import_threads(source, store)
    assert (again.threads, again.checkpoints, again.writes) == (0, 0, 0)
    assert again.known == len(expected)
    assert sum(info.checkpoints for info in store.sessions()) == operations


def test_a_thread_goes_on_where_it_waited(database: Path, store: Store) -> None:
    with importer.sqlite_source(database) as source:
        importer.import_threads(source, store)
    config: Any = {"configurable": {"thread_id": "waiting"}}
    graph = build().compile(checkpointer=ForgeSaver(store))
    assert graph.get_state(config).interrupts[0].value == "sure?"
    state = graph.invoke(Command(resume="at last"), config)
    assert state["extra"] == "at last" and len(state["messages"]) == 6


def test_an_import_that_was_killed_goes_on(
    database: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    puts = 0
    put = ForgeSaver.put

    def fail_later(*arguments: Any) -> Any:
        nonlocal puts
        puts += 1
        if puts == 8:
            raise KeyboardInterrupt
        return put(*arguments)

    monkeypatch.setattr(ForgeSaver, "put", fail_later)
    with importer.sqlite_source(database) as source, pytest.raises(KeyboardInterrupt):
        importer.import_threads(source, store)
    with importer.sqlite_source(database) as source:
        done = importer.import_threads(source, store)
    assert done.known == 7
    with sqlite.SqliteSaver.from_conn_string(str(database)) as saver:
        assert contents(ForgeSaver(store)) == contents(saver)


def test_the_command_says_what_it_saved(
    database: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--from", "sqlite", str(database), "--store", str(path)]) == 0
    said = capsys.readouterr().out
    assert "3 new threads; 0 checkpoints were there already" in said and "bytes there" in said
    assert main(["import", "--from", "sqlite", str(path / "none"), "--store", str(path)]) == 1
    assert "name the database of SqliteSaver" in capsys.readouterr().err
    assert main(["import", "--from", "mysql", "x", "--store", str(path)]) == 2
    known = "error: 'mysql' is no kind of source: use sqlite or postgres\n"
    assert capsys.readouterr().err == known


def test_what_is_no_database_of_a_saver_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to look like one " * 30)
    with pytest.raises(forge_store.Invalid, match="no database of SqliteSaver"):
        with importer.sqlite_source(tmp_path / "text"):
            pass


@contextmanager
def postgres_server(folder: Path) -> Generator[str]:
    """A server of its own on a socket; the test is skipped, and says so, where there is none."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = [shutil.which(name) for name in ("initdb", "postgres")]
    if not programs and not all(found):
        skipped("PostgreSQL is not installed")
    bin = programs[-1] if programs else Path(str(found[0])).parent
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # The server does not run as root.
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if user:
        shutil.chown(folder, user["user"], user["group"])
    data = folder / "data"
    options: dict[str, Any] = {"check": True, "capture_output": True, "cwd": folder, **user}
    subprocess.run([bin / "initdb", "-D", data, "-U", "test", "-A", "trust", "-N"], **options)
    arguments = f"-k {folder} -c listen_addresses='' -F"
    control: list[Any] = [bin / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", arguments]
    subprocess.run([*control, "start"], **options)
    try:
        yield f"host={folder} user=test dbname=postgres"
    finally:
        subprocess.run([bin / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **options)
        shutil.rmtree(folder, ignore_errors=True)


def skipped(why: str) -> None:
    """Skips a test, where scripts/python-test and the tests of the workspace see it."""
    print(f"SKIPPED test_importer: {why}", file=sys.stderr)
    if os.environ.get("FORGE_SKIPPED"):
        with open(os.environ["FORGE_SKIPPED"], "a", encoding="utf-8") as file:
            file.write(f"SKIPPED test_importer: {why}\n")
    pytest.skip(why)


def test_all_of_a_postgres_saver_is_taken_over(store: Store) -> None:
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError as error:
        skipped(str(error))
        return
    # A socket has a short path.
    with postgres_server(Path(f"/tmp/forge-pg-{os.getpid()}")) as address:
        with pytest.raises(forge_store.Invalid, match="no tables of PostgresSaver"):
            with importer.postgres_source(address):
                pass
        with PostgresSaver.from_conn_string(address) as saver:
            saver.setup()
            fill(saver)
            expected = contents(saver)
        for turn in range(2):
            with importer.postgres_source(address) as source:
                done = importer.import_threads(source, store)
            assert done.checkpoints == (0 if turn else len(expected)) and done.bytes_there > 0
        assert contents(ForgeSaver(store)) == expected
    with pytest.raises(forge_store.Unavailable, match="cannot be reached"):
        with importer.postgres_source(address):
            pass
