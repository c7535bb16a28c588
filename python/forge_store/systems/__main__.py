"""``python -m forge_store.systems import --from postgres ADDRESS`` takes over runs and progress."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .. import ForgeError
from .. import open as open_store
from .._import_source import import_parser, unknown_source
from . import ImportedRows, PassedOver, Progress, Run
from .importer import PROGRESS_TABLE, RUN_TABLE, postgres_rows

_IMPORTS = {RUN_TABLE: Run.import_rows, PROGRESS_TABLE: Progress.import_rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    kind, address = given.source
    if kind != "postgres":
        return unknown_source(kind, ["postgres"])
    done: dict[str, ImportedRows] = {}
    try:
        with (
            postgres_rows(address) as source,
            open_store(given.store, create=True) as store,
        ):
            zone: ZoneInfo | None = given.time_zone or source.time_zone
            for table in source.tables:

                def report(bad: PassedOver, table: str = table) -> None:
                    print(f"passed over: {table}, {bad}", file=sys.stderr)

                rows = source.rows(table)
                done[table] = _IMPORTS[table](store, rows, time_zone=zone, report=report)
    except ForgeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps({table: _counts(one) for table, one in done.items()}))
    else:
        for table, one in done.items():
            counts = "{saved} rows saved, {known} were there already, {passed_over} passed over"
            print(f"{table}: {counts.format(**_counts(one))}.")
        if zone is not None:
            print(f"Times without a zone were read as {zone}.")
    return 1 if any(one.passed_over for one in done.values()) else 0


def _counts(done: ImportedRows) -> dict[str, int]:
    return {"saved": done.saved, "known": done.known, "passed_over": done.passed_over}


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        what = f"'{name}' is not a time zone such as Europe/Berlin"
        raise argparse.ArgumentTypeError(what) from error


def _parser() -> argparse.ArgumentParser:
    about = f"Take over the rows of the tables {RUN_TABLE} and {PROGRESS_TABLE}."
    address = "'postgres' and the address of the database"
    parser, command = import_parser("forge_store.systems", about, address)
    command.add_argument(
        "--time-zone",
        type=_zone,
        metavar="NAME",
        help="zone of times without one, as Europe/Berlin; by default that of the database",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
