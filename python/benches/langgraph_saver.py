"""Measures the LangGraph saver beside LangGraph's SqliteSaver, in turns in one process.

    python python/benches/langgraph_saver.py chat [TURNS]       the size of a chat on disk
    python python/benches/langgraph_saver.py entities [PUTS]    the time of a put of a large channel

It needs the packages forge_store, langgraph and langgraph-checkpoint-sqlite. Both savers wait for the disk at each put.
Time means something only with a module that was built with optimisation.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from forge_store.langgraph import ForgeSaver
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

WORDS = "order queue lease clock worker retry index cache parse token scale buffer branch stale".split()


def size(folder: Path) -> int:
    """Returns the bytes of all files in a folder, each file once."""
    files = {(found.stat().st_ino, found.stat().st_size) for found in folder.rglob("*") if found.is_file()}
    return sum(length for _, length in files)


def sqlite_saver(folder: Path) -> tuple[SqliteSaver, sqlite3.Connection]:
    """Makes a SqliteSaver with a file in a folder."""
    connection = sqlite3.connect(folder / "saver.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("pragma synchronous=full")
    return saver, connection


def chat_graph(saver: Any, chance: random.Random) -> Any:
    """Returns an agent that calls one tool in each turn."""

    def text(words: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(words))

    def agent(state: MessagesState) -> dict[str, Any]:
        name = str(uuid.UUID(int=chance.getrandbits(128)))
        if not isinstance(state["messages"][-1], HumanMessage):
            return {"messages": [AIMessage(content=text(80), id=name)]}
        call = {"id": name[:8], "name": "search", "args": {"q": text(5)}}
        return {"messages": [AIMessage(content="", id=name, tool_calls=[call])]}

    def tools(state: MessagesState) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]["id"]  # type: ignore[union-attr]
        return {"messages": [ToolMessage(content=text(150), tool_call_id=call, id=f"r-{call}")]}

    def following(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", following)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)


def chat(turns: int) -> None:
    """Measures what a chat takes on disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = []
        for kind in ("forge", "sqlite"):
            place = folder / kind
            place.mkdir()
            connection = None
            if kind == "forge":
                opened = ForgeSaver.from_path(place / "store")
                saver: Any = opened.__enter__()
            else:
                saver, connection = sqlite_saver(place)
            graph, where = chat_graph(saver, random.Random(1)), {"configurable": {"thread_id": "t"}}
            for turn in range(turns):
                said = HumanMessage(content=" ".join(WORDS), id=f"h-{turn}")
                graph.invoke({"messages": [said]}, where, durability="sync")
            messages = graph.get_state(where).values["messages"]
            payload = len(saver.serde.dumps_typed(messages)[1])
            if connection is None:
                opened.__exit__(None, None, None)
            else:
                connection.execute("pragma wal_checkpoint(truncate)")
                connection.close()
            results.append((kind, len(messages), payload, size(place)))
        for kind, count, payload, taken in results:
            print(f"{kind:7} {turns} turns, {count} messages of {payload / 1e6:.2f} MB: "
                  f"{taken / 1e6:.1f} MB on disk, {taken / payload:.1f} times the messages")


def entities(puts: int) -> None:
    """Measures puts of a channel of 10,000 entities of which 25 change."""
    chance = random.Random(1)
    state = {
        f"entity-{number:06}": {"name": chance.choice(WORDS), "score": chance.random(), "text": " ".join(chance.choices(WORDS, k=20))}
        for number in range(10_000)
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other, connection = sqlite_saver(folder)
        with ForgeSaver.from_path(folder / "store") as ours:
            savers: dict[str, Any] = {"forge": ours, "sqlite": other}
            parents: dict[str, Any] = {kind: None for kind in savers}
            wall: dict[str, list[float]] = {kind: [] for kind in [*savers, "dumps"]}
            cpu: dict[str, list[float]] = {kind: [] for kind in [*savers, "dumps"]}
            for number in range(puts):
                for changed in chance.sample(sorted(state), 25):
                    state[changed] = {**state[changed], "score": chance.random()}
                one = {**empty_checkpoint(), "id": str(uuid6(clock_seq=number))}
                one["channel_values"] = {"entities": state}
                one["channel_versions"] = {"entities": number + 1}

                def put(kind: str, one: Any = one, number: int = number) -> None:
                    where = {"thread_id": "t", "checkpoint_ns": ""}
                    if parents[kind]:
                        where["checkpoint_id"] = parents[kind]
                    metadata: Any = {"source": "loop", "step": number, "parents": {}}
                    new = {"entities": number + 1}
                    savers[kind].put({"configurable": where}, one, metadata, new)
                    parents[kind] = one["id"]

                work = {kind: (lambda kind=kind: put(kind)) for kind in savers}
                work["dumps"] = lambda: ours.serde.dumps_typed(state)
                for kind in chance.sample(sorted(work), len(work)):
                    began, used = time.perf_counter(), time.process_time()
                    work[kind]()
                    wall[kind].append((time.perf_counter() - began) * 1e3)
                    cpu[kind].append((time.process_time() - used) * 1e3)
        connection.close()
        for kind in wall:
            ten = statistics.quantiles(wall[kind], n=10)
            print(f"{kind:7} wall p50 {statistics.median(wall[kind]):.2f} ms, p10 {ten[0]:.2f} ms; "
                  f"processor p50 {statistics.median(cpu[kind]):.2f} ms")
        print(f"put of forge / put of sqlite, wall p50: "
              f"{statistics.median(wall['forge']) / statistics.median(wall['sqlite']):.2f}")


if __name__ == "__main__":
    known = {"chat": (chat, 300), "entities": (entities, 200)}
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(f"name one of {', '.join(known)}")
    run, count = known[sys.argv[1]]
    run(int(sys.argv[2]) if len(sys.argv) > 2 else count)
