"""Measures the LangGraph saver beside LangGraph's SqliteSaver or PostgresSaver, in turns in one process.

    python python/benches/langgraph_saver.py chat [TURNS]        the size of a chat on disk
    python python/benches/langgraph_saver.py entities [PUTS]     puts and reads of a channel of 10,000 entities
    python python/benches/langgraph_saver.py writes [CALLS]      pending writes, beside a bare append to a file
    python python/benches/langgraph_saver.py threads [THREADS]   a step of a thread among ten threads, and among many
    python python/benches/langgraph_saver.py postgres [PUTS]     puts, reads and bytes in PostgreSQL

It needs the packages forge_store, langgraph and langgraph-checkpoint-sqlite, and for PostgreSQL, whose server it starts
itself, langgraph-checkpoint-postgres, psycopg[binary] and pytest. Both savers wait for the disk at each put. Time means
something only with a module that was built with optimisation.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Callable

import forge_store
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


class Turns:
    """The times of several pieces of work, measured in turns in a random order."""

    def __init__(self, *names: str) -> None:
        self.wall: dict[str, list[float]] = {name: [] for name in names}
        self.cpu: dict[str, list[float]] = {name: [] for name in names}

    def take(self, work: dict[str, Callable[[], Any]], chance: random.Random) -> None:
        """Does each piece once."""
        for name in chance.sample(sorted(work), len(work)):
            began, used = time.perf_counter(), time.process_time()
            work[name]()
            self.wall[name].append((time.perf_counter() - began) * 1e3)
            self.cpu[name].append((time.process_time() - used) * 1e3)

    def median(self, name: str) -> float:
        """The median of the elapsed times, in milliseconds."""
        return statistics.median(self.wall[name])

    def show(self) -> None:
        """Prints the times of each piece."""
        for name, wall in self.wall.items():
            print(f"{name:16} wall p50 {self.median(name):.3f} ms, p10 {statistics.quantiles(wall, n=10)[0]:.3f} ms; "
                  f"processor p50 {statistics.median(self.cpu[name]):.3f} ms")

    def ratio(self, one: str, other: str) -> None:
        """Prints how much longer one piece takes than another."""
        print(f"{one} / {other}, wall p50: {self.median(one) / self.median(other):.2f}")


def step(number: int, state: Any) -> tuple[Any, Any, Any]:
    """Returns a checkpoint with one channel, its metadata, and the new version of the channel."""
    one = {**empty_checkpoint(), "id": str(uuid6(clock_seq=number))}
    one["channel_values"] = {"entities": state}
    one["channel_versions"] = {"entities": number + 1}
    return one, {"source": "loop", "step": number, "parents": {}}, {"entities": number + 1}


def new_entities(chance: random.Random) -> dict[str, Any]:
    """Returns 10,000 entities."""
    return {
        f"entity-{number:06}": {"name": chance.choice(WORDS), "score": chance.random(), "text": " ".join(chance.choices(WORDS, k=20))}
        for number in range(10_000)
    }


def put_and_get(savers: dict[str, Any], puts: int, changed: int, after_first: Callable[[], None] = lambda: None) -> Turns:
    """Measures puts and reads of a channel of 10,000 entities, of which this many change."""
    chance, serde = random.Random(1), savers["forge"].serde
    state = new_entities(chance)
    parents: dict[str, Any] = {kind: None for kind in savers}
    names = [f"{work} {kind}" for work in ("put", "get") for kind in savers]
    turns = Turns(*names, "dumps_typed", "loads_typed")
    for number in range(puts):
        for name in chance.sample(sorted(state), changed):
            state[name] = {**state[name], "score": chance.random()}
        one, metadata, new = step(number, state)

        def put(kind: str, one: Any = one, metadata: Any = metadata, new: Any = new) -> None:
            where = {"thread_id": "t", "checkpoint_ns": ""}
            if parents[kind]:
                where["checkpoint_id"] = parents[kind]
            savers[kind].put({"configurable": where}, one, metadata, new)
            parents[kind] = one["id"]

        work: dict[str, Callable[[], Any]] = {f"put {kind}": (lambda kind=kind: put(kind)) for kind in savers}
        work["dumps_typed"] = lambda: serde.dumps_typed(state)
        turns.take(work, chance)
        payload = serde.dumps_typed(state)
        last = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        work = {f"get {kind}": (lambda kind=kind: savers[kind].get_tuple(last)) for kind in savers}
        work["loads_typed"] = lambda: serde.loads_typed(payload)
        turns.take(work, chance)
        if number == 0:
            after_first()
    turns.show()
    other = next(kind for kind in savers if kind != "forge")
    turns.ratio("put forge", f"put {other}")
    turns.ratio("get forge", f"get {other}")
    print(f"get forge - loads_typed, wall p50: {turns.median('get forge') - turns.median('loads_typed'):.2f} ms")
    return turns


def entities(puts: int) -> None:
    """Measures puts and reads of a channel of 10,000 entities of which 25 change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other, connection = sqlite_saver(folder)
        with ForgeSaver.from_path(folder / "store") as ours:
            put_and_get({"forge": ours, "sqlite": other}, puts, 25)
        connection.close()


def postgres(puts: int) -> None:
    """Measures puts, reads and bytes of a channel of 10,000 entities of which one changes, and of which 25 do."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from postgres import started_server

    with started_server(durable=True) as server:
        found = [postgres_changes(server, puts, changed) for changed in (1, 25)]
    # For scripts/bench.
    print(json.dumps(found))


def postgres_changes(server: Any, puts: int, changed: int) -> dict[str, float]:
    """Measures puts that each change this many entities. Returns ratios to PostgresSaver's."""
    from langgraph.checkpoint.postgres import PostgresSaver

    places = {kind: server.new_database() for kind in ("forge", "postgres")}

    def taken() -> dict[str, int]:
        sql = "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relnamespace = '{}'::regnamespace"
        schemas = {"forge": "forge", "postgres": "public"}
        return {kind: int(server.run(place, sql.format(schemas[kind]))) for kind, place in places.items()}

    first: dict[str, int] = {}
    print(f"{puts} puts that change {changed}:")
    with (
        forge_store.open(places["forge"], name="bench", create=True, redact=False) as store,
        PostgresSaver.from_conn_string(places["postgres"]) as theirs,
    ):
        theirs.setup()
        savers = {"forge": ForgeSaver(store), "postgres": theirs}
        turns = put_and_get(savers, puts, changed, lambda: first.update(taken()))
        last = taken()
    for kind in places:
        print(f"{kind:9} {first[kind] / 1e6:.1f} MB after the first put, {last[kind] / 1e6:.1f} MB after {puts}")
    # Once the index has it, the first state takes about 3 MB more: 'forge maintain' brings it up to date.
    sql = "select 100 * position / stop from forge.index join forge.log using (store)"
    print(f"the index has {server.run(places['forge'], sql)} % of the journal")
    for place in places.values():
        server.run(place, "vacuum full")
    vacuumed = taken()
    print(f"forge / postgres, bytes: {last['forge'] / last['postgres']:.3f}; after a full vacuum: "
          f"{vacuumed['forge'] / vacuumed['postgres']:.3f}; added since the first put: "
          f"{(last['forge'] - first['forge']) / (last['postgres'] - first['postgres']):.3f}")
    return {
        "changed": changed,
        "puts": puts,
        **{f"{work}_{kind}_ms": turns.median(f"{work} {kind}") for work in ("put", "get") for kind in places},
        "dumps_typed_ms": turns.median("dumps_typed"),
        **{f"bytes_{kind}": last[kind] for kind in places},
        **{f"bytes_vacuumed_{kind}": vacuumed[kind] for kind in places},
    }


def writes(calls: int) -> None:
    """Measures the pending writes of one task beside the bare append of as many bytes to a file."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other, connection = sqlite_saver(folder)
        with ForgeSaver.from_path(folder / "store") as ours, open(folder / "bare", "ab", buffering=0) as bare:
            one, metadata, new = step(0, {})
            empty = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
            ready = {kind: saver.put(empty, one, metadata, new) for kind, saver in (("forge", ours), ("sqlite", other))}
            turns = Turns("forge", "sqlite", "bare append")
            for number in range(calls):
                content = " ".join(chance.choices(WORDS, k=80))
                made = [("messages", AIMessage(content=content, id=str(number)))]
                data = b"".join(ours.serde.dumps_typed(value)[1] for _, value in made)

                def append(data: bytes = data) -> None:
                    bare.write(data)
                    os.fdatasync(bare.fileno())

                turns.take({
                    "forge": lambda: ours.put_writes(ready["forge"], made, f"task-{number}"),
                    "sqlite": lambda: other.put_writes(ready["sqlite"], made, f"task-{number}"),
                    "bare append": append,
                }, chance)
        connection.close()
        turns.show()
        turns.ratio("forge", "bare append")
        turns.ratio("forge", "sqlite")


def threads(many: int) -> None:
    """Measures a put and a read of a thread among ten threads, and among many."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ForgeSaver.from_path(folder / "few") as few, ForgeSaver.from_path(folder / "many") as crowd:
            savers = {"10": (few, 10), str(many): (crowd, many)}
            began = time.perf_counter()
            for saver, count in savers.values():
                for number in range(count):
                    where = {"configurable": {"thread_id": f"thread-{number}", "checkpoint_ns": ""}}
                    saver.put(where, *step(0, {"a": number}))
            print(f"{many} threads were made in {time.perf_counter() - began:.0f} s")
            turns = Turns(*(f"{work} among {kind}" for work in ("put", "get") for kind in savers))
            for number in range(500):
                work: dict[str, Callable[[], Any]] = {}
                for kind, (saver, count) in savers.items():
                    where = {"configurable": {"thread_id": f"thread-{chance.randrange(count)}", "checkpoint_ns": ""}}
                    work[f"get among {kind}"] = lambda saver=saver, where=where: saver.get_tuple(where)
                turns.take(work, chance)
                work = {}
                for kind, (saver, count) in savers.items():
                    where = {"configurable": {"thread_id": f"thread-{chance.randrange(count)}", "checkpoint_ns": ""}}
                    last = saver.get_tuple(where)
                    assert last is not None
                    made = step(number + 1, {"a": number})
                    work[f"put among {kind}"] = lambda saver=saver, last=last, made=made: saver.put(last.config, *made)
                turns.take(work, chance)
            turns.show()
            for work_name in ("put", "get"):
                turns.ratio(f"{work_name} among {many}", f"{work_name} among 10")


if __name__ == "__main__":
    known = {
        "chat": (chat, 300),
        "entities": (entities, 200),
        "writes": (writes, 2_000),
        "threads": (threads, 100_000),
        "postgres": (postgres, 50),
    }
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(f"name one of {', '.join(known)}")
    run, count = known[sys.argv[1]]
    run(int(sys.argv[2]) if len(sys.argv) > 2 else count)
