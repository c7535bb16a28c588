"""The lease of a thread, which one writer at a time holds, across threads and processes."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from .._forge import Invalid, Locked
from .._store import Store
from .._values import refusal

#: The folder of the leases in that of a store.
_FOLDER = "leases"

#: Seconds between two attempts to take a lease that another writer holds.
_PAUSE = 0.02

#: The threads that are held in stores in memory, which only this process has.
_held: WeakKeyDictionary[Store, set[str]] = WeakKeyDictionary()
_looking = Lock()


@contextmanager
def writing(store: Store, thread_id: str, wait: float) -> Generator[None]:
    """Holds the lease of a thread; waits at most this many seconds for it."""
    until = _deadline(wait)
    while (lease := _take(store, thread_id)) is None:
        _pause(thread_id, wait, until)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lease.release()


@asynccontextmanager
async def awriting(store: Store, thread_id: str, wait: float) -> AsyncGenerator[None]:
    """As `writing`; the event loop goes on meanwhile."""
    until = _deadline(wait)
    while (lease := _take(store, thread_id)) is None:
        _pause(thread_id, wait, until)
        await asyncio.sleep(_PAUSE)
    try:
        yield
    finally:
        lease.release()


def _deadline(wait: float) -> float:
    if not wait >= 0:
        raise refusal(Invalid, f"wait={wait!r} is not a time to wait", "give seconds, or 0")
    return time.monotonic() + wait


def _pause(thread_id: str, wait: float, until: float) -> None:
    if time.monotonic() >= until:
        what = f"another writer has held the thread {thread_id!r} for {wait:g} seconds"
        raise refusal(Locked, what, "try again later, or wait longer with wait=SECONDS")


class _FileLease:
    """A lock on a file. The system releases it when the process ends, also when it is killed."""

    def __init__(self, file: int, path: Path) -> None:
        self._file = file
        self._path = path

    def release(self) -> None:
        # The file is removed while it is locked, so no other writer has it; `_take_file` notices that.
        self._path.unlink(missing_ok=True)
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)


class _MemoryLease:
    def __init__(self, held: set[str], thread_id: str) -> None:
        self._held = held
        self._thread_id = thread_id

    def release(self) -> None:
        self._held.discard(self._thread_id)


def _take(store: Store, thread_id: str) -> _FileLease | _MemoryLease | None:
    """The lease, or nothing if another writer has it."""
    if store.address is not None:
        what = "a store in a database has no leases of threads"
        raise refusal(Invalid, what, "let a second writer fail with on_fork='raise'")
    if store.path is None:
        with _looking:
            held = _held.setdefault(store, set())
            if thread_id in held:
                return None
            held.add(thread_id)
        return _MemoryLease(held, thread_id)
    return _take_file(Path(store.path) / _FOLDER, thread_id)


def _take_file(folder: Path, thread_id: str) -> _FileLease | None:
    # The id of a thread may be longer than a name, and may have any characters.
    path = folder / hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()
    folder.mkdir(mode=0o700, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine, there = os.fstat(file), os.stat(path)
        if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
            return _FileLease(file, path)
    except (BlockingIOError, FileNotFoundError):
        # Another writer has it, or a writer has just removed this file.
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None
