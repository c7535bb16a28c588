"""Threads of LangGraph's own savers are taken over whole."""

from __future__ import annotations

import operator
from collections.abc import Iterator
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
from killed import kill_after
from langgraph.types import Command, interrupt
from postgres import postgres_server, skipped

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


def fill(saver: Any, turns: int = 3) -> None:
    """Three threads: one that was answered, one that waits at an interrupt, one with a fork."""
    graph = build().compile(checkpointer=saver)
    for name in ("answered", "waiting", "for\nked"):
        config: Any = {"configurable": {"thread_id": name}}
        for turn in range(turns):
            graph.invoke({"messages": [HumanMessage(f"turn {turn}")]}, config)
            if name != "waiting" or turn < turns - 1:
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


def test_an_import_that_was_stopped_goes_on(
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


KILLED = """
    import sys
    from forge_store.langgraph import ForgeSaver
    from forge_store.langgraph.__main__ import main

    def told(write):
        def call(*arguments):
            done = write(*arguments)
            print("done", flush=True)
            return done
        return call

    ForgeSaver.put, ForgeSaver.put_writes = told(ForgeSaver.put), told(ForgeSaver.put_writes)
    main(["import", "--from", "sqlite", sys.argv[1], "--store", sys.argv[2]])
"""


def test_an_import_that_is_killed_at_several_moments_is_completed(tmp_path: Path) -> None:
    database = tmp_path / "threads.sqlite"
    with sqlite.SqliteSaver.from_conn_string(str(database)) as saver:
        fill(saver, turns=15)
        expected = contents(saver)
    assert len(expected) > 300
    with (
        forge_store.open(tmp_path / "whole", create=True, redact=False) as whole,
        importer.sqlite_source(database) as source,
    ):
        importer.import_threads(source, whole)
        counts = sorted((info.name, info.checkpoints, info.claims) for info in whole.sessions())
        assert contents(ForgeSaver(whole)) == expected
    path = tmp_path / "killed"
    for lines in (1, 2, 35, 80, 151):
        assert kill_after(lines, KILLED, database, path)
    with (
        forge_store.open(path, redact=False) as store,
        importer.sqlite_source(database) as source,
    ):
        done = importer.import_threads(source, store)
        assert done.known + done.checkpoints == len(expected)
        assert 0 < done.checkpoints < len(expected)
        assert contents(ForgeSaver(store)) == expected
        known = sorted((info.name, info.checkpoints, info.claims) for info in store.sessions())
        assert known == counts
        assert store.verify(full=True)


def test_the_command_says_what_it_saved(
    database: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--from", "sqlite", str(database), "--store", str(path)]) == 0
    said = capsys.readouterr().out
    assert "3 new threads; 0 checkpoints were there already" in said and "bytes there" in said
    assert main(["import", "--from", "sqlite", str(path / "none"), "--store", str(path)]) == 1
    assert "name the database of SqliteSaver" in capsys.readouterr().err
    assert main(["import", "--from", "mysql", "x", "--store", str(path)]) == 2
    known = "error: 'mysql' is not a kind of source: use sqlite or postgres\n"
    assert capsys.readouterr().err == known


def test_what_is_no_database_of_a_saver_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to look like one " * 30)
    with pytest.raises(forge_store.Invalid, match="not a database of SqliteSaver"):
        with importer.sqlite_source(tmp_path / "text"):
            pass


def test_all_of_a_postgres_saver_is_taken_over(store: Store) -> None:
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError as error:
        skipped(str(error))
        return
    with postgres_server() as address:
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
