"""Threads, forks, signals and the end of a process."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forge_store
import pytest
from forge_store import Moment, Session, Shards, Store, aio

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def run(code: str, *arguments: object) -> str:
    program = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_child(work: object) -> str:
    """What `work` says in a forked child, which ends as one of `multiprocessing` does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()  # type: ignore[operator]
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, str(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


def test_processes_that_create_a_store_at_once_all_open_it(tmp_path: Path) -> None:
    program = """
        import sys
        import forge_store
        for line in sys.stdin:
            forge_store.open(line.strip(), create=True).close()
            print("opened", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    children = [subprocess.Popen(command, text=True, bufsize=1, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    for number in range(10):
        for child in children:
            child.stdin.write(f"{tmp_path / str(number)}\n")
        for child in children:
            assert child.stdout.readline() == "opened\n", child.communicate()[1]
    for child in children:
        child.communicate()
        assert child.returncode == 0


def test_threads_share_a_store(session: Session) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: session.note(f"note {number}"), range(64)))
    assert len({one.id for one in done}) == 64
    assert len(session.head.state.notes) == 64


def test_the_interpreter_is_free_while_the_store_works(session: Session) -> None:
    # A thread that holds an event can only go on if the other one's call lets it.
    begun, proceed = threading.Event(), threading.Event()

    def other() -> None:
        begun.set()
        proceed.wait()

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    for number in range(20):
        session.note(f"note {number}")
    proceed.set()
    thread.join()
    assert session.head.revision == 20


def test_a_child_opens_the_store_again(store: Store, session: Session) -> None:
    # Enough that the parent has published the index and has its background threads.
    for number in range(400):
        session.note(f"note {number}")
    moment = session.head

    def child() -> str:
        before = len(moment.state)
        for number in range(300):
            session.note(f"of the child {number}")
        return f"{before} {len(session.head.state)} {session.search('child').total}"

    assert in_child(child) == "400 700 300"
    session.note("of the parent")
    assert len(session.head.state) == 701
    assert store.verify(full=True)


def test_a_forked_child_ends_like_any_process(path: Path) -> None:
    said = run(
        """
        import os, sys, forge_store
        store = forge_store.open(sys.argv[1], create=True)
        session = store.session("s")
        for number in range(300):
            session.note(f"note {number}")
        child = os.fork()
        if child == 0:
            session.note("of the child")
            sys.exit(0)  # runs what is registered for the exit, and frees every object
        print(os.waitpid(child, 0)[1], len(session.head.state))
        """,
        path,
    )
    assert said.split() == ["0", "301"]


def test_a_child_cannot_use_what_only_its_parent_can(store: Store, session: Session) -> None:
    memory = forge_store.in_memory()
    assert in_child(lambda: memory.session("s")).startswith("Invalid: a store in memory")
    assert in_child(store.sweep).startswith("Unavailable: a forked process cannot")
    store.sweep()
    memory.close()


def test_use_after_close_is_an_error(path: Path) -> None:
    with forge_store.open(path, create=True) as store:
        session = store.session("s")
        moment = session.head
    store.close()
    assert store.closed and "closed" in repr(store)
    for use in (store.sessions, lambda: session.note("x"), moment.log, store.verify):
        with pytest.raises(forge_store.Invalid, match=r"closed; open it again"):
            use()


def test_a_store_that_nobody_closed_is_closed_at_the_exit(path: Path) -> None:
    run(
        """
        import sys, forge_store
        store = forge_store.open(sys.argv[1], create=True)
        session = store.session("s")
        for number in range(300):
            session.note(f"note {number}")
        """,
        path,
    )
    with forge_store.open(path) as store:
        assert len(store.session("s").head.state) == 300
        assert store.verify(full=True)


def test_a_killed_process_loses_nothing_that_was_acknowledged(path: Path) -> None:
    program = """
        import sys, forge_store
        session = forge_store.open(sys.argv[1], create=True).session("s")
        while True:
            print(session.note("n").id, flush=True)
        """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        known = [process.stdout.readline().strip() for _ in range(50)]
        process.kill()
    with forge_store.open(path) as store:
        assert set(known) <= {one.id for one in store.session("s").head.state.notes}


def test_control_c_ends_a_long_call(store: Store, session: Session) -> None:
    session.note("one")
    program = """
        import os, signal, sys, forge_store
        from forge_store import _forge

        store = forge_store.open(sys.argv[1])
        try:
            store.export_bundle(sys.argv[2], progress=lambda n: os.kill(os.getpid(), signal.SIGINT))
        except KeyboardInterrupt:
            print("interrupted")
        print(len(store.sessions()))
        """
    assert run(program, store.path, Path(str(store.path)).parent / "b").split() == [
        "interrupted",
        "1",
    ]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_exception_of_the_progress_callback_reaches_the_caller(
    store: Store, session: Session
) -> None:
    for number in range(50):
        session.note(f"note {number}")

    class Enough(Exception):
        pass

    def stop(seconds: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        store.export_bundle(Path(str(store.path)).parent / "b", progress=stop)
    assert len(session.head.state) == 50


def test_two_processes_write_one_session(path: Path) -> None:
    with forge_store.open(path, create=True) as store:
        session = store.session("s")
        program = """
            import sys, forge_store
            with forge_store.open(sys.argv[1]) as store:
                for number in range(50):
                    store.session("s").note(sys.argv[2])
            """
        running = [
            subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), path, name])
            for name in ("a", "b")
        ]
        assert [one.wait() for one in running] == [0, 0]
        assert len(session.head.state.notes) == 100


def test_asyncio_goes_on_meanwhile(path: Path) -> None:
    async def main() -> tuple[int, str]:
        async with await aio.open(path, create=True) as store:
            session = await store.session("s")
            await asyncio.gather(*(session.note(f"note {number}") for number in range(20)))
            moment = await session.head()
            state = await moment.state()
            difference = await session.diff(moment)
            assert (await store.search("note", sessions=[session])).total == 20
            with pytest.raises(forge_store.NotFound):
                await session.update("H9", description="x")
            with pytest.raises(AttributeError):
                session.nothing  # type: ignore[attr-defined]  # noqa: B018
            assert (await session.at(moment)).sync.revision == await moment.revision()
            return len(state), str(difference)

    assert asyncio.run(main()) == (20, "no changes; at the same time")


def test_asyncio_has_everything_with_its_documentation() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    # Not here: the object that it is made of or belongs to.
    others = {"native", "store", "session", "sync"}
    for kind in (Store, Shards, Session, Moment):
        awaited = getattr(aio, f"Async{kind.__name__}")
        assert names(awaited) - others == names(kind) - others
        for name in names(kind) - others:
            assert getattr(awaited, name).__doc__ == getattr(kind, name).__doc__
            assert inspect.iscoroutinefunction(getattr(awaited, name)), name
    assert inspect.iscoroutinefunction(aio.AsyncStore.session)


def test_the_import_is_quick() -> None:
    # How many modules it takes, rather than how long: other work on the machine does not matter.
    said = run(
        """
        import sys
        before = set(sys.modules)
        import forge_store
        new = set(sys.modules) - before
        print(len(new), sorted(new & {"asyncio", "typing_extensions", "langgraph", "json"}))
        """
    )
    assert "[]" in said, said
