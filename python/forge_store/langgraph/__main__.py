"""``python -m forge_store.langgraph import --from sqlite PATH`` takes over threads of LangGraph."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from .. import ForgeError
from .. import open as open_store
from .importer import import_threads, postgres_source, sqlite_source

_SOURCES = {"sqlite": sqlite_source, "postgres": postgres_source}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m forge_store.langgraph")
    commands = parser.add_subparsers(dest="command", required=True)
    about = "Take over the threads of LangGraph's SqliteSaver or PostgresSaver."
    command = commands.add_parser("import", help=about, description=about)
    command.add_argument(
        "--from",
        dest="source",
        nargs=2,
        required=True,
        metavar=("KIND", "ADDRESS"),
        help="'sqlite' and the path of the database, or 'postgres' and its address",
    )
    command.add_argument(
        "--store", help="folder of the forge store; by default the one that forge would use"
    )
    command.add_argument("--json", action="store_true", help="print the counts as JSON")
    given = parser.parse_args(arguments)
    kind, address = given.source
    if kind not in _SOURCES:
        print(f"error: '{kind}' is no kind of source: use sqlite or postgres", file=sys.stderr)
        return 2
    try:
        with (
            _SOURCES[kind](address) as source,
            open_store(given.store, create=True, redact=False) as store,
        ):
            done = import_threads(source, store)
    except ForgeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(done.to_dict()))
        return 0
    print(
        f"Imported {done.checkpoints} checkpoints and {done.writes} writes, "
        f"{done.threads} new threads; {done.known} checkpoints were there already."
    )
    print(f"They take {done.bytes_there} bytes there; the store grew by {done.bytes_here} bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
