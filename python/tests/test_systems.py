"""The owner's systems, with the verbs of their documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import forge_store
import pytest
from forge_store import Store
from forge_store.systems import Program, Progress, Run, Thread


def test_a_run_resumes_with_all_outputs(path: Path) -> None:
    with forge_store.open(path, create=True) as store:
        run = Run(store, "run-7")
        run.start([{"item": 4711, "title": "engineer"}, {"item": 4712}])
        run.save_checkpoint(4711, 3, "a summary", next=5, order=1, data={"tries": 1})
        run.save_checkpoint(4711, 5, "skills", next=6, order=2)
        run.save_checkpoint(4712, 3, "done", terminal=True)
    # Another process, after a crash.
    with forge_store.open(path) as store:
        run = Run(store, "run-7")
        [item] = run.resume_from_checkpoints()
        assert (item["item"], item["step"], item["next"]) == ("4711", "5", "6")
        assert item["outputs"] == {"3": "a summary", "5": "skills"}
        assert run.get_conversation_output(4711, 3) == "a summary"
        assert run.get_multiple_outputs(4711, [3, 9]) == {"3": "a summary", "9": None}
        assert run.get_all_outputs(4712) == {"3": "done"}
        assert run.checkpoint_exists(4711, 5) and not run.checkpoint_exists(4711, 6)
        with pytest.raises(forge_store.NotFound):
            run.get_conversation_output(4711, 6)
        run.end("given up")
        # No run is a debugging session.
        assert [info.kind for info in store.sessions()] == ["run"]


def test_progress_is_upserted_validated_and_resumed(store: Store) -> None:
    progress = Progress(store, "review-1", "monday")
    document: dict[str, Any] = {
        "batch_info": {"current_batch": 3, "total_batches": 9},
        "items_processed": 300,
        "items_total": 900,
    }
    progress.upsert(document, stage="fetch")
    document["batch_info"]["current_batch"] = 4
    progress.upsert({**document, "stage": "fetch"})
    with pytest.raises(forge_store.Invalid, match="stage="):
        progress.upsert(document)
    saved = progress.document
    assert saved is not None and saved["batch_info"]["current_batch"] == 4
    assert set(progress.validate()) == {"refusals", "warnings"}
    with pytest.raises(forge_store.Invalid):
        progress.upsert({"batch_info": "no object"}, stage="fetch")
    with pytest.raises(forge_store.NotFound):
        Progress(store, "review-1", "tuesday").validate()


def test_a_program_can_ask_before_anything_is_written(store: Store) -> None:
    """A program that starts does not know whether it is the first time."""
    run, progress = Run(store, "night"), Progress(store, "review-1", "monday")
    assert not run.checkpoint_exists("a", "fetch")
    assert run.get_multiple_outputs("a", ["fetch"]) == {"fetch": None}
    assert run.resume_from_checkpoints() == []
    with pytest.raises(forge_store.NotFound, match="no run 'night'"):
        run.get_conversation_output("a", "fetch")
    assert progress.document is None
    assert progress.resume("fetch")["decision"] == "nothing"
    team = Program(store, "team")
    assert team.latest_checkpoints()["agents"] == {}
    thread = Thread(store, "chat")
    assert thread.load() == thread.load(sanitize=False) == thread.sanitize() == []
    assert store.sessions() == [], "reading writes nothing"
    with pytest.raises(forge_store.Invalid):
        team.save_checkpoint({"": "HEAD"})
    assert team.latest_checkpoints()["agents"] == {}


def test_a_refused_first_write_begins_nothing(store: Store) -> None:
    """The calls left an empty run, execution, program or thread."""
    large = "x " * (33 << 20)
    calls: list[Callable[[], object]] = [
        lambda: Run(store, "night").start([{"item": "a"}, {"words": 1}]),
        lambda: Run(store, "night").save_checkpoint("", "fetch", "x"),
        lambda: Run(store, "night").save_checkpoint("a", "fetch", large),
        lambda: Progress(store, "review-1", "monday").upsert({"notes": large}, stage="fetch"),
        lambda: Program(store, "team").save_checkpoint({"": "HEAD"}),
        lambda: Thread(store, "chat").append({"role": "nobody"}),
        lambda: Thread(store, "chat").append({"role": "user", "content": large}),
    ]
    for call in calls:
        with pytest.raises(forge_store.Invalid):
            call()
        assert store.sessions() == []


def test_a_program_resumes_from_its_agents_latest_checkpoints(store: Store) -> None:
    planner = store.session("planner")
    first = planner.checkpoint("first")
    program = Program(store, "night")
    program.save_checkpoint({"planner": f"#{first.number}", "gone": "x"}, "before the merge")
    later = planner.checkpoint("later")
    found = program.latest_checkpoints()
    assert found["agents"]["planner"]["number"] == later.number
    assert list(found["missing"]) == ["gone"]
    assert program.latest_checkpoints(exact=True)["agents"]["planner"]["number"] == first.number
    with pytest.raises(forge_store.Invalid):
        program.save_checkpoint({})
    with pytest.raises(forge_store.NotFound):
        Program(store, "day").save_checkpoint({"planner": "nope"})
    assert [info.kind for info in store.sessions()] == ["debug", "program"]


def test_where_an_agent_is_now_is_its_last_checkpoint(store: Store) -> None:
    """`HEAD` was the last revision, so an exact resume lost the checkpoints after it."""
    planner, program = store.session("planner"), Program(store, "night")

    def saved() -> tuple[str, int]:
        found = program.latest_checkpoints(exact=True)["agents"]["planner"]
        return found["checkpoint"], found["number"]

    first = planner.checkpoint("first", tags=["first"])
    program.save_checkpoint({"planner": "HEAD"})
    assert saved() == ("first", first.number)
    later = planner.checkpoint("later", tags=["later"])
    program.save_checkpoint({"planner": later})
    assert saved() == ("later", later.number)
    with pytest.raises(forge_store.NotFound):
        program.save_checkpoint({"planner": store.session("other").checkpoint("with the number 1")})
    revision = planner.note("after it").revision
    assert revision is not None
    program.save_checkpoint({"planner": "HEAD"})
    assert saved() == (f"#{revision}", revision)


def test_a_thread_is_sanitised_on_load(store: Store) -> None:
    thread = Thread(store, "chat")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    thread.append(
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    )
    loaded = thread.load()
    assert [one["role"] for one in loaded] == ["user", "assistant", "tool"]
    assert loaded[2]["tool_call_id"] == "c1"
    assert len(thread.load(sanitize=False)) == 2, "loading writes nothing"
    assert len(thread.sanitize()) == 3 and len(thread.load(sanitize=False)) == 3
    with pytest.raises(forge_store.Invalid):
        thread.append({"role": "nobody"})
    for wrong in ([{"role": "user", "content": "go"}], "go", None):
        with pytest.raises(TypeError, match=r"append\(\*messages\)"):
            thread.append(wrong)  # type: ignore[arg-type]
    for content in (float("nan"), {"a set"}):
        with pytest.raises(forge_store.Invalid, match="a message is not JSON"):
            thread.append({"role": "user", "content": content})
    assert len(thread.load()) == 3
