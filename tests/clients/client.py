"""The checks of every client, and the story that each goes through."""

import json
import re

import story
from process import Stuck
from stand_in import SUMMARY, TURN, StandIn


class Checks:
    """The results of one client's checks, printed as they come."""

    def __init__(self, client: str):
        self.client = client
        self.passed = 0
        self.failed: list[str] = []

    def that(self, what: str, holds: bool, found=None):
        """Notes whether `what` holds; `found` is what was there instead."""
        print(f"  {'ok    ' if holds else 'FAILED'} {what}", flush=True)
        if holds:
            self.passed += 1
            return
        self.failed.append(what)
        if found is not None:
            print(f"         found: {str(found)[:1200]}", flush=True)

    def equal(self, what: str, found, wanted):
        self.that(what, found == wanted, f"{found!r}, wanted: {wanted!r}")


class Client:
    """A client in its scratch home. A subclass sets it up, runs it and prompts it."""

    name: str
    service: type[StandIn]
    file: str
    """The person's settings of this client."""
    page: str
    """The person's page of instructions."""
    events: set[str]
    """The events whose hooks must have been called by the end of the story."""
    prompts: list[str]
    """All prompts of the story, in their order."""
    compactions: int

    def __init__(self, scratch, checks: Checks):
        self.scratch = scratch
        self.checks = checks
        self.stand_in = self.service()

    def furnish(self):
        """Writes the settings that a person has, and completes the environment."""
        raise NotImplementedError

    def work(self):
        """Runs the client through the story, with its compactions."""
        raise NotImplementedError

    def more(self):
        """Runs and checks the features that only this client has, in sessions of their own."""

    def rewrite(self):
        """Makes the client write its own settings, so that they differ from what forge wrote."""
        raise NotImplementedError

    def test(self):
        try:
            self.furnish()
            self.scratch.write(self.page, "# Mine\n\nShort answers.\n")
            self.scratch.run("forge", "init")
            before = self.settings()
            self.install(before)
            self.uninstall("uninstalling at once leaves every file as it was", before)
            self.install(None)
            installed = self.settings()
            self.work()
            self.look()
            self.more()
            self.rewrite()
            self.checks.that("the client writes its settings", self.settings() != installed)
            self.uninstall("uninstalling after the client wrote its settings leaves nothing of forge's", None)
            after = self.settings()
            self.checks.equal("the person's page is as it was", after.get(self.page), before[self.page])
            self.look_at_settings(before[self.file], after.get(self.file, b""))
            self.checks.equal("nothing is asked of any other host", self.scratch.outside.asked, [])
        except Stuck as stuck:
            self.checks.that("the client comes to its end", False, stuck)
        finally:
            self.stand_in.server.close()
            lines = [json.dumps([one.kind, one.path, one.body]) + "\n" for one in self.stand_in.requests]
            (self.scratch.root / "requests.jsonl").write_text("".join(lines))

    def install(self, before):
        self.scratch.run("forge", "hooks", "install", self.name, "--yes")
        if before is not None:
            self.checks.that("installing changes the client's files", self.settings() != before)

    def uninstall(self, what: str, before):
        self.scratch.run("forge", "hooks", "uninstall", self.name)
        after = self.settings()
        if before is not None:
            changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            self.checks.equal(what, changed, [])
            return
        left = [name for name, text in after.items() if b"forge" in text.lower() or "forge" in name]
        self.checks.equal(what, left, [])

    def settings(self) -> dict[str, bytes]:
        """The client's files that forge may write, by name, without those of its sessions."""
        found = self.scratch.snapshot()
        return {name: text for name, text in found.items() if self.is_setting(name)}

    def is_setting(self, name: str) -> bool:
        raise NotImplementedError

    def parsed(self, settings: bytes) -> dict:
        """The values of a settings file, without the notes of the client itself."""
        raise NotImplementedError

    def rewritten(self, settings: dict):
        """Changes the values as the story does."""

    def look_at_settings(self, before: bytes, after: bytes):
        """Compares the settings at the end with those that the person had."""
        wanted = self.parsed(before)
        self.rewritten(wanted)
        self.checks.equal("the person's settings are whole", self.parsed(after), wanted)
        lost = [comment for comment in re.findall(rb"(?://|#) .*", before) if comment not in after]
        self.checks.equal("the person's comments are whole", lost, [])

    def look(self):
        """Checks what forge recorded of the story."""
        self.look_at_hooks()
        sessions = [one for one in self.scratch.forge("session", "list")["sessions"] if one["agent"]]
        self.checks.equal("the work is in one session of the agent", len(sessions), 1)
        if not sessions:
            return
        session = sessions[0]["name"]
        self.checks.equal("it is named by its first prompt", session, self.prompts[0])
        prompts = self.listed(session, "prompt", "prompts")
        self.checks.equal(
            "the prompts are those that were typed", [one["text"] for one in prompts], self.prompts
        )
        commands = {one["command"]: one for one in self.listed(session, "command", "commands")}
        self.look_at_commands(commands)
        self.look_at_edit("the edit is kept", session)
        hypotheses = [one["description"] for one in self.listed(session, "hypothesis", "hypotheses")]
        self.checks.equal("the agent's own command recorded in its session", hypotheses, [story.HYPOTHESIS])
        found = self.compactions_of(session)
        self.checks.equal("each compaction is one checkpoint", len(found), self.compactions)
        phases = {one["phase"] for one in found}
        self.checks.that("each compaction is known to be done", phases <= {"done", "recorded"}, phases)
        self.checks.that("each compaction was handed back", all(one["handed_at"] for one in found), found)

    def look_at_brief(self, what: str, count: int):
        """Checks that the client requested `count` summaries, and that the brief is in its next request."""
        requests = self.stand_in.requests
        summaries = [at for at, request in enumerate(requests) if request.kind == SUMMARY]
        self.checks.equal(f"{what} is real", len(summaries), count)
        if len(summaries) != count:
            return
        if count == 1:
            early = [request for request in requests[: summaries[0]] if has_brief(request)]
            self.checks.equal(f"{what}: nothing is handed back before it", len(early), 0)
        after = [request for request in requests[summaries[-1] + 1 :] if request.kind == TURN]
        self.checks.that(f"{what}: the brief is in the next request", bool(after) and has_brief(after[0]))

    def look_at_hooks(self):
        path = self.scratch.project / ".forge/log/hooks.jsonl"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        missing = sorted(self.events - {call["event"] for call in calls})
        self.checks.equal("every hook was called", missing, [])
        failed = [call for call in calls if call["outcome"] == "failed"]
        self.checks.equal("no hook failed", failed, [])

    def look_at_commands(self, commands: dict[str, dict]):
        proof = self.scratch.project / "proof.txt"
        self.checks.that("a command on no list runs", proof.exists(), commands.get(story.UNLISTED))
        ends = {
            command: commands.get(command, {}).get("exit_code") for command in (story.CHECK, story.UNLISTED)
        }
        self.checks.equal("commands have their exit codes", ends, {story.CHECK: 1, story.UNLISTED: 3})

    def look_at_edit(self, what: str, session: str):
        changed = [one["path"] or "" for one in self.listed(session, "code", "code")]
        self.checks.that(what, any(path.endswith("calc.py") for path in changed), changed)

    def look_at_background(self, commands: dict[str, dict]):
        end = commands.get(story.BACKGROUND, {})
        self.checks.equal("a background command has its own end", end.get("exit_code"), 7)

    def session_of(self, what: str, thread: str) -> str | None:
        """The session of forge that contains a session of the client."""
        sessions = self.scratch.forge("session", "list")["sessions"]
        names = [one["name"] for one in sessions if one["agent_session"] == thread]
        self.checks.equal(f"{what}: the work is in one session of the agent", len(names), 1)
        return names[0] if names else None

    def listed(self, session: str, kind: str, field: str) -> list[dict]:
        return self.scratch.forge("--session", session, kind, "list")[field]

    def compactions_of(self, session: str) -> list[dict]:
        return self.listed(session, "compaction", "compactions")

    def compactions_so_far(self) -> list[dict]:
        """The compactions of the agent's only session."""
        sessions = [one["name"] for one in self.scratch.forge("session", "list")["sessions"] if one["agent"]]
        return self.compactions_of(sessions[0]) if sessions else []


def has_brief(request) -> bool:
    """Whether a request contains the hypothesis outside of the command that recorded it."""
    return story.HYPOTHESIS in request.text.replace(story.ADD_HYPOTHESIS, "")


def without_comments(text: bytes) -> dict:
    """The settings in a file whose comments are on lines of their own."""
    lines = text.decode().splitlines()
    return json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))
