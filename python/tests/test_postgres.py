"""Stores in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import forge_store
import pytest
from blake3 import blake3
from forge_store import Shards, Store, aio
from postgres import PostgresServer, started_server
from test_processes import in_child, run

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture
def team(database: str) -> Iterator[Store]:
    with forge_store.open(database, name="team", create=True) as store:
        yield store


@pytest.fixture
def shards(database: str) -> Iterator[Shards]:
    with forge_store.open_shards(database, name="threads", shards=8, create=True) as shards:
        yield shards


def connections(postgres: PostgresServer, address: str) -> set[str]:
    """The processes of the server that serve this database."""
    name = address.partition("?")[0].rpartition("/")[2]
    sql = f"select pid from pg_stat_activity where datname = '{name}' and pid <> pg_backend_pid()"
    return set(postgres.run(address, sql).split())


def test_a_store_is_made_and_opened_again(database: str, home: Path) -> None:
    with pytest.raises(forge_store.NotFound, match="team.*create=True"):
        forge_store.open(database, name="team")
    with forge_store.open(database, name="team", create=True) as store:
        assert (store.path, store.name) == (None, "team")
        assert store.address is not None and store.address in repr(store)
        # Other replicas would not have its key.
        assert store.seals == "unsealed" and not (home / ".local").exists()
        assert store.session("s").note("one").id == "N1"
    with forge_store.open(store.address, name="team", read_only=True) as again:
        assert [note.id for note in again.session("s", create=False).head.state.notes] == ["N1"]
        assert again.verify(full=True).outcome == "clean"
        with pytest.raises(forge_store.Unavailable):
            again.session("s", create=False).note("two")
    with forge_store.open(database, name="team", create=True) as store:
        assert store.search("one").total == 1
    with pytest.raises(forge_store.NotFound, match="'other in .*create=True"):
        forge_store.open(database, name="other")


def test_a_name_is_for_a_database_and_a_database_needs_one(database: str, path: Path) -> None:
    with pytest.raises(forge_store.Invalid, match="name='team'"):
        forge_store.open(database)
    with pytest.raises(forge_store.Invalid, match="leave out 'name'"):
        forge_store.open(path, name="team", create=True)
    for address in ("postgresql+psycopg://a:secret@host/b", "mysql://a:secret@host/b"):
        with pytest.raises(forge_store.Invalid, match="postgres://HOST") as refused:
            forge_store.open(address, name="team", create=True)
        assert "secret" not in str(refused.value)
    with pytest.raises(forge_store.ForgeError, match="PGPASSWORD") as error:
        forge_store.open("postgres://a:secret@host/b", name="team")
    assert "secret" not in str(error.value)
    assert not list(path.parent.glob("*:*"))


def test_a_backup_is_one_of_the_database(team: Store, path: Path, tmp_path: Path) -> None:
    team.session("s").note("one")
    with pytest.raises(forge_store.Invalid, match="export_bundle.*back up the database"):
        team.backup(tmp_path / "copy")
    team.export_bundle(tmp_path / "bundle")
    with forge_store.open(path, create=True) as store:
        assert store.import_bundle(tmp_path / "bundle") == ["s"]
        assert len(store.session("s").head.state.notes) == 1


def test_seals_are_used_where_their_key_is(
    database: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, options in (("sealed", {"sealed": True}), ("hidden", {"encrypted": True})):
        with forge_store.open(database, name=name, create=True, **options) as store:  # type: ignore[arg-type]
            store.session("s").note("one")
    for create in (False, True):
        with forge_store.open(database, name="sealed", create=create) as store:
            assert store.seals == "sealed"
            store.session("s").note("two")
            assert store.verify().outcome == "clean"
        with forge_store.open(database, name="hidden", create=create) as store:
            assert store.encrypted
    monkeypatch.setenv("FORGE_KEYRING", str(home / "elsewhere"))
    with forge_store.open(database, name="sealed") as store:
        assert store.seals == "no_key"
        assert len(store.session("s", create=False).head.state.notes) == 3
        with pytest.raises(forge_store.Unkeyed):
            store.session("s", create=False).note("three")
    with pytest.raises(forge_store.Unkeyed):
        forge_store.open(database, name="hidden")


def test_processes_see_what_others_write(team: Store, database: str) -> None:
    session = team.session("s")
    session.note("of the first")
    program = """
        import sys, forge_store
        with forge_store.open(sys.argv[1], name="team") as store:
            session = store.session("s")
            print(session.head.state.notes[0].description)
            for number in range(20):
                session.note(f"of the second: {number}")
        """
    assert run(program, database) == "of the first\n"
    assert len(session.head.state.notes) == 21
    assert team.search("second").total == 20


def test_processes_that_make_a_store_at_once_all_open_it(database: str) -> None:
    program = """
        import os, sys, forge_store
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                with forge_store.open(sys.argv[1], name="team", create=True) as store:
                    store.session("s").note(str(number))
                sys.exit(0)
            children.append(child)
        print([os.waitpid(child, 0)[1] for child in children])
        """
    assert run(program, database) == "[0, 0, 0, 0]\n"
    with forge_store.open(database, name="team") as store:
        assert len(store.session("s").head.state.notes) == 4


def test_a_child_has_connections_of_its_own(
    team: Store, database: str, postgres: PostgresServer
) -> None:
    session = team.session("s")
    for number in range(20):
        session.note(f"note {number}")
    moment, own = session.head, connections(postgres, database)
    assert own

    def child() -> str:
        before = len(moment.state)
        for number in range(20):
            session.note(f"of the child {number}")
        # The index of a store in files could not be written here.
        team.sweep()
        new = connections(postgres, database) - own
        return f"{before} {len(session.head.state)} {len(new) > 0}"

    assert in_child(child) == "20 40 True"
    session.note("of the parent")
    assert len(session.head.state) == 41
    # Neither the child nor its end has touched them.
    assert own <= connections(postgres, database)
    assert team.verify(full=True)


def test_a_child_that_ends_like_any_process_leaves_its_parent_alone(database: str) -> None:
    said = run(
        """
        import os, sys, threading, forge_store
        store = forge_store.open(sys.argv[1], name="team", create=True)
        shards = forge_store.open_shards(sys.argv[1], name="threads", shards=2, create=True)
        sessions = [store.session("s"), *(one.session("s") for one in shards.all())]
        # Another thread is in the middle of calls when the process is forked.
        ended = False
        def write():
            while not ended:
                sessions[0].note("of a thread")
        thread = threading.Thread(target=write)
        thread.start()
        for number in range(3):
            child = os.fork()
            if child == 0:
                for session in sessions:
                    session.note("of the child")
                sys.exit(0)  # runs what is registered for the exit, and frees every object
            print(os.waitpid(child, 0)[1])
        ended = True
        thread.join()
        for session in sessions:
            session.note("of the parent")
            print(sum(note.description == "of the child" for note in session.head.state.notes))
        """,
        database,
    )
    assert said.split() == ["0", "0", "0", "3", "3", "3"]


def test_a_server_for_tests_leaves_no_folder() -> None:
    with started_server() as server:
        assert server.folder.exists()
    assert not server.folder.exists()


def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(forge_store.Unavailable, match="postgres://test@127.0.0.1:1/b.*refused"):
        forge_store.open("postgres://test@127.0.0.1:1/b", name="team", create=True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgres://test@127.0.0.1:{silent.getsockname()[1]}/b?connect_timeout=1"
        with pytest.raises(forge_store.Unavailable, match="timed out|timeout"):
            forge_store.open(address, name="team")
        with pytest.raises(forge_store.Unavailable, match="timed out|timeout"):
            forge_store.open_shards(address, name="threads")


def test_a_store_whose_server_ends_is_an_error(postgres: PostgresServer, team: Store) -> None:
    session = team.session("s")
    session.note("one")
    name = postgres.run(str(team.address), "select current_database()")
    postgres.run(postgres.address(), f"drop database {name} with (force)")
    with pytest.raises(forge_store.Unavailable, match=name):
        session.note("two")


def folder_of(postgres: PostgresServer, store: Store, path: Path) -> None:
    """Makes a folder that names the database of a store, as ``forge init --at`` does."""
    path.mkdir(parents=True)
    marker = postgres.run(str(store.address), f"select marker from forge.store where name = '{store.name}'")
    text = marker.partition("check ")[0].replace("\nrequired ", "\nrequired database")
    text += f"address {store.address}\nname {store.name}\n"
    check = blake3(text.encode()).hexdigest()[:16]
    (path / "FORMAT").write_text(f"{text}check {check}\n")


def test_a_folder_that_names_a_database_is_opened_if_it_is_named(
    team: Store, postgres: PostgresServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.session("s").note("one")
    folder = home / "project/.forge"
    folder_of(postgres, team, folder)
    with forge_store.open(home / "project") as store:
        assert (store.path, store.address, store.name) == (str(folder), team.address, "team")
        session = store.session("s")
        assert in_child(lambda: session.note("two").id) == "N2"
        assert len(session.head.state.notes) == 2
        assert store.verify(full=True).outcome == "clean"
        with pytest.raises(forge_store.Invalid, match="back up the database"):
            store.backup(home / "copy")
    monkeypatch.chdir(home / "project")
    for create in (False, True):
        with pytest.raises(forge_store.Invalid, match="passwords") as refused:
            forge_store.open(create=create)
        assert str(folder) in str(refused.value) and str(team.address) in str(refused.value)
    monkeypatch.setenv("FORGE_STORE", str(folder))
    with forge_store.open() as store:
        assert store.address == team.address


def test_each_session_is_in_one_shard(shards: Shards, database: str) -> None:
    names = [f"session {number}" for number in range(40)]
    for name in names:
        shards.of(name).session(name).note(name)
    assert (shards.name, shards.count, len(shards.all())) == ("threads", 8, 8)
    assert shards.of("tea") is shards.of("tea")
    found = [{info.name for info in store.sessions()} for store in shards.all()]
    assert sorted(name for some in found for name in some) == sorted(names)
    assert sum(bool(some) for some in found) > 4
    assert [store.name for store in shards.all()] == [f"threads/{n}-of-8" for n in range(8)]
    with forge_store.open_shards(database, name="threads") as again:
        assert again.count == 8
        for name in names:
            assert again.of(name).session(name, create=False).head.state.notes[0].description == name
    with forge_store.open_shards(database, name="threads", shards=8, create=True) as again:
        assert len(again.of("tea").sessions()) == len(shards.of("tea").sessions())


def test_shards_share_their_connections(
    shards: Shards, database: str, postgres: PostgresServer
) -> None:
    for store in shards.all():
        store.session("s").note("one")
    own = connections(postgres, database)
    assert 0 < len(own) < 8

    def child() -> int:
        for store in shards.all():
            store.session("s").note("two")
        return len(connections(postgres, database) - own)

    assert 0 < int(in_child(child)) < 8
    shards.close()
    assert not connections(postgres, database) & own


def test_shards_that_are_not_there_or_differ_are_refused(shards: Shards, database: str) -> None:
    with pytest.raises(forge_store.NotFound, match="create=True"):
        forge_store.open_shards(database, name="others")
    with pytest.raises(forge_store.Invalid, match="shards=8"):
        forge_store.open_shards(database, name="others", create=True)
    for create in (False, True):
        with pytest.raises(forge_store.Conflict, match="8 shards"):
            forge_store.open_shards(database, name="threads", shards=4, create=create)
    for name in ("threads/0-of-4", "threads/0-of-9"):
        with pytest.raises(forge_store.ForgeError, match="has 8 shards"):
            forge_store.open(database, name=name, create=True)
    with pytest.raises(forge_store.Invalid, match="1024"):
        forge_store.open_shards(database, name="others", shards=0, create=True)
    with pytest.raises(forge_store.Invalid, match="postgres://"):
        forge_store.open_shards("folder", name="others")
    store = shards.of("s")
    shards.close()
    assert shards.closed and "closed" in repr(shards) and store.closed
    with pytest.raises(forge_store.Invalid, match="closed"):
        shards.of("s")


def test_asyncio_uses_databases_too(database: str) -> None:
    async def main() -> list[int]:
        async with await aio.open(database, name="team", create=True) as store:
            session = await store.session("s")
            await asyncio.gather(*(session.note(f"note {number}") for number in range(8)))
            moment = await session.head()
            found = [len(await moment.state())]
        async with await aio.open_shards(database, name="t", shards=2, create=True) as shards:
            session = await (await shards.of("s")).session("s")
            await session.note("one")
            found.append(len([await store.sessions() for store in await shards.all()]))
        return found

    assert asyncio.run(main()) == [8, 2]


def test_the_environment_says_what_the_address_does_not(
    team: Store, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres.run(str(team.address), "select current_database()")
    for variable, value in (("HOST", postgres.folder), ("USER", "test"), ("DATABASE", name)):
        monkeypatch.setenv(f"PG{variable}", os.fspath(value))
    with forge_store.open("postgres://", name="team") as store:
        assert str(postgres.folder) not in str(store.address)
        session = store.session("s")
        for variable in ("HOST", "USER", "DATABASE"):
            monkeypatch.delenv(f"PG{variable}")
        # A child connects with the environment of the moment at which the store was opened.
        assert in_child(lambda: session.note("one").id) == "N1"
