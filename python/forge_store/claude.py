"""Sessions of the Claude Agent SDK in a forge store.

>>> import asyncio
>>> mirror = ForgeSessionStore(forge_store.in_memory())
>>> key = {"project_key": "shop", "session_id": "5a1c"}
>>> asyncio.run(mirror.append(key, [{"type": "summary", "summary": "the lease expires early"}]))
>>> asyncio.run(mirror.load(key))
[{'type': 'summary', 'summary': 'the lease expires early'}]

``pip install 'forge-store[claude]'`` installs the SDK.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any, Mapping, cast

from . import _forge
from ._store import Store, native_of
from ._values import refusal

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

_Key = tuple[str, str, "str | None"]

_TAIL_BYTES = 256 << 10
"""How far back a line that is handed over a second time is looked for, at least."""
_ATTEMPTS = 100
"""How often appending lines is tried again after another process has appended."""


class ForgeSessionStore:
    """The ``SessionStore`` protocol of the Claude Agent SDK.

    Appended entries are stored as ``forge import claude`` stores such a transcript: as messages,
    commands, tool calls and checkpoints. ``load`` returns equal entries. A store that redacts
    removes secrets before it stores anything, so they are missing in what ``load`` returns.

    An entry whose ``uuid`` is among the last lines is not stored again. Deleting a session drops
    it, and ``forge session restore`` brings it back until the store is swept.
    """

    def __init__(self, store: Store) -> None:
        self._native = _forge.Mirror(native_of(store))
        self._waiting: deque[tuple[_Key, list[str], Future[None]]] = deque()
        self._lock = Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Appends entries to a transcript; it returns when they are durable."""
        lines = [_line(entry) for entry in entries]
        if not lines:
            return
        done: Future[None] = Future()
        # The order of the calls is that of the queue, whichever thread writes first.
        self._waiting.append((_key(key), lines, done))
        await asyncio.to_thread(self._write_waiting)
        done.result()

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries of a transcript; ``None`` if there are none."""
        return await asyncio.to_thread(self._load, _key(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, with the time of their last entry in milliseconds."""
        listed = await asyncio.to_thread(self._native.sessions, project_key)
        return [{"session_id": session, "mtime": written} for session, written, _ in listed]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The summaries of the sessions of a project. A session that an import has continued since has
        no summary until the next ``append``."""
        listed = await asyncio.to_thread(self._native.sessions, project_key)
        return [
            {"session_id": session, "mtime": written, "data": json.loads(summary)}
            for session, written, summary in listed
            if summary is not None
        ]

    async def delete(self, key: SessionKey) -> None:
        """Deletes a session with the transcripts of its sub-agents, or only that of one."""
        await asyncio.to_thread(self._native.delete, _key(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The paths of the transcripts of a session's sub-agents."""
        return await asyncio.to_thread(self._native.subpaths, _key(key))

    def _write_waiting(self) -> None:
        """Writes what is queued, which another thread may already have done."""
        with self._lock:
            while self._waiting:
                key, lines, done = self._waiting.popleft()
                try:
                    self._append(key, lines)
                except BaseException as error:
                    done.set_exception(error)
                else:
                    done.set_result(None)

    def _append(self, key: _Key, lines: list[str]) -> None:
        lines = self._native.clean(lines)
        for attempt in range(_ATTEMPTS):
            state = self._native.state(key)
            fresh = self._unknown(key, lines) if state else _first_of_each(lines, set())
            if not fresh:
                return
            end = state[0] if state else 0
            summary = self._summary(key, state, fresh)
            try:
                return self._native.append(key, end, "".join(f"{one}\n" for one in fresh), summary)
            except _forge.Conflict:
                # Another process has appended meanwhile.
                if attempt == _ATTEMPTS - 1:
                    raise

    def _unknown(self, key: _Key, lines: list[str]) -> list[str]:
        """The lines without those whose id is among the last lines of the transcript."""
        length = max(_TAIL_BYTES, 2 * sum(len(line.encode()) for line in lines))
        tail = self._native.tail(key, length).split(b"\n")
        known = {name for line in tail if (name := _uuid(line))}
        return _first_of_each(lines, known)

    def _summary(
        self, key: _Key, state: tuple[int, bool, str | None] | None, lines: list[str]
    ) -> str | None:
        """The summary of a session after these lines; a sub-agent's transcript has none."""
        from claude_agent_sdk import fold_session_summary

        project, session, subpath = key
        if subpath is not None:
            return None
        before: SessionSummaryEntry | None = None
        entries = [json.loads(line) for line in lines]
        if state and state[2] is not None:
            before = {"session_id": session, "mtime": 0, "data": json.loads(state[2])}
        elif state and not state[1]:
            entries = [*(self._load(key) or []), *entries]
        named: SessionKey = {"project_key": project, "session_id": session}
        folded = fold_session_summary(before, named, entries)
        return json.dumps(folded["data"])

    def _load(self, key: _Key) -> list[SessionStoreEntry] | None:
        text = self._native.lines(key)
        if text is None:
            return None
        entries = (_entry(line) for line in text.split(b"\n"))
        return [cast("SessionStoreEntry", entry) for entry in entries if entry is not None]


def _key(key: Mapping[str, Any]) -> _Key:
    subpath = key.get("subpath")
    return key["project_key"], key["session_id"], subpath


def _line(entry: Mapping[str, Any]) -> str:
    """An entry as Claude Code writes it."""
    if not isinstance(entry, dict):
        what = f"an entry is a {type(entry).__name__}"
        raise refusal(_forge.Invalid, what, "append entries that are dictionaries")
    try:
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "append what json.dumps takes, without NaN and infinity"
        raise refusal(_forge.Invalid, f"an entry is not JSON: {error}", remedy) from error
    if any("\ud800" <= char <= "\udfff" for char in line):
        # Half a pair of surrogates has no UTF-8; JSON has an escape for it.
        line = json.dumps(entry, separators=(",", ":"))
    return line


def _entry(line: bytes | str) -> dict[str, Any] | None:
    """The entry of a line; ``None`` for an empty line or a line of a damaged import."""
    try:
        entry: object = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else None


def _uuid(line: bytes | str) -> str | None:
    uuid = (_entry(line) or {}).get("uuid")
    return uuid if isinstance(uuid, str) else None


def _first_of_each(lines: list[str], known: set[str]) -> list[str]:
    """The lines whose id is not known, each id once."""
    fresh: list[str] = []
    for line in lines:
        name = _uuid(line)
        if name is None or name not in known:
            fresh.append(line)
        if name is not None:
            known.add(name)
    return fresh
