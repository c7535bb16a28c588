"""The session store of the Claude Agent SDK, with the SDK's own harness."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path
from typing import Any

import forge_store
import pytest
from claude_agent_sdk import (
    SessionKey,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
)
from claude_agent_sdk.testing import run_session_store_conformance
from forge_store.claude import ForgeSessionStore
from framework_processes import run

KEY: SessionKey = {"project_key": "-w", "session_id": "cc-1"}
WORKER: SessionKey = {**KEY, "subpath": "subagents/agent-a1"}


#: The line before, for each line that has an id.
PARENTS = {2: "u0", 9: "u2", 10: "u9"}


def entry(second: int, kind: str, **fields: Any) -> Any:
    """A line as Claude Code writes it."""
    return {
        "type": kind,
        "uuid": f"u{second}",
        "parentUuid": PARENTS.get(second),
        "sessionId": "cc-1",
        "timestamp": f"2026-01-28T10:00:{second:02}.000Z",
        "cwd": "/w",
        **fields,
    }


def bash(second: int, name: str, command: str) -> Any:
    call = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
    return entry(second, "assistant", message={"role": "assistant", "content": [call]})


def ended(second: int, name: str, output: str) -> Any:
    result = {"type": "tool_result", "tool_use_id": name, "content": output}
    noted = {"stdout": output, "stderr": ""}
    message = {"role": "user", "content": [result]}
    return entry(second, "user", message=message, toolUseResult=noted)


def prompt(second: int, text: str) -> Any:
    return entry(second, "user", message={"role": "user", "content": text})


TRANSCRIPT = [
    prompt(0, "why does the queue deliver twice?"),
    bash(2, "c1", "make test"),
    ended(9, "c1", "order 77 delivered twice"),
    {"type": "custom-title", "customTitle": "double delivery", "sessionId": "cc-1"},
    prompt(10, "go on"),
]


def append(store: forge_store.Store, key: SessionKey, *batches: list[Any]) -> ForgeSessionStore:
    mirror = ForgeSessionStore(store)

    async def main() -> None:
        for batch in batches:
            await mirror.append(key, batch)

    asyncio.run(main())
    return mirror


def test_the_harness_of_the_sdk(tmp_path: Path) -> None:
    stores: list[forge_store.Store] = []

    def fresh() -> ForgeSessionStore:
        stores.append(forge_store.open(tmp_path / f"store-{len(stores)}", create=True))
        return ForgeSessionStore(stores[-1])

    # Its 14 contracts; none is left out, because all six methods are there.
    for name in ("list_sessions", "list_session_summaries", "delete", "list_subkeys"):
        assert name in vars(ForgeSessionStore)
    asyncio.run(run_session_store_conformance(fresh))
    for store in stores:
        assert store.verify(full=True)
        store.close()


def test_what_is_appended_becomes_facts_that_are_found(store: forge_store.Store) -> None:
    append(store, KEY, TRANSCRIPT[:2], TRANSCRIPT[2:])
    session = store.session("why does the queue deliver twice?")
    (command,) = session.head.facts("command")
    assert (command.fields["command"], command.fields["exit_code"]) == ("make test", 0)
    assert [fact.fields["text"] for fact in session.head.facts("prompt")] == [
        "why does the queue deliver twice?",
        "go on",
    ]
    assert "deliver twice" in str(session.brief())
    assert [hit.kind for hit in store.search("order 77 delivered").hits] == ["command"]


def test_a_worker_is_read_as_its_import_would_be(store: forge_store.Store) -> None:
    own = [{**one, "isSidechain": True, "agentId": "a1"} for one in TRANSCRIPT[:3]]
    mirror = append(store, WORKER, own)
    assert asyncio.run(mirror.list_sessions("-w")) == []
    append(store, KEY, TRANSCRIPT)
    assert asyncio.run(mirror.load(WORKER)) == own
    assert asyncio.run(mirror.list_subkeys({"project_key": "-w", "session_id": "cc-1"})) == [
        "subagents/agent-a1"
    ]
    (info,) = store.sessions()
    assert len(store.session(info.name).head.facts("agent")) == 1


def test_entries_that_mean_nothing_come_back_equal(store: forge_store.Store) -> None:
    odd: list[Any] = [
        {"type": "of_tomorrow", "deep": {"n": [1, 2.5, 1e300, None, 12345678901234567890]}},
        {"type": "user", "message": "not a message", "uuid": 7},
        {"type": "x", "text": 'quote " \\ line\nend \u2028 \U0001f600 \x00 \ud800'},
        {"type": "x", "uuid": "u1", "long": "y" * 200_000},
        {"type": ""},
    ]
    mirror = append(store, KEY, odd, TRANSCRIPT, odd[:1])
    # The one with an id that was there already is not stored again; the one without is.
    append(store, KEY, [odd[3], TRANSCRIPT[0]])
    assert asyncio.run(mirror.load(KEY)) == [*odd, *TRANSCRIPT, odd[0]]


def test_the_sdk_lists_and_reads_sessions(store: forge_store.Store) -> None:
    key: SessionKey = {"project_key": project_key_for_directory("/w"), "session_id": SESSION}
    lines = [{**one, "sessionId": SESSION} for one in TRANSCRIPT]
    mirror = append(store, key, lines[:2], lines[2:])

    async def main() -> None:
        (info,) = await list_sessions_from_store(mirror, directory="/w")
        assert (info.session_id, info.summary) == (SESSION, "double delivery")
        assert info.first_prompt == "why does the queue deliver twice?"
        messages = await get_session_messages_from_store(mirror, SESSION, directory="/w")
        assert [one.type for one in messages] == ["user", "assistant", "user", "user"]

    asyncio.run(main())


SESSION = "11111111-2222-4333-8444-555555555555"


def test_a_store_that_redacts_returns_what_is_left(path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    lines = [prompt(0, f"use {token} here")]
    with forge_store.open(path, create=True) as store:
        mirror = append(store, KEY, lines)
        (kept,) = asyncio.run(mirror.load(KEY)) or []
        assert token not in json.dumps(kept) and "[redacted:" in json.dumps(kept)
        (summary,) = asyncio.run(mirror.list_session_summaries("-w"))
        assert token not in json.dumps(summary)
    with forge_store.open(path.parent / "open", create=True, redact=False) as store:
        assert asyncio.run(append(store, KEY, lines).load(KEY)) == lines


def test_a_bad_entry_or_key_is_refused_and_nothing_is_stored(store: forge_store.Store) -> None:
    bad: list[Any] = ["text", {"type": "x", "n": float("nan")}, {"type": "x", "n": {1}}]
    for one in bad:
        with pytest.raises(forge_store.Invalid, match="append"):
            append(store, KEY, [TRANSCRIPT[0], one])
    keys: list[SessionKey] = [
        {**KEY, "subpath": ""},
        {"project_key": "", "session_id": "s"},
        {"project_key": "p", "session_id": ""},
        {"project_key": "p", "session_id": "s" * 300},
    ]
    for key in keys:
        with pytest.raises(forge_store.Invalid):
            append(store, key, TRANSCRIPT)
    assert len(store.sessions()) == 0


def test_a_deleted_session_can_be_begun_again(store: forge_store.Store) -> None:
    mirror = append(store, KEY, TRANSCRIPT)
    append(store, WORKER, TRANSCRIPT[:1])

    async def main() -> None:
        await mirror.delete(WORKER)
        assert await mirror.load(WORKER) is None
        await mirror.append(WORKER, TRANSCRIPT[1:2])
        assert await mirror.load(WORKER) == TRANSCRIPT[1:2]
        await mirror.delete(KEY)
        assert await mirror.load(WORKER) is None and await mirror.list_sessions("-w") == []
        await mirror.append(KEY, TRANSCRIPT[:1])
        assert await mirror.load(KEY) == TRANSCRIPT[:1]
        assert await mirror.load(WORKER) is None

    asyncio.run(main())


def test_calls_that_run_at_once_keep_their_order(store: forge_store.Store) -> None:
    mirror = ForgeSessionStore(store)
    lines: list[Any] = [{"type": "x", "n": number} for number in range(40)]

    async def main() -> None:
        await asyncio.gather(*(mirror.append(KEY, [line]) for line in lines))
        assert await mirror.load(KEY) == lines

    asyncio.run(main())


def test_two_processes_append_and_nothing_is_lost(path: Path) -> None:
    program = """
        import asyncio, sys, forge_store
        from forge_store.claude import ForgeSessionStore

        async def main(store):
            mirror = ForgeSessionStore(store)
            key = {"project_key": "p", "session_id": "both"}
            for number in range(25):
                lines = [{"type": "x", "of": sys.argv[2], "n": number, "half": half} for half in "ab"]
                await mirror.append(key, lines)

        with forge_store.open(sys.argv[1]) as store:
            asyncio.run(main(store))
        """
    with forge_store.open(path, create=True) as store:
        run(textwrap.dedent(program), [(path, name) for name in ("x", "y")])
        mirror = ForgeSessionStore(store)
        both: SessionKey = {"project_key": "p", "session_id": "both"}
        loaded = asyncio.run(mirror.load(both))
        entries: list[Any] = loaded or []
        assert len(store.sessions()) == 1
    for name in ("x", "y"):
        own = [(one["n"], one["half"]) for one in entries if one["of"] == name]
        assert own == [(number, half) for number in range(25) for half in "ab"]
    pairs = [(entries[place], entries[place + 1]) for place in range(0, 100, 2)]
    assert all((one["of"], one["n"]) == (two["of"], two["n"]) for one, two in pairs)


def test_the_sdk_is_imported_only_when_it_is_needed() -> None:
    program = "import sys, forge_store.claude; print('claude_agent_sdk' in sys.modules)"
    assert [said.strip() for said in run(program, [()])] == ["False"]
