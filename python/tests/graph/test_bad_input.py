"""Bad input and accidents end in an exception that says what to do, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import forge_store
import pytest
from forge_store.langgraph import ForgeSaver
from saver_steps import config, put


class Raw:
    """A serialiser whose values are what is given: encoding and bytes."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return value if isinstance(value, tuple) else ("repr", repr(value).encode())

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        encoding, raw = data
        return eval(raw.decode()) if encoding == "repr" else data  # noqa: S307


def test_bytes_that_are_no_msgpack_come_back(path: Path) -> None:
    with ForgeSaver.from_path(path, serde=Raw()) as saver:
        values = {
            "cut": ("msgpack", b"\xdc\x00\x28" + b"\xd9\x20" * 40),
            "reserved": ("msgpack", b"\x92" + b"\xc1" * 80),
            "empty": ("", b""),
            "other": ("any text", bytes(range(256))),
        }
        put(saver, "1", values)
        found = saver.get_tuple(config())
        assert found is not None
        assert found.checkpoint["channel_values"] == values


@pytest.mark.parametrize("odd", ["a\x00b", "a\nb", " ", "x" * 5000, "~", "…/../.."])
def test_any_text_is_an_id(saver: ForgeSaver, odd: str) -> None:
    for where in ({"thread": odd}, {"namespace": odd}, {"metadata": {"run_id": odd}}):
        put(saver, odd, {odd: 1}, **where)
    saver.put_writes(config(odd, "", odd), [(odd, 1)], odd, odd)
    found = saver.get_tuple(config(odd))
    assert found is not None
    assert found.config["configurable"] == config(odd, "", odd)["configurable"]
    assert found.checkpoint["channel_values"] == {odd: 1}
    assert found.pending_writes == [(odd, odd, 1)]
    assert len([*saver.list(None)]) == 3
    # LangGraph itself takes this character out of metadata.
    saver.delete_for_runs([odd.replace("\x00", "")])
    assert len([*saver.list(None)]) == 2
    saver.copy_thread(odd, odd * 2)
    saver.prune([odd, odd * 2])
    saver.delete_thread(odd)
    left = {one.config["configurable"]["thread_id"] for one in saver.list(None)}
    assert left == {odd * 2, "t"}


def test_a_text_that_no_store_can_hold_is_refused(saver: ForgeSaver) -> None:
    with pytest.raises(UnicodeEncodeError):
        put(saver, "1", thread="\ud800")
    with pytest.raises(ValueError, match="checkpoint_id"):
        saver.put_writes(config(), [("c", 1)], "a")
    assert [*saver.list(None)] == []


def test_a_value_that_is_too_large_is_refused(saver: ForgeSaver) -> None:
    large = b"x" * (64 << 20)
    with pytest.raises(forge_store.Invalid, match="too large; divide it") as refused:
        put(saver, "1", {"small": 1, "c": large})
    with pytest.raises(forge_store.Invalid, match="too large; divide it") as write:
        saver.put_writes(config(step="1"), [("c", large), ("small", 1)], "a")
    assert [*saver.list(None)] == []
    if sys.version_info >= (3, 11):
        for error in (refused.value, write.value):
            assert [note.endswith("is of the channel 'c'") for note in error.__notes__] == [True]


def test_an_encrypted_store_needs_its_key(path: Path, home: Path) -> None:
    with ForgeSaver.from_path(path, encrypted=True) as saver:
        put(saver, "1", {"c": "a secret word"})
    keys = home / ".local"
    hidden = [one for one in (keys, home / ".config") if one.exists()]
    for one in hidden:
        one.rename(one.with_suffix(".away"))
    with pytest.raises(forge_store.ForgeError, match="forge key import"):
        with ForgeSaver.from_path(path):
            pass
    for one in hidden:
        shutil.rmtree(one, ignore_errors=True)
        one.with_suffix(".away").rename(one)
    with ForgeSaver.from_path(path) as saver:
        found = saver.get_tuple(config())
        assert found is not None
        assert found.checkpoint["channel_values"] == {"c": "a secret word"}


def test_a_killed_process_loses_no_checkpoint_that_was_reported(path: Path) -> None:
    program = textwrap.dedent(
        f"""
        from saver_steps import put
        from forge_store.langgraph import ForgeSaver
        with ForgeSaver.from_path({str(path)!r}) as saver:
            parent = None
            for number in range(100000):
                name = f"{{number:06}}"
                put(saver, name, {{"c": ["x" * 100] * (number % 50)}}, parent=parent)
                print(name, flush=True)
                parent = name
        """
    )
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        reported = [child.stdout.readline().strip() for _ in range(30)]
        child.send_signal(signal.SIGKILL)
        reported += [line.strip() for line in child.stdout if line.endswith("\n")]
    with ForgeSaver.from_path(path) as saver:
        found = {
            one.config["configurable"]["checkpoint_id"]: one.checkpoint["channel_values"]
            for one in saver.list(config())
        }
        assert {*reported} <= {*found}
        # One more may have been stored before it could be reported; all of them are whole.
        assert len(found) - len(reported) <= 1
        for name, values in found.items():
            assert values == {"c": ["x" * 100] * (int(name) % 50)}
        put(saver, "1000000", {"c": []}, parent=max(found))


def test_a_store_that_was_opened_for_reading_refuses_to_write(path: Path) -> None:
    with ForgeSaver.from_path(path) as saver:
        put(saver, "1", {"c": 1})
    with forge_store.open(path, read_only=True) as store:
        reader = ForgeSaver(store)
        assert reader.get_tuple(config()) is not None
        with pytest.raises(forge_store.ForgeError, match="read_only"):
            put(reader, "2", {"c": 2}, parent="1")
