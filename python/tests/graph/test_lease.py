"""One writer at a time has a thread: in threads, in processes, and after one was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from collections.abc import Generator
from pathlib import Path

import forge_store
import pytest
from forge_store.langgraph import ForgeSaver

HOLDER = """
    import sys
    from forge_store.langgraph import ForgeSaver

    with ForgeSaver.from_path(sys.argv[1]) as saver, saver.writing(sys.argv[2]):
        print("held", flush=True)
        sys.stdin.readline()
    """


@contextmanager
def holder(path: Path, thread: str) -> Generator[subprocess.Popen[str]]:
    """A process that holds a thread."""
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path), thread]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture(params=["memory", "folder"])
def any_saver(request: pytest.FixtureRequest, saver: ForgeSaver) -> ForgeSaver:
    return saver if request.param == "folder" else ForgeSaver()


def test_a_second_writer_is_refused_and_another_thread_is_free(any_saver: ForgeSaver) -> None:
    with any_saver.writing("tea", wait=0):
        with pytest.raises(forge_store.Locked, match="'tea'.*wait") as refused:
            with any_saver.writing("tea", wait=0):
                raise AssertionError("two writers at once")
        assert refused.value.hint
        with any_saver.writing("coffee", wait=0):
            pass
    with any_saver.writing("tea", wait=0):
        pass


def test_an_exception_gives_it_back(any_saver: ForgeSaver) -> None:
    with pytest.raises(ZeroDivisionError):
        with any_saver.writing("tea"):
            1 / 0
    with any_saver.writing("tea", wait=0):
        pass
    with pytest.raises(forge_store.Invalid, match="wait"):
        with any_saver.writing("tea", wait=-1):
            pass


def test_threads_take_turns(any_saver: ForgeSaver) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with any_saver.writing("odd \n id " * 100):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert most == [1] * 40


def test_tasks_of_asyncio_take_turns(any_saver: ForgeSaver) -> None:
    inside: list[int] = []

    async def work(number: int) -> None:
        async with any_saver.awriting("tea"):
            inside.append(number)
            await asyncio.sleep(0)
            assert inside.pop() == number

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(20)))
        async with any_saver.awriting("tea"):
            with pytest.raises(forge_store.Locked):
                async with any_saver.awriting("tea", wait=0):
                    pass

    asyncio.run(main())


def test_a_process_holds_it_until_it_is_killed(path: Path, saver: ForgeSaver) -> None:
    with holder(path, "tea") as process:
        with pytest.raises(forge_store.Locked):
            with saver.writing("tea", wait=0):
                pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with saver.writing("tea"):
            pass


def test_a_writer_waits_for_another_process(path: Path, saver: ForgeSaver) -> None:
    with holder(path, "tea") as process, ThreadPoolExecutor(1) as pool:

        def wait() -> None:
            with saver.writing("tea", wait=600):
                pass

        waiting = pool.submit(wait)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        waiting.result()


def test_no_care_of_the_store_minds_the_files(path: Path, saver: ForgeSaver, tmp_path: Path) -> None:
    with saver.writing("tea"):
        assert saver.store.verify(full=True)
        saver.store.backup(tmp_path / "copy")
        saver.store.sweep()
        (file,) = (path / "leases").iterdir()
        assert (os.stat(file).st_mode & 0o777, os.stat(path / "leases").st_mode & 0o777) == (
            0o600,
            0o700,
        )
    assert list((path / "leases").iterdir()) == []
    with forge_store.open(tmp_path / "copy") as copy:
        assert copy.verify(full=True)
