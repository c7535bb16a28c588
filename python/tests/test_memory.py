"""Memories: exactness, versions, two processes, and their history."""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

import forge_store
import pytest
from forge_store import Store
from forge_store.memory import Memory


def any_json(dice: random.Random, depth: int = 0) -> Any:
    """A JSON value made from this seed, with many things that are easily lost."""
    kind = dice.randrange(9 if depth < 4 else 6)
    if kind == 6 and dice.random() < 0.2:
        return {"$bytes": "AAEC"}
    names = ["", "a", "~", "/", "~1", "$bytes", "ü", "\x00", "value", "null"]
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: dice.choice([True, False]),
        lambda: dice.choice([0, 1, -(2**63), 2**63, 2**64 - 1, dice.getrandbits(50)]),
        lambda: dice.choice([0.0, 1.0, -1.5, 1e300, 5e-324, dice.random()]),
        lambda: dice.choice(["", "text", "\u2028 ü 🦀", "x" * 300, "null"]),
        lambda: dice.choice([[], {}]),
        lambda: {dice.choice(names): any_json(dice, depth + 1) for _ in range(dice.randrange(5))},
        lambda: [any_json(dice, depth + 1) for _ in range(dice.randrange(4))],
        lambda: {"inner": {"gone": None, "kept": any_json(dice, depth + 1)}},
    ]
    return makers[kind]()


def test_json_values_come_back_exactly(path: Path) -> None:
    dice = random.Random(7)
    values = {f"key {number}": any_json(dice) for number in range(400)}
    with forge_store.open(path, create=True) as store:
        Memory(store, "values").write(values)
    with forge_store.open(path) as store:
        found = {item.key: item.value for item in Memory(store, "values").items()}
    # The texts of 1, 1.0 and True differ, though they are equal.
    assert {key: repr_of(value) for key, value in found.items()} == {
        key: repr_of(value) for key, value in values.items()
    }


def repr_of(value: Any) -> str:
    if isinstance(value, dict):
        return repr(sorted((key, repr_of(item)) for key, item in value.items()))
    return repr([repr_of(item) for item in value]) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize(
    "value, what",
    [
        ({"a": [1, float("nan")]}, r"the value of 'k'.a\[1\] is not a finite number"),
        (2**64, "the value of 'k' is an int of more than 64 bits"),
        ([{1: 2}], r"the value of 'k'\[0\] has the key 1, which is not a str"),
        ({"when": datetime.now(timezone.utc)}, "the value of 'k'.when is a datetime"),
        ("\ud800", "lone surrogate"),
        (b"bytes", "is a bytes"),
    ],
)
def test_what_is_no_json_is_refused_with_its_path(store: Store, value: Any, what: str) -> None:
    memory = Memory(store, "m")
    with pytest.raises(forge_store.Invalid, match=what):
        memory.write({"good": 1, "k": value})
    assert memory.items() == [] and Memory.names(store) == []


def test_a_value_that_is_nested_too_deeply_is_refused(store: Store) -> None:
    memory = Memory(store, "m")
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    memory.write({"k": deep})
    item = memory.get("k")
    assert item is not None and item.value == deep
    with pytest.raises(forge_store.Invalid, match="nested more than 100 deep"):
        memory.write({"k": [deep]})


def test_versions_times_and_expectations(store: Store) -> None:
    memory = Memory(store, "m")
    assert memory.get("a") is None and memory.session is None
    memory.write({"a": 1, "b": None}, message="first")
    first = memory.get("a")
    assert first is not None and first.version == 1 and first.created_at == first.updated_at
    memory.write({"a": 2}, expected={"a": 1, "b": 1, "c": None})
    second = memory.get("a")
    assert second is not None and (second.value, second.version) == (2, 2)
    assert second.created_at == first.created_at and second.updated_at >= first.updated_at
    for expected in ({"a": 1}, {"a": None}, {"c": 1}):
        with pytest.raises(forge_store.Conflict, match="read it again"):
            memory.write({"a": 3, "new": 1}, ["b"], expected=expected)
    assert [(item.key, item.value) for item in memory.items()] == [("a", 2), ("b", None)]
    with pytest.raises(forge_store.Invalid, match="both put and deleted"):
        memory.write({"a": 3}, ["a"])


def test_items_come_in_pages_in_the_order_of_their_keys(store: Store) -> None:
    keys = ["a", "a/1", "a/2", " a", "~", "x" * 500, "new\nline", "ü", "z"]
    memory = Memory(store, "any name\n" * 30)
    memory.write({key: key for key in keys})
    ordered = sorted(keys, key=lambda key: key.encode())
    assert [item.key for item in memory.items()] == ordered
    pages: list[str] = []
    while page := memory.items(after=pages[-1] if pages else None, limit=2):
        pages += [item.key for item in page]
    assert pages == ordered
    assert [item.key for item in memory.items("a/")] == ["a/1", "a/2"]
    assert Memory.names(store) == ["any name\n" * 30]


def test_an_earlier_moment_is_read_again(store: Store) -> None:
    memory = Memory(store, "m")
    memory.write({"a": 1, "long\n": [None]}, message="before")
    between = datetime.now(timezone.utc)
    memory.write({"b": 2}, ["a", "long\n"])
    session = memory.session
    assert session is not None
    [before] = session.checkpoints()
    assert before.message == "before"
    for at in (before, between, 1):
        assert [item.key for item in memory.items(at=at)] == ["a", "long\n"]
        then = memory.get("a", at=at)
        assert then is not None and then.value == 1 and memory.get("b", at=at) is None
    assert memory.get("a") is None
    session.restore(before)
    assert [item.value for item in memory.items()] == [1, [None]]


def test_a_dropped_memory_is_gone_and_its_name_is_free(store: Store) -> None:
    memory = Memory(store, "m")
    assert memory.drop() is False
    memory.write({"a": 1})
    assert memory.drop() is True and memory.items() == [] and Memory.names(store) == []
    assert memory.get("a") is None and memory.session is None
    memory.write({"b": 1})
    assert [item.key for item in memory.items()] == ["b"]


def test_a_dropped_memory_comes_back(store: Store) -> None:
    memory = Memory(store, "m")
    memory.write({"a": 1})
    memory.drop()
    assert store.restore_session("m", "memory").name == "m"
    assert [item.key for item in memory.items()] == ["a"]
    with pytest.raises(forge_store.NotFound):
        store.restore_session("m", "memory")
    with pytest.raises(forge_store.Invalid, match="kind of session"):
        store.restore_session("m", "memories")


def test_of_two_processes_that_expect_a_version_one_succeeds(path: Path) -> None:
    count = """
import sys, forge_store
from forge_store.memory import Memory
with forge_store.open(sys.argv[1]) as store:
    memory, conflicts = Memory(store, "m"), 0
    for _ in range(40):
        while True:
            item = memory.get("counter")
            known = (item.value, item.version) if item else (0, None)
            try:
                memory.write({"counter": known[0] + 1}, expected={"counter": known[1]})
                break
            except forge_store.Conflict:
                conflicts += 1
"""
    forge_store.open(path, create=True).close()
    program = [sys.executable, "-c", count, str(path)]
    processes = [subprocess.Popen(program) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    with forge_store.open(path) as store:
        item = Memory(store, "m").get("counter")
    assert item is not None and (item.value, item.version) == (80, 80)
