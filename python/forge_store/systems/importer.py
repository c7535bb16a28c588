"""Takes over runs and progress that a program kept in the tables of a database.

A row of ``posting_state_checkpoints`` becomes a finished step of a run, a row of ``workflow_state``
the progress of an execution. Nothing is written to the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from importlib import import_module
from typing import Any, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .. import _forge
from .._import_source import postgres_connection
from .._store import Store, native_of
from .._values import refusal

RUN_TABLE = "posting_state_checkpoints"
PROGRESS_TABLE = "workflow_state"

_RUN_COLUMNS = (
    "checkpoint_id",
    "posting_id",
    "workflow_run_id",
    "conversation_id",
    "execution_order",
    "state_snapshot",
    "created_at",
)
_PROGRESS_COLUMNS = (
    "id",
    "review_id",
    "execution_id",
    "workflow_stage",
    "checkpoint_data",
    "items_processed",
    "items_total",
    "last_processed_id",
    "error_count",
    "created_at",
    "updated_at",
)
_ROWS_AT_ONCE = 200
# Python supports times in these years; any other time is read as no time.
_YEARS = "BETWEEN '0002-01-01' AND '9998-12-31'"


def _query(table: str, columns: Sequence[str], order: str) -> str:
    shown = (
        f"CASE WHEN {name} {_YEARS} THEN {name} END AS {name}" if name.endswith("_at") else name
        for name in columns
    )
    return f"SELECT {', '.join(shown)} FROM {table} ORDER BY {order}"


_QUERIES = {
    RUN_TABLE: _query(RUN_TABLE, _RUN_COLUMNS, "checkpoint_id"),
    PROGRESS_TABLE: _query(PROGRESS_TABLE, _PROGRESS_COLUMNS, f"{PROGRESS_TABLE}.updated_at, id"),
}


_Row = Mapping[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class PassedOver:
    """A row that an import left out."""

    row: str
    """The id of the row; if it has none, its place among the rows, such as ``#3``."""
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


Report = Callable[[PassedOver], object]


@dataclass
class ImportedRows:
    """What an import of rows saved."""

    saved: int = 0
    known: int = 0
    """The rows that were there before."""
    passed_over: int = 0
    problems: list[PassedOver] = field(default_factory=list[PassedOver])
    """Why rows were passed over, unless ``report`` was given."""


class _BadRow(Exception):
    """Why a row cannot be imported."""


def import_run_rows(
    store: Store,
    rows: Iterable[Any],
    *,
    time_zone: tzinfo | None = None,
    report: Report | None = None,
) -> ImportedRows:
    """See `Run.import_rows`."""

    def write(row: _RunRow) -> str:
        return _forge.Run(store.native, row.run).import_row(
            row.number,
            row.time,
            (row.item, row.step),
            row.output,
            row.next,
            row.terminal,
            row.order,
            row.data,
            row.others,
        )

    return _import(store, rows, "checkpoint_id", (_run_row, write), time_zone, report)


def import_progress_rows(
    store: Store,
    rows: Iterable[Any],
    *,
    time_zone: tzinfo | None = None,
    report: Report | None = None,
) -> ImportedRows:
    """See `Progress.import_rows`."""

    def write(row: _ProgressRow) -> str:
        progress = _forge.Progress(store.native, row.review, row.execution)
        return progress.import_row(row.time, row.document)

    return _import(store, rows, "id", (_progress_row, write), time_zone, report)


def _import(
    store: Store,
    rows: Iterable[Any],
    id_column: str,
    steps: tuple[Callable[[_Row, tzinfo | None], _T], Callable[[_T], str]],
    time_zone: tzinfo | None,
    report: Report | None,
) -> ImportedRows:
    read, write = steps
    done = ImportedRows()
    # This raises an error if it is no store, or a closed one.
    native_of(store).sync()
    try:
        for place, given in enumerate(rows, 1):
            row = _named(given)
            try:
                checked = read(row, time_zone)
            except _BadRow as error:
                result = str(error)
            else:
                try:
                    result = write(checked)
                except _forge.Invalid as error:
                    result = str(error)
            if result == "saved":
                done.saved += 1
            elif result == "known":
                done.known += 1
            else:
                if result == "older":
                    result = "something newer is stored already"
                done.passed_over += 1
                id = row.get(id_column)
                bad = PassedOver(f"#{place}" if id is None else str(id), result)
                (report or done.problems.append)(bad)
    finally:
        store.native.sync()
    return done


@dataclass
class _RunRow:
    """A checked row of a table of checkpoints."""

    number: int
    run: str
    item: str
    step: str
    order: int
    output: str
    others: list[tuple[str, str]]
    next: str | None
    terminal: bool
    data: dict[str, Any]
    time: datetime


def _run_row(row: _Row, zone: tzinfo | None) -> _RunRow:
    number, item, run, step, order = (
        _column(row, name, int, "a whole number") for name in _RUN_COLUMNS[:5]
    )
    snapshot = _object(row, "state_snapshot")
    for name, value in (("posting_id", item), ("workflow_run_id", run)):
        if snapshot.get(name, value) != value:
            raise _BadRow(f"'{name}' is {value}, and {snapshot[name]} in its state_snapshot")
    outputs: object = snapshot.pop("outputs", None)
    if not isinstance(outputs, dict):
        raise _BadRow("its state_snapshot has no object 'outputs'")
    known = cast("dict[str, Any]", outputs).items()
    texts: dict[str, Any] = {name: text for name, text in known if text is not None}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise _BadRow(f"the output of the conversation {name} is a {type(text).__name__}")
    own = texts.pop(str(step), None)
    if own is None:
        raise _BadRow(f"its state_snapshot has no output of the conversation {step}")
    current, terminal = snapshot.get("current_conversation_id"), snapshot.get("is_terminal", False)
    if isinstance(current, bool) or not isinstance(current, int | None):
        raise _BadRow(f"'current_conversation_id' is a {type(current).__name__}")
    if not isinstance(terminal, bool):
        raise _BadRow(f"'is_terminal' is a {type(terminal).__name__}")
    return _RunRow(
        number=number,
        run=str(run),
        item=str(item),
        step=str(step),
        order=order,
        output=own,
        others=_in_sequence(texts, snapshot.get("execution_sequence")),
        next=None if current in (None, step) else str(current),
        terminal=terminal,
        data=snapshot,
        time=_time(row, "created_at", zone),
    )


def _in_sequence(outputs: dict[str, str], sequence: object) -> list[tuple[str, str]]:
    """Outputs by step, those of the sequence in its order, and before them the others."""
    known = cast("list[object]", sequence) if isinstance(sequence, list) else []
    steps = [str(step) for step in known]
    places = {step: place for place, step in reversed(list(enumerate(steps)))}
    return sorted(outputs.items(), key=lambda one: places.get(one[0], -1))


@dataclass
class _ProgressRow:
    """A checked row of a table of progress."""

    review: str
    execution: str
    time: datetime
    document: dict[str, Any]


def _progress_row(row: _Row, zone: tzinfo | None) -> _ProgressRow:
    id, review, last = (
        str(value) if isinstance(value := row.get(name), UUID) else value
        for name in ("id", "review_id", "last_processed_id")
    )
    named: dict[str, Any] = {**row, "id": id, "review_id": review, "last_processed_id": last}
    for name in ("id", "review_id", "execution_id", "workflow_stage"):
        _column(named, name, str, "a text")
    data = _object(row, "checkpoint_data")
    stage = named["workflow_stage"]
    if data.get("stage", stage) != stage:
        raise _BadRow(f"'workflow_stage' is {stage}, and {data['stage']} in its checkpoint_data")
    times = {name: _time(row, name, zone) for name in ("created_at", "updated_at")}
    document = {name: named.get(name) for name in _PROGRESS_COLUMNS}
    document.update(times, checkpoint_data=data)
    return _ProgressRow(named["review_id"], named["execution_id"], times["updated_at"], document)


def _named(row: object) -> _Row:
    """A row by column: a mapping, or a named tuple."""
    if isinstance(row, Mapping):
        return cast("_Row", row)
    if hasattr(row, "_asdict"):
        return cast("_Row", cast("Any", row)._asdict())
    what = f"a row is a {type(row).__name__}, which does not name its columns"
    next = "read dictionaries, as with row_factory=psycopg.rows.dict_row"
    raise refusal(_forge.Invalid, what, next)


def _column(row: _Row, name: str, types: type | tuple[type, ...], said: str) -> Any:
    """A column that must have a value of these types."""
    value = row.get(name)
    if value is None:
        raise _BadRow(f"the column '{name}' is missing")
    if not isinstance(value, types) or isinstance(value, bool):
        raise _BadRow(f"the column '{name}' is a {type(value).__name__} and not {said}")
    return value


def _object(row: _Row, name: str) -> dict[str, Any]:
    """A column of JSON that must be an object."""
    value = row.get(name)
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise _BadRow(f"the column '{name}' is not JSON: {error}") from error
    found: dict[str, Any] = _column({name: value}, name, dict, "a JSON object")
    return dict(found)


def _time(row: _Row, name: str, zone: tzinfo | None) -> datetime:
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError as error:
            raise _BadRow(f"the column '{name}' is not a time: '{value}'") from error
    time: datetime = _column({name: value}, name, datetime, "a time")
    if time.utcoffset() is not None:
        return _past(time, name)
    if zone is None:
        what = f"the times in the column '{name}' have no time zone"
        next = "say which with time_zone=ZoneInfo('Europe/Berlin') or --time-zone Europe/Berlin"
        raise refusal(_forge.Invalid, what, next)
    return _past(time.replace(tzinfo=zone), name)


def _past(time: datetime, name: str) -> datetime:
    # The clock of another machine may be ahead.
    if time - datetime.now(timezone.utc) > timedelta(days=1):
        raise _BadRow(f"the column '{name}' is a time to come: {time}")
    return time


@dataclass
class DatabaseRows:
    """The tables that were found in a database."""

    tables: list[str]
    time_zone: ZoneInfo | None
    """The zone of its times without a zone; ``None`` if Python does not know it."""
    rows: Callable[[str], Iterator[_Row]]
    """Reads the rows of a table in the order in which they are imported."""


@contextmanager
def postgres_rows(address: str) -> Generator[DatabaseRows]:
    """Opens a PostgreSQL database, for reading: its tables as they were at one moment."""
    with postgres_connection(address) as connection:
        psycopg = import_module("psycopg")
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tables = [name for name in (RUN_TABLE, PROGRESS_TABLE) if _is_table(connection, name)]
        if not tables:
            what = f"the database has no table {RUN_TABLE} or {PROGRESS_TABLE}"
            raise refusal(_forge.Invalid, what, "name another, or its schema in options")

        def rows(table: str) -> Iterator[_Row]:
            # A cursor with a name is on the server, which sends some rows at a time.
            with connection.cursor(name=table) as cursor:
                cursor.itersize = _ROWS_AT_ONCE
                try:
                    cursor.execute(_QUERIES[table])
                    yield from cursor
                except psycopg.errors.UndefinedColumn as error:
                    what = f"the table {table} has other columns: {error.diag.message_primary}"
                    raise refusal(_forge.Invalid, what, "see docs/systems/runs.md") from error
                except psycopg.Error as error:
                    what = f"the table {table} cannot be read to its end: {error}"
                    next = "import it again, which goes on with the rows that are left"
                    raise refusal(_forge.Unavailable, what, next) from error

        try:
            zone = ZoneInfo(connection.info.parameter_status("TimeZone"))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            zone = None
        yield DatabaseRows(tables, zone, rows)


def _is_table(connection: Any, name: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL AS found", (name,)).fetchone()
    return bool(found["found"])
