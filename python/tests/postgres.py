"""A PostgreSQL server for one test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def postgres_server() -> Generator[str]:
    """The address of a server on a socket; the test is skipped, and says so, where there is none."""
    # A socket has a short path.
    folder = Path(f"/tmp/forge-pg-{os.getpid()}")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = [shutil.which(name) for name in ("initdb", "postgres")]
    if not programs and not all(found):
        skipped("PostgreSQL is not installed")
    bin = programs[-1] if programs else Path(str(found[0])).parent
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # The server does not run as root.
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if user:
        shutil.chown(folder, user["user"], user["group"])
    data = folder / "data"
    options: dict[str, Any] = {"check": True, "capture_output": True, "cwd": folder, **user}
    subprocess.run([bin / "initdb", "-D", data, "-U", "test", "-A", "trust", "-N"], **options)
    arguments = f"-k {folder} -c listen_addresses='' -F"
    control: list[Any] = [bin / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", arguments]
    subprocess.run([*control, "start"], **options)
    try:
        yield f"host={folder} user=test dbname=postgres"
    finally:
        subprocess.run([bin / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **options)
        shutil.rmtree(folder, ignore_errors=True)


def skipped(why: str) -> None:
    """Skips a test, where scripts/python-test and the tests of the workspace see it."""
    print(f"SKIPPED tests of an import: {why}", file=sys.stderr)
    if os.environ.get("FORGE_SKIPPED"):
        with open(os.environ["FORGE_SKIPPED"], "a", encoding="utf-8") as file:
            file.write(f"SKIPPED tests of an import: {why}\n")
    pytest.skip(why)
