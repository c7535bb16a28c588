"""The API follows the conventions of Python."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import forge_store
import pytest
from forge_store import Session, Store


def test_claims_change_by_their_rules(session: Session) -> None:
    cause = session.hypothesis("the lease is judged on another clock", confidence=0.5)
    assert (cause.id, cause.revision, cause.session, cause.branch) == ("H1", 1, "bug-42", "main")
    evidence = session.evidence("the clocks differ by 1.8 s", cause, 0.7, source="chronyc")
    belief = session.belief("clocks agree", hypothesis=cause, kind="assumption")
    rests = session.belief("leases are safe", on=[belief])
    gap = session.gap("which clock is wrong?", criticality="high", blocking=[cause])
    session.fill(gap, "the worker's")
    state = session.head.state
    assert [one.id for one in state.hypotheses] == ["H1"]
    assert state.hypotheses[0].confidence == pytest.approx(0.82, abs=0.01)
    assert state.evidence[0].strength == 0.7 and state.evidence[0].source == "chronyc"
    assert (state.gaps[0].status, state.gaps[0].resolution) == ("filled", "the worker's")
    done = session.reject(cause, "no clock moved")
    assert done.checkpoint is not None and "hypothesis_rejected" in done.checkpoint.tags
    doubted = {one.id: one.in_doubt for one in session.head.state.beliefs}
    assert doubted == {belief.id: True, rests.id: True}
    session.retract(evidence)
    assert "E1" not in session.head.state
    why = session.why("H1")
    assert why.claim.fields["reason"] == "no clock moved"
    assert why.history[0].new is not None and why.history[-1].old is None
    assert [one.id for one in session.why(rests).rests_on] == [belief.id]


def test_an_update_keeps_the_rules_of_the_command(session: Session) -> None:
    cause, gap = session.hypothesis("h"), session.gap("which one?")
    with pytest.raises(forge_store.Invalid, match="the gap G1 is open and .*; use session.fill"):
        session.update(gap, resolution="this one")
    session.update(gap, status="obsolete", resolution="nothing depends on it")
    session.update(gap, resolution="nothing depends on it now")
    session.update(gap, status="open")
    assert "resolution" not in session.head.claim(gap).fields
    session.confirm(cause, "it fails every time")
    session.update(cause, description="the first")
    assert session.head.claim(cause).fields["reason"] == "it fails every time"
    session.update(cause, status="active")
    assert "reason" not in session.head.claim(cause).fields


def test_a_new_belief_does_not_rest_on_itself(session: Session) -> None:
    # The next free id is B1.
    for id, ground in (("mine", "mine"), (None, "B1")):
        with pytest.raises(forge_store.Invalid, match=f"{ground} -> {ground}; leave"):
            session.belief("so it is", on=[ground], id=id)
    assert session.head.revision is None
    first = session.belief("leases are safe")
    assert session.belief("so are locks", on=[first]).id == "B2"


def test_why_says_what_speaks_for_and_against(session: Session) -> None:
    cause = session.hypothesis("h")
    session.evidence("for", cause, 0.5)
    session.evidence("against", cause, -0.25)
    why = session.why(cause)
    assert [one.description for one in why.speaks_for] == ["for"]
    assert [one.description for one in why.speaks_against] == ["against"]


def test_why_says_what_a_claim_rests_on(session: Session) -> None:
    cause = session.hypothesis("h")
    seen = session.evidence("seen", cause, 0.5)
    gap = session.gap("which one?", blocking=[cause])
    ground = session.belief("ground", source="H1")
    rests = session.belief("rests", on=[ground], hypothesis=cause, evidence=[seen])
    session.contradict(rests, session.belief("opposite"))
    why = session.why(rests)
    assert [one.id for one in why.rests_on] == [cause.id, ground.id]
    assert [one.id for one in why.speaks_for] == [seen.id]
    assert [one.id for one in session.why(ground).rests_on] == [cause.id]
    assert [one.id for one in session.why(cause).rests_on] == [gap.id]


def test_values_are_frozen_and_dictionaries_too(session: Session) -> None:
    session.hypothesis("h", tags=["a"])
    state = session.head.state
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.hypotheses[0].id = "H2"  # type: ignore[misc]
    as_dict = state.to_dict()["hypotheses"][0]
    assert as_dict["description"] == "h" and as_dict["tags"] == ["a"]
    assert as_dict["at"].tzinfo is timezone.utc


def test_what_is_printed_says_what_was_recorded(session: Session) -> None:
    session.hypothesis("the cache is stale")
    command = session.command("make test", exit_code=1)
    assert repr(session.head.state) == "State(claims=(<hypothesis H1 'the cache is stale'>,))"
    assert repr(session.head.facts()) == f"[<command {command.id} 'make test'>]"


def test_values_can_be_in_a_set(session: Session) -> None:
    cause = session.hypothesis("h", tags=["cache"])
    named = session.checkpoint("c", data={"seen": [1]})
    session.update(cause, description="the cache is stale")
    moment, change = session.head, session.diff(named)
    claims = moment.state.claims
    values = {*claims, named, change, *change.changes, *moment.log(), session.why(cause)}
    assert len(values) == len(claims) + 1 + 1 + len(change.changes) + len(moment.log()) + 1


def test_update_removes_a_field_with_none_and_refuses_a_settling_status(session: Session) -> None:
    cause = session.hypothesis("h", confidence=0.3)
    session.update(cause, confidence=None, description="better")
    claim = session.head.claim(cause)
    assert (claim.description, claim.fields.get("confidence")) == ("better", None)
    with pytest.raises(forge_store.Invalid, match=r"session\.confirm"):
        session.update(cause, status="confirmed")
    child = session.hypothesis("part", parent=cause)
    with pytest.raises(forge_store.Invalid, match="cycle"):
        session.update(cause, parent=child.id)
    with pytest.raises(forge_store.Invalid, match=r"session\.reject"):
        session.retract(cause)
    assert session.head.revision == child.revision


def test_what_is_not_retracted_leaves_a_note_of_the_same_id(session: Session) -> None:
    session.gap("which clock?", id="X")
    session.note("seen once", id="X")
    with pytest.raises(forge_store.Invalid, match="a gap is not retracted"):
        session.retract("gap:X")
    assert [one.id for one in session.head.state.notes] == ["X"]
    session.retract("note:X")
    assert not session.head.state.notes and len(session.head.state.gaps) == 1


def test_facts_are_recorded_with_their_own_time(session: Session) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    session.command("make test", exit_code=2, output="1 failed", at=when)
    session.message("I look at the clock", role="assistant")
    done = session.verification("redelivery", "failed", output="x" * 10_000)
    assert done.checkpoint is not None
    session.measurement("offset", 1.8, unit="s")
    commands = session.head.facts("command")
    assert commands[0].at == when and commands[0].fields["exit_code"] == 2
    assert [one.kind for one in session.head.facts()][0] == "command"
    cut, whole = (session.head.facts("verification", full=full)[0] for full in (False, True))
    assert whole.fields["output"] == "x" * 10_000
    assert len(cut.fields["output"]) < 10_000
    assert session.head.facts("measurement")[0].fields["value"] == 1.8
    assert len(session.head.facts()) == 4
    with pytest.raises(forge_store.Invalid, match="'note' is a kind of claims.*; read the claims"):
        session.head.facts("command", "note")


def test_a_claim_is_no_fact_and_a_naive_time_is_refused(session: Session) -> None:
    with pytest.raises(forge_store.Invalid, match=r"session\.add"):
        session.record("note", description="x")
    with pytest.raises(ValueError, match="naive"):
        session.command("x", at=datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="naive"):
        session.note("x")
        session.at(datetime(2026, 1, 1))
    with pytest.raises(forge_store.Invalid, match="is a object"):
        session.add("note", description=object())
    with pytest.raises(forge_store.Invalid, match="64 bits"):
        session.add("note", description="x", count=1 << 70)
    assert session.head.facts() == []


def test_moments_are_read_compared_and_restored(session: Session) -> None:
    cause = session.hypothesis("h")
    before = session.checkpoint("one suspect", tags=["suspect"], data={"load": 3})
    assert (before.tags, before.trigger, before.data) == (("suspect",), "manual", {"load": 3})
    session.confirm(cause, "always")
    for name in ("suspect", before, before.number, f"#{before.number}"):
        then = session.at(name)
        assert then.state["H1"].fields["status"] == "active", name
    assert session.at("suspect").checkpoint == before
    assert session.at("suspect").branch == "main"
    difference = session.diff("suspect")
    assert "H1 confirmed" in difference.summary and difference
    assert ("status_changed", "active", "confirmed") in {
        (one.change, one.old, one.new) for one in difference.changes
    }
    assert not session.diff(session.head, session.head)
    session.restore("suspect")
    assert session.head.state["H1"].fields["status"] == "active"
    assert session.undo().verb == "restore"
    assert session.head.state["H1"].fields["status"] == "confirmed"
    assert session.redo().verb == "undo" or session.head.state["H1"].fields["status"] == "active"
    assert [one.message for one in session.checkpoints("suspect")] == ["one suspect"]
    log = session.log(3)
    assert log[0].number > log[-1].number and str(log[0]).startswith("#")
    assert session.operations(1)[0].id


def test_a_moment_stays_the_same(session: Session) -> None:
    session.note("one")
    moment = session.head
    session.note("two")
    assert len(moment.state) == 1 and len(session.head.state) == 2
    assert [one.description for one in session.at(moment).state.notes] == ["one"]


def test_a_checkpoint_of_another_session_is_refused(store: Store, session: Session) -> None:
    """It was taken for the checkpoint of this session with the same number."""
    session.checkpoint("one")
    other = store.session("other").checkpoint("other")
    with pytest.raises(forge_store.NotFound):
        session.restore(other)


def test_a_time_names_a_moment(session: Session) -> None:
    session.note("one")
    now = datetime.now(timezone.utc)
    assert session.at(now).revision == 1
    with pytest.raises(LookupError, match="start"):
        session.at(now - timedelta(days=1))


def test_branches_are_merged_and_conflicts_raise(session: Session) -> None:
    cause = session.hypothesis("h")
    session.branch("try", approach="another clock", hypothesis=cause)
    assert [(one.name, one.current) for one in session.branches] == [("main", False), ("try", True)]
    session.update(cause, description="theirs")
    assert session.switch("main") == "try"
    session.update(cause, description="ours")
    plan = session.merge("try", dry_run=True)
    assert plan.result == "conflicts" and plan.conflicts[0]["theirs"] == "theirs"
    with pytest.raises(forge_store.Conflict, match="prefer"):
        session.merge("try")
    assert session.head.claim(cause).description == "ours"
    assert session.merge("try", prefer="theirs").result == "merged"
    assert session.head.claim(cause).description == "theirs"
    with pytest.raises(forge_store.Invalid, match="neither"):
        session.merge("try", prefer="mine")


def test_pruning_is_planned_done_and_undone(session: Session) -> None:
    for number in range(5):
        session.note(f"note {number}")
        session.checkpoint(f"checkpoint {number}")
    with pytest.raises(forge_store.Invalid, match="'last' is less than 0"):
        session.prune(last=-1, manual=False)
    with pytest.raises(forge_store.Invalid, match="'within' is less than 0"):
        session.prune(within=timedelta(hours=-1), manual=False)
    with pytest.raises(TypeError):
        session.prune(within=3600)  # type: ignore[arg-type]
    plan = session.prune(last=2, manual=False, dry_run=True)
    assert (len(plan.pruned), len(plan.kept), plan.operation) == (3, 2, None)
    assert len(session.checkpoints()) == 5
    done = session.prune(last=2, manual=False, progress=lambda seconds: None)
    assert [one.message for one in session.checkpoints()] == ["checkpoint 4", "checkpoint 3"]
    session.undo(done.operation)
    assert len(session.checkpoints()) == 5


def test_search_finds_what_was_recorded(store: Store, session: Session) -> None:
    session.note("the lease is too short")
    store.session("other").note("another lease")
    assert {hit.session for hit in store.search("lease").hits} == {"bug-42", "other"}
    page = session.search("lease", limit=1)
    assert [(hit.kind, hit.id) for hit in page.hits] == [("note", "N1")]
    with pytest.raises(forge_store.Invalid):
        store.search("")


def test_the_brief_says_what_is_next(session: Session) -> None:
    session.hypothesis("h")
    brief = session.brief()
    assert brief["active"][0]["id"] == "H1" and brief["next"]


def test_sessions_are_found_by_name_and_id(store: Store, session: Session) -> None:
    assert store.session("bug-42").id == session.id
    assert store.session(session.id, create=False).name == "bug-42"
    assert store.session().id == session.id
    with pytest.raises(forge_store.NotFound):
        store.session("bug-43", create=False)
    assert [info.name for info in store.sessions()] == ["bug-42"]


def test_bundles_and_backups_carry_everything(
    tmp_path: Path, store: Store, session: Session
) -> None:
    session.note("one")
    steps: list[float] = []
    size = store.export_bundle(tmp_path / "all.forge", progress=steps.append)
    assert size == (tmp_path / "all.forge").stat().st_size and steps[-1] == size
    # Others must not read what is private in the store.
    assert (tmp_path / "all.forge").stat().st_mode & 0o777 == 0o600
    with forge_store.open(tmp_path / "second", create=True) as second:
        assert second.import_bundle(tmp_path / "all.forge") == ["bug-42"]
        assert second.session("bug-42").id == session.id
        with pytest.raises(LookupError):
            second.import_bundle(tmp_path / "none.forge")
    store.backup(tmp_path / "copy", progress=lambda seconds: None)
    assert store.verify(full=True)
    assert store.verify().outcome == "clean"


def test_an_export_that_is_stopped_leaves_no_file(
    tmp_path: Path, store: Store, session: Session
) -> None:
    session.note("one")

    def stop(written: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.export_bundle(tmp_path / "all.forge", progress=stop)
    assert not list(tmp_path.glob("all.forge*"))


def test_an_export_leaves_the_part_that_another_thread_is_writing(
    tmp_path: Path, store: Store, session: Session
) -> None:
    session.note("one")

    def export_too(written: float) -> None:
        with pytest.raises(forge_store.Unavailable, match="cannot write"):
            store.export_bundle(tmp_path / "all.forge")

    size = store.export_bundle(tmp_path / "all.forge", progress=export_too)
    assert [one.name for one in tmp_path.glob("all.forge*")] == ["all.forge"]
    assert size == (tmp_path / "all.forge").stat().st_size


def test_a_bundle_is_private_and_replaces_neither_a_link_nor_a_pipe(
    tmp_path: Path, store: Store, session: Session
) -> None:
    session.note("one")
    (tmp_path / "all.forge").touch(0o644)
    (tmp_path / "link").symlink_to("all.forge")
    store.export_bundle(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "all.forge").stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(forge_store.Unavailable, match="a pipe or a device, not a file"):
        store.export_bundle(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_secrets_are_removed_by_default(tmp_path: Path, session: Session) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    session.note(f"the token is {secret}")
    assert secret not in session.head.state.notes[0].description
    with forge_store.open(tmp_path / "plain", create=True, redact=False) as plain:
        kept = plain.session("s")
        kept.note(f"the token is {secret}")
        assert secret in kept.head.state.notes[0].description


def test_a_store_is_found_as_the_command_finds_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    with pytest.raises(forge_store.NotFound, match="create=True"):
        forge_store.open()
    subprocess.run(["git", "init", "-q", "project"], check=True)
    (home / "project/deep").mkdir()
    monkeypatch.chdir(home / "project/deep")
    with forge_store.open(create=True) as store:
        assert store.path == str(home / "project/.forge")
        assert store.seals == "sealed" and not store.encrypted
    with forge_store.open() as store:
        assert store.path == str(home / "project/.forge")
    with forge_store.open(home / "project") as store:
        assert store.path == str(home / "project/.forge")
    monkeypatch.setenv("FORGE_STORE", str(path))
    with pytest.raises(forge_store.NotFound):
        forge_store.open()
    forge_store.open(create=True).close()
    with forge_store.open() as store:
        assert store.path == str(path)


def test_a_worktree_shares_the_store_of_its_main_checkout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "main"], check=True)
    subprocess.run(
        [*git, "-C", "main", "commit", "-q", "--allow-empty", "-m", "first"], check=True
    )
    subprocess.run([*git, "-C", "main", "worktree", "add", "-q", "../tree"], check=True)
    monkeypatch.chdir(home / "tree")
    with forge_store.open(create=True) as store:
        assert store.path == str(home / "main/.forge")


def test_a_link_out_of_the_project_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    forge_store.open(path, create=True).close()
    (home / "project").mkdir()
    (home / "project/.forge").symlink_to(path)
    monkeypatch.chdir(home / "project")
    with pytest.raises(forge_store.Invalid, match="out of its project"):
        forge_store.open()


def test_a_file_in_the_place_of_a_store_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge_store.open(home / ".forge", create=True).close()
    (home / "project").mkdir()
    (home / "project/.forge").write_text("")
    monkeypatch.chdir(home / "project")
    with pytest.raises(forge_store.Invalid, match="is not a directory"):
        forge_store.open()
    with pytest.raises(forge_store.Invalid, match="not a directory; a store is a directory"):
        forge_store.open(home / "project/.forge", create=True)
    with pytest.raises(forge_store.Invalid, match="the path is empty; name a folder"):
        forge_store.open("", create=True)
    (home / "project/.forge").unlink()
    with forge_store.open() as store:
        assert store.path == str(home / ".forge")


def test_an_encrypted_store_needs_its_key(
    path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forge_store.open(path, create=True, encrypted=True) as store:
        assert store.encrypted
        store.session("s").note("hidden")
    monkeypatch.setenv("FORGE_KEYRING", str(home / "elsewhere"))
    with pytest.raises(forge_store.Unkeyed, match="key import"):
        forge_store.open(path)


def test_a_store_without_the_protection_that_is_asked_for_is_refused(path: Path) -> None:
    """A program that asks for an encrypted store must not write plain text without knowing."""
    forge_store.open(path, create=True, sealed=False).close()
    with pytest.raises(forge_store.Invalid, match="not encrypted; open it without encrypted=True"):
        forge_store.open(path, create=True, encrypted=True)
    with pytest.raises(forge_store.Invalid, match="not sealed; open it without sealed=True"):
        forge_store.open(path, sealed=True)
    with pytest.raises(forge_store.Invalid, match="is sealed too; leave out sealed=False"):
        forge_store.open(path, create=True, encrypted=True, sealed=False)
    with forge_store.open(path, create=True, sealed=False) as store:
        assert store.seals == "unsealed"


def test_a_sealed_store_is_written_also_by_a_program_that_would_make_one_without_seals(
    path: Path,
) -> None:
    forge_store.open(path, create=True).close()
    with forge_store.open(path, create=True, sealed=False) as store:
        assert store.seals == "sealed"
        assert store.session("s").note("its key is on this machine").id == "N1"


def test_warnings_and_automatic_checkpoints_can_be_switched_off(path: Path) -> None:
    with forge_store.open(path, create=True, checkpoints=False) as store:
        session = store.session("s")
        cause = session.hypothesis("h")
        assert session.confirm(cause).checkpoint is None
        assert session.checkpoints() == []
