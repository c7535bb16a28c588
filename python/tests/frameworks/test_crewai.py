"""CrewAI's flows on a forge store: its own flows, with and without a person to ask, and no model."""

from __future__ import annotations

import doctest
import os
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

# CrewAI reads this when it is imported, and then sends no telemetry.
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")

import forge_store
import pytest
from crewai.flow.async_feedback.types import HumanFeedbackPending, PendingFeedbackContext
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import persist
from crewai.flow.persistence.base import FlowPersistence
from crewai.flow.persistence.sqlite import SQLiteFlowPersistence
from forge_store import Invalid
from forge_store.crewai import ForgeFlowPersistence
from forge_store.memory import Memory
from framework_processes import run
from pages import page_path, section
from pydantic import BaseModel


class Cup(BaseModel):
    id: str = ""
    size: int = 0
    names: list[str] = []


@pytest.fixture
def kept(store: forge_store.Store) -> ForgeFlowPersistence:
    return ForgeFlowPersistence(store)


@pytest.fixture(params=["theirs", "ours"])
def flows(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Iterator[FlowPersistence]:
    """CrewAI's own implementation, which shows that the tests are right, and forge's."""
    if request.param == "theirs":
        yield SQLiteFlowPersistence(str(tmp_path / "flows.db"))
    else:
        with ForgeFlowPersistence(path=path) as ours:
            yield ours


def test_the_latest_state_is_loaded(flows: FlowPersistence) -> None:
    assert flows.load_state("tea") is None
    state: dict[str, Any] = {"id": "tea", "deep": {"a": [None, 1.5, True, "\u00e9", {}, []]}, "": 1, "gone": 1}
    flows.save_state("tea", "boil", state)
    assert flows.load_state("tea") == state
    del state["gone"]
    state["deep"]["a"][2] = 1
    flows.save_state("tea", "pour", state)
    found = flows.load_state("tea")
    assert found == state and found is not None and found["deep"]["a"][2] is not True
    flows.save_state("odd/%~\n" + "x" * 300, "boil", {})
    assert flows.load_state("odd/%~\n" + "x" * 300) == {}
    assert flows.load_state("odd") is None


def test_states_that_are_not_json(flows: FlowPersistence) -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    cup = Cup(id="c", size=2, names=["a"])
    flows.save_state("cup", "boil", cup)
    assert flows.load_state("cup") == {"id": "c", "size": 2, "names": ["a"]}
    flows.save_state("map", "boil", {"cup": cup, "when": moment, "pair": (1, 2), "path": Path("a")})
    assert flows.load_state("map") == {
        "cup": {"id": "c", "size": 2, "names": ["a"]},
        "when": "2026-01-02T00:00:00+00:00",
        "pair": [1, 2],
        "path": "a",
    }
    with pytest.raises(ValueError):
        flows.save_state("list", "boil", [1])  # type: ignore[arg-type]
    assert flows.load_state("list") is None


def test_pending_feedback(flows: FlowPersistence) -> None:
    assert flows.load_pending_feedback("tea") is None
    flows.clear_pending_feedback("tea")
    context = PendingFeedbackContext(
        flow_id="tea",
        flow_class="m.Tea",
        method_name="taste",
        method_output={"a": 1},
        message="good?",
        emit=["yes", "no"],
    )
    flows.save_pending_feedback("tea", context, {"id": "tea", "n": 1})
    flows.save_state("tea", "other", {"id": "tea", "n": 2})
    found = flows.load_pending_feedback("tea")
    assert found == ({"id": "tea", "n": 1}, context)
    assert flows.load_state("tea") == {"id": "tea", "n": 2}
    flows.clear_pending_feedback("tea")
    assert flows.load_pending_feedback("tea") is None
    assert flows.load_state("tea") == {"id": "tea", "n": 2}


def tea(flows: FlowPersistence, *, fails: bool = False) -> Flow[dict[str, Any]]:
    @persist(flows)
    class Tea(Flow[dict[str, Any]]):
        @start()
        def boil(self) -> None:
            self.state["degrees"] = self.state.get("degrees", 0) + 100

        @listen(boil)
        def pour(self) -> str:
            if fails:
                raise RuntimeError("the cup broke")
            self.state["poured"] = True
            return f"{self.state['degrees']} degrees"

    return Tea()


def test_a_flow_resumes_after_a_failure(flows: FlowPersistence) -> None:
    with pytest.raises(RuntimeError, match="cup"):
        tea(flows, fails=True).kickoff(inputs={"id": "t1"})
    assert flows.load_state("t1") == {"id": "t1", "degrees": 100}
    assert tea(flows).kickoff(inputs={"id": "t1"}) == "200 degrees"
    assert flows.load_state("t1") == {"id": "t1", "degrees": 200, "poured": True}
    # A fork begins with the state of another flow, and leaves that one as it is.
    fork = tea(flows)
    assert fork.kickoff(restore_from_state_id="t1") == "300 degrees"
    assert fork.flow_id != "t1" and flows.load_state("t1") == {"id": "t1", "degrees": 200, "poured": True}


class Later:
    """Asks a person who answers later."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


class Taste(Flow[dict[str, Any]]):
    @start()
    @human_feedback(message="good?", provider=Later())
    def taste(self) -> str:
        self.state["tasted"] = True
        return "tea"

    @listen(taste)
    def finish(self, result: Any) -> str:
        self.state["said"] = result.feedback
        return f"{result.output}: {result.feedback}"


def test_a_flow_waits_for_a_person(flows: FlowPersistence) -> None:
    paused = Taste(persistence=flows).kickoff(inputs={"id": "t1"})
    assert isinstance(paused, HumanFeedbackPending)
    assert flows.load_state("t1") == {"id": "t1", "tasted": True}
    with pytest.raises(ValueError):
        Taste.from_pending("none", flows)
    resumed = Taste.from_pending("t1", flows)
    assert resumed.resume("yes") == "tea: yes"
    assert flows.load_pending_feedback("t1") is None


def test_the_example_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(section(page_path("frameworks.md").read_text(), "CrewAI"))
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted > 0 and done.failed == 0


def test_a_deletion(kept: ForgeFlowPersistence) -> None:
    kept.save_state("tea", "boil", {"id": "tea"})
    assert kept.delete_state("tea") is True
    assert kept.delete_state("tea") is False
    assert kept.load_state("tea") is None


def test_an_earlier_moment(kept: ForgeFlowPersistence) -> None:
    kept.save_state("tea", "boil", {"degrees": 100, "cups": 1})
    time.sleep(0.01)
    moment = datetime.now(timezone.utc)
    time.sleep(0.01)
    kept.save_state("tea", "cool", {"degrees": 80})
    past = kept.at(moment)
    assert past.load_state("tea") == {"degrees": 100, "cups": 1}
    with pytest.raises(Invalid, match="past"):
        past.save_state("tea", "boil", {})
    assert kept.load_state("tea") == {"degrees": 80}


def test_only_fields_that_changed_are_written(kept: ForgeFlowPersistence) -> None:
    kept.save_state("tea", "boil", {"same": 1, "other": 1})
    kept.save_state("tea", "pour", {"same": 1, "other": True})
    memory = Memory(kept.store, "crewai/tea")
    versions = {one.key: one.version for one in memory.items("state/")}
    assert versions == {"state/other": 2, "state/same": 1}


def test_a_persistence_is_made_again_from_what_it_dumps(path: Path) -> None:
    with ForgeFlowPersistence(path=path) as first:
        first.save_state("tea", "boil", {"id": "tea"})
        dumped = first.model_dump(mode="json")
    assert dumped == {"persistence_type": "ForgeFlowPersistence", "path": str(path)}
    with ForgeFlowPersistence.model_validate(dumped) as second:
        assert second.load_state("tea") == {"id": "tea"}


WORKER = """
import os, sys
from forge_store.crewai import ForgeFlowPersistence

path, name = sys.argv[1:]
flows = ForgeFlowPersistence(path=path)
for number in range(8):
    flows.save_state("shared", name, {"by": name, "number": number, name: number})
    flows.save_state(name, "boil", {"number": number})
os._exit(9)
"""


def test_two_processes_that_end_abruptly(path: Path) -> None:
    with ForgeFlowPersistence(path=path) as kept:
        run(WORKER, [(path, "a"), (path, "b")], code=9)
        assert kept.load_state("a") == kept.load_state("b") == {"number": 7}
        last = kept.load_state("shared")
        assert last is not None
        # A whole state of one of them, not fields of both.
        assert last == {"by": last["by"], "number": 7, last["by"]: 7}
