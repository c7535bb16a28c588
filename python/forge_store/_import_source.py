"""What the imports of data from other programs have in common: the command line
``python -m forge_store.MODULE import``, and PostgreSQL as a source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from . import _forge
from ._values import refusal


def import_parser(
    module: str, about: str, address: str
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser of a module's command line and that of its verb ``import``, which takes over what
    another program keeps. ``address`` describes the name of a source."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("import", help=about, description=about)
    command.add_argument(
        "--from",
        dest="source",
        nargs=2,
        required=True,
        metavar=("KIND", "ADDRESS"),
        help=address,
    )
    command.add_argument(
        "--store", help="folder of the forge store; by default the one that forge would use"
    )
    command.add_argument("--json", action="store_true", help="print the counts as JSON")
    return parser, command


def unknown_source(kind: str, known: Sequence[str]) -> int:
    """Says that there is no such kind of source; returns the exit code."""
    print(f"error: '{kind}' is not a kind of source: use {' or '.join(known)}", file=sys.stderr)
    return 2


@contextmanager
def postgres_connection(address: str, *, autocommit: bool = False) -> Generator[Any]:
    """Opens a connection to a PostgreSQL database that returns rows as dictionaries."""
    try:
        psycopg = import_module("psycopg")
    except ImportError as error:
        what = f"the driver of PostgreSQL is not installed: {error}"
        raise refusal(_forge.Unavailable, what, "run: pip install 'psycopg[binary]'") from error
    dict_row = import_module("psycopg.rows").dict_row
    try:
        connection: Any = psycopg.connect(address, autocommit=autocommit, row_factory=dict_row)
    except psycopg.Error as error:
        # The message of the driver has several lines.
        what = f"the database cannot be reached: {' '.join(str(error).split())}"
        raise refusal(_forge.Unavailable, what, "check the address and the rights") from error
    with closing(connection):
        yield connection
