"""Errors say what to do next, and a refused call changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import forge_store
import pytest
from forge_store import Session, Store
from forge_store.adk import ForgeSessionService
from forge_store.claude import ForgeSessionStore
from forge_store.langgraph import ForgeSaver, ForgeStore
from forge_store.memory import Memory
from forge_store.openai_agents import ForgeSession
from forge_store.systems import Program, Progress, Run, Thread


def test_the_tree_mirrors_the_kinds_of_errors() -> None:
    names = "NotFound Invalid Conflict Locked Unavailable Corrupt Forged Unkeyed Unsupported Internal"
    for name in names.split():
        kind = getattr(forge_store, name)
        assert issubclass(kind, forge_store.ForgeError) and kind.__module__ == "forge_store"
        assert kind.__doc__
    assert issubclass(forge_store.NotFound, LookupError)
    assert issubclass(forge_store.Invalid, ValueError)


def test_messages_say_what_to_do_next(store: Store, session: Session) -> None:
    session.note("one", id="N1")
    with pytest.raises(forge_store.NotFound) as missing:
        session.update("H9", description="x")
    assert "; " in str(missing.value) and missing.value.hint
    with pytest.raises(forge_store.Invalid, match="another id"):
        session.note("again", id="N1")
    with pytest.raises(forge_store.Invalid, match="a command is a fact; use session.record"):
        session.add("command", command="make")
    with pytest.raises(forge_store.Invalid, match="a note is a claim; use session.add"):
        session.record("note", description="x")
    with pytest.raises(forge_store.Invalid, match="is 2.0; use a number from 0 to 1$") as wrong:
        session.hypothesis("h", confidence=2.0)
    assert wrong.value.hint == "use a number from 0 to 1"
    with pytest.raises(forge_store.Invalid):
        session.hypothesis("h", status="maybe")
    with pytest.raises(forge_store.Invalid):
        session.add("theory", description="x")
    with pytest.raises(forge_store.NotFound, match="hypothesis 'H9'"):
        session.evidence("e", "H9", 0.5)
    with pytest.raises(forge_store.NotFound):
        session.at("nothing-of-the-kind")
    with pytest.raises(forge_store.Invalid, match="-1 is no number .*; count back .* 'HEAD~1'"):
        session.at(-1)
    with pytest.raises(forge_store.Invalid):
        session.note("x", id="a\nb")
    deep: Any = []
    deep.append(deep)
    with pytest.raises(forge_store.Invalid, match="'found' is nested more than 100 deep; make it"):
        session.command("make", found=deep)
    nothing: Any = None
    for empty in ("", " \n", nothing):
        with pytest.raises(forge_store.Invalid, match="the description is empty; give a text"):
            session.hypothesis(empty)
        with pytest.raises(forge_store.Invalid, match="the description is empty"):
            session.update("N1", description=empty)
        with pytest.raises(forge_store.Invalid, match="the name is empty"):
            session.verification(empty, "passed")
        with pytest.raises(forge_store.Invalid, match="the name is empty"):
            session.measurement(empty, 5)
        with pytest.raises(forge_store.Invalid, match="the resolution is empty"):
            session.fill("G1", empty)
        with pytest.raises(forge_store.Invalid, match="the message is empty"):
            session.checkpoint(empty)
    with pytest.raises(forge_store.Invalid, match="the description is empty"):
        session.add("gap", criticality="high")
    with pytest.raises(forge_store.Invalid, match="the reason is empty"):
        session.confirm("H1", "")
    with pytest.raises(forge_store.NotFound, match="the last thing done was not an undo; session"):
        session.redo()
    with pytest.raises(forge_store.NotFound, match="there is nothing to undo; session.operations"):
        store.session("empty").undo()
    assert session.head.revision == 1


def test_a_text_in_place_of_a_list_is_refused(store: Store, session: Session) -> None:
    """Python takes a text as the list of its letters: `allow="kind:jwt"` let nearly all secrets
    pass, because each letter was an exception."""
    memory, run = Memory(store, "settings"), Run(store, "run-1")
    memory.write({"theme": "dark"})
    calls: list[tuple[str, Callable[[], object]]] = [
        ("allow", lambda: forge_store.in_memory(allow="kind:jwt")),
        ("allow", lambda: forge_store.open(store.path, allow="kind:jwt")),
        ("tags", lambda: session.hypothesis("h", tags="cache")),
        ("tags", lambda: session.checkpoint("c", tags="before")),
        ("tags", lambda: session.prune(tags="before")),
        ("on", lambda: session.belief("b", on="B1")),
        ("evidence", lambda: session.belief("b", evidence="E1")),
        ("blocking", lambda: session.gap("g", blocking="H1")),
        ("kinds", lambda: store.search("word", kinds="note")),
        ("deletes", lambda: memory.write(deletes="theme")),
        ("steps", lambda: run.get_multiple_outputs("item", "step")),
    ]
    for name, call in calls:
        with pytest.raises(TypeError, match=f"{name} is a list, and not one text"):
            call()
    assert not session.log() and memory.get("theme")


def test_what_is_no_claim_or_session_is_refused(store: Store, session: Session) -> None:
    nothing: Any = None
    names: Any = ["bug-42"]
    with pytest.raises(TypeError, match="None is no claim: give its id, or what added it"):
        session.evidence("e", nothing, 0.5)
    with pytest.raises(TypeError, match="None is no name of an item or a step"):
        Run(store, "run-1").save_checkpoint(nothing, "summary", "Three paragraphs.")
    with pytest.raises(TypeError, match="'bug-42' is no session: give what store.session"):
        store.search("lease", sessions=names)
    with pytest.raises(TypeError, match="'bug-42' is no session"):
        store.export_bundle("all.bundle", sessions=names)


def test_a_path_in_place_of_a_store_is_refused(path: Path) -> None:
    """`'str' object has no attribute 'native'` did not say what to do, and the saver raised it only
    at its first use."""
    given: Any = path
    calls: list[Callable[[], object]] = [
        lambda: Run(given, "r"),
        lambda: Run.import_rows(given, []),
        lambda: Progress(given, "r", "e"),
        lambda: Program(given, "p"),
        lambda: Thread(given, "t"),
        lambda: Memory(given, "m"),
        lambda: Memory.names(given),
        lambda: ForgeSaver(given),
        lambda: ForgeStore(given),
        lambda: ForgeSession("s", given),
        lambda: ForgeSessionStore(given),
        lambda: ForgeSessionService(given),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"of type \w*Path: give a Store, such as forge_store.open"):
            call()
    with pytest.raises(TypeError, match=r"forge_store.open\(...\)"):
        Store(given)
    with pytest.raises(TypeError, match="store.session"):
        Session(forge_store.in_memory(), given)


def test_a_call_without_its_main_argument_is_refused(store: Store, session: Session) -> None:
    """The calls wrote a fact without its main field, or ignored an argument, without a word."""
    nothing: Any = None
    run = Run(store, "night")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("the command is empty", lambda: session.command(nothing)),
        ("the command is empty", lambda: session.command(" ")),
        ("the value is empty", lambda: session.measurement("offset", nothing)),
        ("at least one hit", lambda: store.search("word", limit=0)),
        ("'next' or 'terminal'", lambda: run.save_checkpoint(1, 2, "x", next=3, terminal=True)),
    ]
    for text, call in calls:
        with pytest.raises(forge_store.Invalid, match=text):
            call()
    assert not session.head.facts()


def test_a_backup_onto_a_store_says_to_name_another_folder(store: Store, session: Session) -> None:
    session.note("one")
    assert store.path is not None
    with pytest.raises(forge_store.Invalid, match="name another folder"):
        store.backup(store.path)


def test_an_allowed_kind_of_secrets_must_exist() -> None:
    forge_store.in_memory(allow=["kind:jwt", "a part of one"]).close()
    with pytest.raises(forge_store.Invalid, match="no kind of secrets 'typo'; 'forge redact --list'"):
        forge_store.in_memory(allow=["kind:typo"])


def test_a_store_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("something else\n")
    with pytest.raises(forge_store.ForgeError) as refused:
        forge_store.open(tmp_path)
    assert "; " in str(refused.value)
    # Such a store was called damaged.
    with pytest.raises(forge_store.Invalid, match="the path has a NUL in it; name a folder"):
        forge_store.open("a\0b", create=True)
    with pytest.raises(forge_store.Invalid, match="not a valid time"):
        forge_store.open(tmp_path / "new", create=True, lock_timeout=-1)


def test_a_read_only_store_is_not_written(path: Path) -> None:
    with forge_store.open(path, create=True) as store:
        store.session("s").note("one")
    with forge_store.open(path, read_only=True) as store:
        session = store.session("s", create=False)
        assert len(session.head.state) == 1
        with pytest.raises(forge_store.Unavailable, match="read_only"):
            session.note("two")


def test_damage_is_found_and_named(path: Path) -> None:
    with forge_store.open(path, create=True) as store:
        session = store.session("s")
        for number in range(20):
            session.note(f"note {number}")
    segment = max((path / "journal").iterdir(), key=lambda file: file.stat().st_size)
    data = bytearray(segment.read_bytes())
    at = data.index(b"note 5")
    data[at] ^= 0x01
    segment.write_bytes(data)
    with pytest.raises((forge_store.Corrupt, forge_store.Forged)) as damaged:
        with forge_store.open(path) as store:
            store.session("s", create=False).head.state
    assert "forge verify" in str(damaged.value)
