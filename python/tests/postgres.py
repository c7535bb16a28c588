"""PostgreSQL servers for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

#: Stops the server and removes its folder when its input ends: also when the test is killed.
_GUARD = 'read -r _; "$0" -D "$1/data" -m immediate stop; rm -rf -- "$1"'


class PostgresServer:
    """A server on a socket, with the superuser ``test``, who needs no password."""

    def __init__(self, programs: Path, folder: Path, user: dict[str, Any]) -> None:
        self._programs, self.folder, self._user = programs, folder, user
        self._numbers = count(1)

    def address(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://test@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of a database that is new."""
        name = f"test_{next(self._numbers)}"
        self.run(self.address(), f"create database {name}")
        return self.address(name)

    def run(self, address: str, sql: str) -> str:
        """The rows that SQL returns, as lines."""
        return self.call("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", address, "-c", sql).strip()

    def call(self, program: str, *arguments: Any) -> str:
        """What one of the server's programs prints."""
        command = list(map(str, [self._programs / program, *arguments]))
        quiet = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        options: dict[str, Any] = {"cwd": self.folder, "env": quiet, **self._user}
        done = subprocess.run(command, capture_output=True, **options)
        assert done.returncode == 0, done.stderr.decode()
        return str(done.stdout, "utf-8")

    def guard(self) -> subprocess.Popen[bytes]:
        """The process that stops the server."""
        command = ["sh", "-c", _GUARD, str(self._programs / "pg_ctl"), str(self.folder)]
        quiet: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd="/", start_new_session=True, **quiet, **self._user)


@contextmanager
def started_server(*, durable: bool = False) -> Generator[PostgresServer]:
    """Runs a server; the test is skipped, and says so, where there is none. One that is durable
    waits for the disk."""
    programs = _programs()
    # A socket has a short path.
    folder = Path(tempfile.mkdtemp(prefix="forge-pg-", dir="/tmp"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # The server does not run as root.
        known = {one.pw_name: one for one in pwd.getpwall()}
        owner = known.get("postgres") or known["nobody"]
        user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    server = PostgresServer(programs, folder, user)
    with server.guard() as guard:
        try:
            server.call("initdb", "-D", folder / "data", "-U", "test", "-A", "trust", "-N")
            settings = f"-k {folder} -c listen_addresses=''" + ("" if durable else " -F")
            log = ("-l", folder / "log")
            server.call("pg_ctl", "-D", folder / "data", "-w", *log, "-o", settings, "start")
            yield server
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait()
            # The server's user may remove what is in the folder, and not always the folder.
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server() -> Generator[str]:
    """The address of a server for one test."""
    with started_server() as server:
        yield server.address()


def _programs() -> Path:
    """The folder of the server's programs, which scripts/database-servers names."""
    if named := os.environ.get("FORGE_POSTGRES"):
        return Path(named)
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb")
    if not packaged and found is None:
        skipped("PostgreSQL is not installed")
    return packaged[-1] if packaged else Path(str(found)).parent


def skipped(why: str) -> NoReturn:
    """Skips a test, where scripts/python-test and the tests of the workspace see it."""
    print(f"SKIPPED tests with PostgreSQL: {why}", file=sys.stderr)
    if os.environ.get("FORGE_SKIPPED"):
        with open(os.environ["FORGE_SKIPPED"], "a", encoding="utf-8") as file:
            file.write(f"SKIPPED tests with PostgreSQL: {why}\n")
    pytest.skip(why)
