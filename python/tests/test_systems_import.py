"""Rows of the tables posting_state_checkpoints and workflow_state become runs and progress."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import forge_store
import pytest
from forge_store import Store
from forge_store.systems import Progress, Run, importer
from forge_store.systems.__main__ import main
from killed import kill_after
from postgres import postgres_server, skipped

BEGIN = datetime(2025, 11, 17, 10, tzinfo=timezone.utc)
STEPS = [3341, 3342, 3343]
REVIEWS = [UUID(int=number) for number in (1, 2)]

SCHEMA = """
CREATE TABLE posting_state_checkpoints (
    checkpoint_id SERIAL PRIMARY KEY,
    posting_id INTEGER NOT NULL,
    workflow_run_id INTEGER,
    conversation_id INTEGER,
    execution_order INTEGER,
    state_snapshot JSONB NOT NULL,
    created_at TIMESTAMP DEFAULT NOW()
);
CREATE TABLE workflow_state (
    id UUID PRIMARY KEY,
    review_id UUID,
    execution_id VARCHAR(100) NOT NULL,
    workflow_stage VARCHAR(100) NOT NULL,
    checkpoint_data JSONB NOT NULL,
    items_processed INTEGER,
    items_total INTEGER,
    last_processed_id UUID,
    error_count INTEGER DEFAULT 0,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW()
);
"""


def run_rows(runs: int = 2, postings: int = 3) -> Iterator[dict[str, Any]]:
    """Checkpoints in waves: every posting of a run finishes a conversation, then the next one."""
    number = 0
    for wave, step in enumerate(STEPS):
        for run in range(4567, 4567 + runs):
            for posting in range(123, 123 + postings):
                number += 1
                done = STEPS[: wave + 1]
                last = step == STEPS[-1]
                yield {
                    "checkpoint_id": number,
                    "posting_id": posting,
                    "workflow_run_id": run,
                    "conversation_id": step,
                    "execution_order": wave + 1,
                    "state_snapshot": {
                        "posting_id": posting,
                        "job_description": "Rust developer",
                        "current_conversation_id": step if last else STEPS[wave + 1],
                        "outputs": {str(one): f"{run} {posting} {one}" for one in done},
                        "execution_sequence": done,
                        "is_terminal": last,
                        "workflow_run_id": run,
                    },
                    "created_at": BEGIN + timedelta(seconds=number),
                }


def progress_rows() -> Iterator[dict[str, Any]]:
    for number in range(6):
        yield {
            "id": UUID(int=100 + number),
            "review_id": REVIEWS[number % 2],
            "execution_id": f"night-{number // 2}",
            "workflow_stage": "screening_ta",
            "checkpoint_data": {
                "stage": "screening_ta",
                "batch_info": {"current_batch": 15, "total_batches": 42},
                "context": {"model_name": "llama"},
                "error_info": {"last_error": "timeout", "failed_item_ids": ["c1", "d2"]},
            },
            "items_processed": 1500 + number,
            "items_total": 4200,
            "last_processed_id": UUID(int=7),
            "error_count": 12,
            "created_at": BEGIN,
            "updated_at": BEGIN + timedelta(hours=number + 1),
        }


def contents(store: Store) -> list[Any]:
    """Everything that the sessions of a store have, with its times."""
    found: list[Any] = []
    for info in sorted(store.sessions(), key=lambda info: info.name):
        session = store.session(info.name, create=False)
        history = [
            (entry.time, [claim.to_dict() for claim in session.at(f"#{number}").state.claims])
            for number, entry in enumerate(reversed(list(session.log())), 1)
        ]
        found.append((info.name, info.kind, info.started_at, history))
    return found


def test_a_row_is_a_step_with_all_outputs_at_its_time(store: Store) -> None:
    rows = list(run_rows())
    done = Run.import_rows(store, iter(rows))
    assert (done.saved, done.known, done.passed_over) == (18, 0, 0)
    run = Run(store, "4567")
    assert run.get_all_outputs(123) == {str(step): f"4567 123 {step}" for step in STEPS}
    assert run.checkpoint_exists(125, 3343) and not run.resume_from_checkpoints()
    session = store.session("4567", create=False)
    assert [entry.time for entry in session.log()][0] == rows[14]["created_at"]
    assert store.sessions()[0].started_at == BEGIN + timedelta(seconds=1)
    # At the end of the second wave.
    item = session.at(rows[8]["created_at"]).state["125"]
    assert item.fields["order"] == 2 and item.fields["next"] == "3343"
    assert item.fields["data"]["job_description"] == "Rust developer"
    before = contents(store)
    again = Run.import_rows(store, rows)
    assert (again.saved, again.known) == (0, 18) and contents(store) == before


def test_a_row_is_the_progress_of_an_execution(store: Store) -> None:
    done = Progress.import_rows(store, progress_rows())
    assert (done.saved, done.known, done.passed_over) == (6, 0, 0)
    progress = Progress(store, str(REVIEWS[1]), "night-2")
    assert progress.document == {
        "id": str(UUID(int=105)),
        "review_id": str(REVIEWS[1]),
        "execution_id": "night-2",
        "stage": "screening_ta",
        "batch_info": {"current_batch": 15, "total_batches": 42},
        "progress": {"items_processed": 1505, "items_total": 4200},
        "last_processed": {"document_id": str(UUID(int=7))},
        "context": {"model_name": "llama"},
        "error_info": {"last_error": "timeout", "failed_item_ids": ["c1", "d2"], "error_count": 12},
        "created_at": "2025-11-17T10:00:00Z",
        "updated_at": "2025-11-17T16:00:00Z",
    }
    assert progress.validate()["refusals"] == []
    resumed = progress.resume("screening_ta")
    assert (resumed["decision"], resumed["next_batch"]) == ("go", 16)
    assert resumed["failed_ids"] == ["c1", "d2"]
    before = contents(store)
    again = Progress.import_rows(store, progress_rows())
    assert (again.saved, again.known) == (0, 6) and contents(store) == before
    # A row that was changed since is saved, and the one before is in the history.
    changed = [{**row, "updated_at": BEGIN + timedelta(days=2)} for row in progress_rows()][:1]
    assert Progress.import_rows(store, changed).saved == 1
    assert Progress.import_rows(store, progress_rows()).known == 6
    assert len(store.session(f"{REVIEWS[0]}/night-0", create=False).log()) == 2


def test_a_row_that_does_not_say_what_is_needed_is_passed_over_with_its_id(store: Store) -> None:
    good = next(run_rows())
    snapshot = good["state_snapshot"]
    wrong: dict[str, dict[str, Any]] = {
        "the column 'conversation_id' is missing": {"conversation_id": None},
        "the column 'posting_id' is a str and not a whole number": {"posting_id": "123"},
        "the column 'execution_order' is a bool": {"execution_order": True},
        "the column 'state_snapshot' is missing": {"state_snapshot": None},
        "the column 'state_snapshot' is not JSON": {"state_snapshot": "{"},
        "the column 'state_snapshot' is a list": {"state_snapshot": []},
        "no object 'outputs'": {"state_snapshot": {}},
        "no output of the conversation 3341": {"state_snapshot": {"outputs": {"9": "x"}}},
        "the output of the conversation 3341 is a int": {
            "state_snapshot": {"outputs": {"3341": 5}}
        },
        "'posting_id' is 123, and 9 in its state_snapshot": {
            "state_snapshot": {**snapshot, "posting_id": 9}
        },
        "'is_terminal' is a int": {"state_snapshot": {**snapshot, "is_terminal": 1}},
        "more than 64 bits": {"state_snapshot": {**snapshot, "job_description": 2**70}},
        "'current_conversation_id' is a str": {
            "state_snapshot": {**snapshot, "current_conversation_id": "3"}
        },
        "the column 'created_at' is missing": {"created_at": None},
        "is not a time: 'yesterday'": {"created_at": "yesterday"},
        "is a time to come: 2999-01-01": {"created_at": datetime(2999, 1, 1, tzinfo=timezone.utc)},
    }
    rows = [{**good, "checkpoint_id": 100 + n, **change} for n, change in enumerate(wrong.values())]
    done = Run.import_rows(store, [*rows, {}, good])
    assert (done.saved, done.passed_over) == (1, len(wrong) + 1)
    for place, (reason, bad) in enumerate(zip(wrong, done.problems)):
        assert bad.row == str(100 + place) and reason in bad.reason, bad
    assert str(done.problems[-1]) == f"row #{len(rows) + 1}: the column 'checkpoint_id' is missing"
    seen: list[str] = []
    done = Run.import_rows(store, rows, report=lambda bad: seen.append(bad.row))
    assert (len(seen), done.passed_over, done.problems) == (len(rows), len(rows), [])


def test_progress_that_contradicts_itself_is_passed_over(store: Store) -> None:
    good = next(progress_rows())
    wrong: dict[str, dict[str, Any]] = {
        "the column 'review_id' is missing": {"review_id": None},
        "'workflow_stage' is searching, and screening_ta in": {"workflow_stage": "searching"},
        "'progress.items_total' must be a whole number": {"items_total": "many"},
        "the column 'updated_at' is a int and not a time": {"updated_at": 5},
    }
    done = Progress.import_rows(store, [{**good, **change} for change in wrong.values()])
    assert done.saved == 0 and store.sessions() == []
    for reason, bad in zip(wrong, done.problems, strict=True):
        assert bad.row == str(good["id"]) and reason in bad.reason, bad
    newer = {**good, "updated_at": BEGIN + timedelta(days=1)}
    done = Progress.import_rows(store, [newer, {**good, "id": UUID(int=9)}])
    assert done.saved == 1 and "something newer is stored" in done.problems[0].reason


def test_rows_come_in_any_form_that_names_their_columns(store: Store) -> None:
    first, second = list(run_rows())[:2]
    Row = namedtuple("Row", list(first))  # type: ignore[misc]
    texts = {
        "state_snapshot": json.dumps(second["state_snapshot"]),
        "created_at": "2025-11-17T10:00:02",
    }
    berlin = ZoneInfo("Europe/Berlin")
    rows = [Row(**first), {**second, **texts}]
    assert Run.import_rows(store, rows, time_zone=berlin).saved == 2
    item = store.session("4567", create=False).head.state["124"]
    assert item.at == datetime(2025, 11, 17, 9, 0, 2, tzinfo=timezone.utc)
    with pytest.raises(forge_store.Invalid, match="does not name its columns.*dict_row"):
        Run.import_rows(store, [tuple(first.values())])
    with pytest.raises(forge_store.Invalid, match="no time zone; say which with time_zone="):
        Run.import_rows(store, [{**second, **texts}])
    store.close()
    with pytest.raises(forge_store.Invalid, match="the store is closed"):
        Run.import_rows(store, rows)


def test_imports_at_once_save_each_row_once(store: Store) -> None:
    def take(_: int) -> tuple[int, int]:
        runs = Run.import_rows(store, run_rows())
        progress = Progress.import_rows(store, progress_rows())
        assert runs.passed_over == progress.passed_over == 0
        return runs.saved, progress.saved

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(take, range(3)))
    assert [sum(counts) for counts in zip(*done)] == [18, 6]
    whole = forge_store.in_memory()
    Run.import_rows(whole, run_rows())
    Progress.import_rows(whole, progress_rows())
    assert contents(store) == contents(whole)


KILLED = """
    import sys
    from datetime import timezone
    import forge_store
    from forge_store.systems import Progress, Run, importer
    from test_systems_import import progress_rows, run_rows

    def told(rows):
        for row in rows:
            yield row
            print("done", flush=True)

    with forge_store.open(sys.argv[1], create=True) as store:
        Run.import_rows(store, told(run_rows()))
        Progress.import_rows(store, told(progress_rows()))
"""


@pytest.mark.parametrize("lines", [0, 1, 2, 7, 13, 17, 18, 20, 23])
def test_a_killed_import_is_completed_by_the_next(path: Path, lines: int) -> None:
    assert kill_after(lines, KILLED, path)
    whole = forge_store.in_memory()
    Run.import_rows(whole, run_rows())
    Progress.import_rows(whole, progress_rows())
    with forge_store.open(path, create=True) as store:
        runs, progress = (
            Run.import_rows(store, run_rows()),
            Progress.import_rows(store, progress_rows()),
        )
        assert runs.known + progress.known >= lines
        assert runs.saved + runs.known == 18 and progress.saved + progress.known == 6
        assert contents(store) == contents(whole)
        assert store.verify(full=True)


def psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        skipped(str(error))
    return psycopg


def fill(address: str, runs: int) -> None:
    from psycopg.types.json import Jsonb

    with psycopg().connect(address) as connection:
        connection.execute(SCHEMA)
        for table, rows in (
            (importer.RUN_TABLE, run_rows(runs)),
            (importer.PROGRESS_TABLE, progress_rows()),
        ):
            for row in rows:
                values = [Jsonb(one) if isinstance(one, dict) else one for one in row.values()]
                places = ", ".join(["%s"] * len(values))
                names = ", ".join(row)
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", values)


def test_the_tables_of_a_database_are_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = 40
    with postgres_server() as address:
        command = ["import", "--from", "postgres", address, "--store"]
        assert main([*command, str(tmp_path / "none")]) == 1
        assert "no table posting_state_checkpoints or workflow_state" in capsys.readouterr().err
        fill(address, runs)
        whole = forge_store.in_memory()
        Run.import_rows(whole, run_rows(runs))
        Progress.import_rows(whole, progress_rows())
        total = runs * 9
        assert main([*command, str(tmp_path / "a"), "--time-zone", "UTC"]) == 0
        said = capsys.readouterr().out
        assert f"posting_state_checkpoints: {total} rows saved, 0 were there already, 0" in said
        assert "workflow_state: 6 rows saved" in said and "were read as UTC." in said
        with forge_store.open(tmp_path / "a") as store:
            assert contents(store) == contents(whole)
        assert main([*command, str(tmp_path / "a"), "--json", "--time-zone", "UTC"]) == 0
        counts = json.loads(capsys.readouterr().out)
        assert counts[importer.RUN_TABLE] == {"saved": 0, "known": total, "passed_over": 0}
        # Killed at several moments, and started again.
        for lines in (1, 100, total + 3):
            assert kill_after(lines, KILLED_DATABASE, tmp_path / "b", address)
        assert main([*command, str(tmp_path / "b"), "--time-zone", "UTC"]) == 0
        with forge_store.open(tmp_path / "b") as store:
            assert contents(store) == contents(whole)
        capsys.readouterr()
        with psycopg().connect(address) as connection:
            for number, change in ((5, "created_at = 'infinity'"), (6, "conversation_id = NULL")):
                table = f"UPDATE posting_state_checkpoints SET {change}"
                connection.execute(f"{table} WHERE checkpoint_id = {number}")
        assert main([*command, str(tmp_path / "c")]) == 1
        bad = capsys.readouterr().err
        assert "passed over: posting_state_checkpoints, row 5: the column 'created_at' is" in bad
        assert "passed over: posting_state_checkpoints, row 6: the column 'conversation_id'" in bad
        with forge_store.open(tmp_path / "c") as store:
            # The next row of the posting has the output of row 6.
            assert Run(store, "4568").get_conversation_output(125, 3341) == "4568 125 3341"
        with psycopg().connect(address) as connection:
            connection.execute("ALTER DATABASE postgres SET timezone = 'Europe/Berlin'")
        assert main([*command, str(tmp_path / "d")]) == 1
        assert "were read as Europe/Berlin." in capsys.readouterr().out
        with forge_store.open(tmp_path / "d") as store:
            began = min(info.started_at for info in store.sessions() if info.kind == "run")
            assert began == BEGIN + timedelta(seconds=1) - timedelta(hours=1)
        with psycopg().connect(address) as connection:
            connection.execute("ALTER TABLE workflow_state RENAME COLUMN error_count TO errors")
        assert main([*command, str(tmp_path / "c")]) == 1
        assert "the table workflow_state has other columns" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "c")]) == 1
    said = capsys.readouterr().err
    assert "cannot be reached" in said and said.count("\n") == 1
    assert main(["import", "--from", "mysql", "x"]) == 2
    assert "'mysql' is not a kind of source: use postgres" in capsys.readouterr().err


KILLED_DATABASE = """
    import sys
    from zoneinfo import ZoneInfo
    import forge_store
    from forge_store.systems import Progress, Run, importer

    def told(rows):
        for row in rows:
            yield row
            print("done", flush=True)

    with (
        importer.postgres_rows(sys.argv[2]) as source,
        forge_store.open(sys.argv[1], create=True) as store,
    ):
        for table, system in ((importer.RUN_TABLE, Run), (importer.PROGRESS_TABLE, Progress)):
            system.import_rows(store, told(source.rows(table)), time_zone=ZoneInfo("UTC"))
"""
