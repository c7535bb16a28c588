"""The state of every remaining checkpoint does not change, whatever is dropped or copied.

Histories of a real graph with channels that live on what tasks wrote, beside the same histories in
LangGraph's own saver in memory, in which nothing is dropped.
"""

from __future__ import annotations

import operator
import os
import random
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from saver_steps import config

from forge_store.langgraph import ForgeSaver

#: How many histories are tried; more of them by FORGE_HISTORIES.
HISTORIES = int(os.environ.get("FORGE_HISTORIES", "12"))


def added(state: list[str], writes: list[list[str]]) -> list[str]:
    """Adds what was written to a list, in order."""
    return [*state, *(word for write in writes for word in write)]


class State(TypedDict):
    """A channel whose state is made from writes, one with a value at every third step, and a plain one."""

    words: Annotated[list[str], DeltaChannel(added, list, snapshot_frequency=1000)]
    often: Annotated[list[str], DeltaChannel(added, list, snapshot_frequency=3)]
    count: Annotated[int, operator.add]


def graph(saver: Any) -> Any:
    """Returns a graph of two nodes that run one after the other, twice."""

    def node(name: str) -> Any:
        def work(state: State) -> dict[str, Any]:
            number = state["count"]
            return {"words": [f"{name}{number}"], "often": [f"{name}{number}"], "count": 1}

        return work

    builder = StateGraph(State)
    builder.add_node("a", node("a"))
    builder.add_node("b", node("b"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_conditional_edges("b", lambda state: "a" if state["count"] % 4 else END)
    return builder.compile(checkpointer=saver)


def ids(saver: Any, thread: str) -> list[str]:
    """Returns the ids of the checkpoints of a thread, newest first."""
    return [one.config["configurable"]["checkpoint_id"] for one in saver.list(config(thread))]


#: What each run is given.
GIVEN = {"words": ["in"], "often": ["in"], "count": 0}


class Twins:
    """The same graph on both savers, with the same ids in both."""

    def __init__(self, saver: ForgeSaver) -> None:
        self.saver, self.kept = saver, InMemorySaver()
        # The other saver finds values by their versions, which a fork must not use again.
        vars(saver)["get_next_version"] = self.kept.get_next_version
        self.ours, self.theirs = graph(saver), graph(self.kept)

    def run(self, thread: str, step: str | None, durability: str, run: str) -> None:
        """Runs our graph, and puts what it stored into the other saver."""
        where = {**config(thread, step=step), "metadata": {"run_id": run}}
        before = {*ids(self.saver, thread)}
        self.ours.invoke(dict(GIVEN), where, durability=durability)
        self.mirror(thread, before)

    def mirror(self, thread: str, before: set[str]) -> None:
        """Puts the new checkpoints, and the writes of all, into the other saver."""
        for one in reversed([*self.saver.list(config(thread))]):
            where = one.config["configurable"]
            if where["checkpoint_id"] not in before:
                parent = one.parent_config or config(thread)
                versions = one.checkpoint["channel_versions"]
                self.kept.put(parent, one.checkpoint, one.metadata, versions)
            tasks: dict[str, list[tuple[str, Any]]] = {}
            for task, channel, value in one.pending_writes or ():
                tasks.setdefault(task, []).append((channel, value))
            for task, writes in tasks.items():
                self.kept.put_writes(one.config, writes, task)

    def check(self, thread: str, other: str) -> None:
        """Compares the state of every checkpoint that is left."""
        for step in ids(self.saver, thread):
            ours = self.ours.get_state(config(thread, step=step)).values
            assert ours == self.theirs.get_state(config(other, step=step)).values, step


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_states_stay_what_they_were(saver: ForgeSaver, seed: int) -> None:
    chance = random.Random(seed)
    twins = Twins(saver)
    durability = chance.choice(["sync", "async", "exit"])
    threads = {"t": "t"}
    for number in range(6):
        thread = chance.choice([*threads])
        known = ids(saver, thread)
        step = chance.choice(known) if known and chance.random() < 0.3 else None
        if thread == "t" and len(threads) == 1:
            twins.run(thread, step, durability, f"run {number}")
        act = chance.choice(["prune", "runs", "copy", "none"])
        if act == "prune":
            saver.prune([thread])
        elif act == "runs":
            saver.delete_for_runs([f"run {chance.randrange(number + 1)}"])
        elif act == "copy" and ids(saver, "t"):
            saver.copy_thread("t", f"copy {number}")
            threads[f"copy {number}"] = "t"
        for ours, theirs in threads.items():
            twins.check(ours, theirs)


def test_a_pruned_thread_goes_on_as_if_it_were_whole(saver: ForgeSaver) -> None:
    ours, theirs = graph(saver), graph(InMemorySaver())
    for _ in range(3):
        assert ours.invoke(dict(GIVEN), config()) == theirs.invoke(dict(GIVEN), config())
        saver.prune(["t"])
        assert len(ids(saver, "t")) == 1
        state = ours.get_state(config()).values
        assert state == theirs.get_state(config()).values
    assert len(state["words"]) > 8
