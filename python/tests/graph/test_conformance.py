"""The conformance suite of LangGraph, and tests of our own for its part about delta channels.

The suite on the package index has eight of the nine capabilities. It skips a capability whose
method is not there and still reports success, so each must be detected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forge_store
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from saver_steps import config, put

from forge_store import Shards, Store
from forge_store.langgraph import ForgeSaver

#: How many clauses the pinned version of the suite has.
CLAUSES = 81


@pytest.fixture(params=["folder", "database", "shards"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store | Shards]:
    """What opens a new store of a name, or shards."""
    if request.param == "folder":
        return lambda name: forge_store.open(tmp_path / name, create=True, redact=False)
    address = request.getfixturevalue("database")
    if request.param == "database":
        return lambda name: forge_store.open(address, name=name, create=True, redact=False)
    return lambda name: forge_store.open_shards(
        address, name=name, shards=3, create=True, redact=False
    )


def test_all_clauses_hold(place: Callable[[str], Store | Shards]) -> None:
    suite = pytest.importorskip("langgraph.checkpoint.conformance")
    numbers = iter(range(100))

    @suite.checkpointer_test(name="ForgeSaver")  # type: ignore[untyped-decorator]
    async def made() -> Any:
        with place(str(next(numbers))) as store:
            yield ForgeSaver(store)

    report = asyncio.run(suite.validate(made)).to_dict()
    failures = [failure for one in report["results"].values() for failure in one["failures"]]
    assert not failures
    assert all(one["detected"] for one in report["results"].values())
    assert sum(one["tests_passed"] for one in report["results"].values()) == CLAUSES


def test_all_nine_capabilities_are_our_own() -> None:
    for name in (
        "put put_writes get_tuple list delete_thread delete_for_runs copy_thread prune "
        "get_delta_channel_history"
    ).split():
        for method in (name, f"a{name}"):
            assert getattr(ForgeSaver, method) is not getattr(BaseCheckpointSaver, method), method


class TestDeltaHistories:
    """The eight clauses of the capability that only a checkout of LangGraph has."""

    @staticmethod
    def history(saver: ForgeSaver, step: str | None, *names: str, thread: str = "t") -> Any:
        """Reads the history in both ways, which must agree."""
        where = config(thread, step=step)
        found = saver.get_delta_channel_history(config=where, channels=names)
        other = asyncio.run(saver.aget_delta_channel_history(config=where, channels=names))
        assert found == other
        return found

    @staticmethod
    def write(saver: ForgeSaver, step: str, *writes: tuple[str, Any], task: str = "a") -> None:
        saver.put_writes(config(step=step), writes, task)

    def chain(self, saver: ForgeSaver) -> None:
        put(saver, "1", {"c": "seed"})
        self.write(saver, "1", ("c", "w1"), ("d", "x1"))
        put(saver, "2", parent="1")
        self.write(saver, "2", ("c", "w2"))
        put(saver, "3", parent="2")
        self.write(saver, "3", ("c", "own"))

    def test_no_channels_have_no_histories(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        assert self.history(saver, "3") == {}

    def test_writes_come_oldest_first_with_the_seed(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        wanted = {"writes": [("a", "c", "w1"), ("a", "c", "w2")], "seed": "seed"}
        assert self.history(saver, "3", "c") == {"c": wanted}

    def test_without_an_id_the_latest_is_meant(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        assert self.history(saver, None, "c") == self.history(saver, "3", "c")

    def test_a_channel_that_never_had_a_value_has_no_seed(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        assert self.history(saver, "3", "d") == {"d": {"writes": [("a", "d", "x1")]}}
        assert self.history(saver, "3", "e") == {"e": {"writes": []}}

    def test_each_channel_ends_by_itself(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        put(saver, "4", {"d": None}, parent="3")
        put(saver, "5", parent="4")
        found = self.history(saver, "5", "c", "d")
        assert found["d"] == {"writes": [], "seed": None}
        assert [value for _, _, value in found["c"]["writes"]] == ["w1", "w2", "own"]

    def test_the_writes_of_the_target_are_not_in_it(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        assert ("a", "c", "own") not in self.history(saver, "3", "c")["c"]["writes"]

    def test_a_fork_has_the_history_of_its_own_path(self, saver: ForgeSaver) -> None:
        self.chain(saver)
        put(saver, "2b", parent="1")
        self.write(saver, "2b", ("c", "w2b"))
        put(saver, "3b", parent="2b")
        found = self.history(saver, "3b", "c")["c"]
        assert [value for _, _, value in found["writes"]] == ["w1", "w2b"]

    def test_writes_of_one_step_are_in_the_order_of_path_task_and_place(
        self, saver: ForgeSaver
    ) -> None:
        put(saver, "1")
        for task, path, values in (("b", "1", "xy"), ("a", "1", "u"), ("z", "0", "v")):
            writes = [("c", value) for value in values]
            saver.put_writes(config(step="1"), writes, task, path)
        put(saver, "2", parent="1")
        found = self.history(saver, "2", "c")["c"]
        assert [value for _, _, value in found["writes"]] == ["v", "u", "x", "y"]
