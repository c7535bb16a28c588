"""``python -m forge_store.langgraph import --from sqlite PATH`` takes over threads of LangGraph."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from .. import ForgeError
from .. import open as open_store
from .._import_source import import_parser, unknown_source
from .importer import import_threads, postgres_source, sqlite_source

_SOURCES = {"sqlite": sqlite_source, "postgres": postgres_source}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    about = "Take over the threads of LangGraph's SqliteSaver or PostgresSaver."
    address = "'sqlite' and the path of the database, or 'postgres' and its address"
    parser, _ = import_parser("forge_store.langgraph", about, address)
    given = parser.parse_args(arguments)
    kind, address = given.source
    if kind not in _SOURCES:
        return unknown_source(kind, list(_SOURCES))
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
