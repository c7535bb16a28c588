"""Codex CLI, run as its app server with JSON-RPC on stdin and stdout."""

import json
import re
import tomllib

import story
from client import Client
from process import Child
from protocols import Responses
from stand_in import Call, Step

CODE_MODEL = "gpt-5.6-sol"
LIMIT = 100_000
OVER_LIMIT = 120_000
PERSONS_SETTINGS = """# Mine
model = "gpt-5.5"   # one that calls tools without code
model_provider = "stand-in"
model_auto_compact_token_limit = %d
check_for_update_on_startup = false
analytics.enabled = false

[features]
plugins = false   # would be fetched
apps = false

[model_providers.stand-in]
name = "Stand-in"
base_url = "%s/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
"""
PATCH = """*** Begin Patch
*** Update File: calc.py
@@
 def total(xs):
-    return sum(round(x, 2) for x in xs)
+    return round(sum(xs), 2)
*** End Patch"""


class Codex(Client):
    name = "codex"
    service = Responses
    file = "home/.codex/config.toml"
    page = "home/.codex/AGENTS.md"
    events = {
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SessionEnd",
    }
    prompts = [story.PROMPT, story.TYPED, story.GO_ON, story.FURTHER]
    compactions = 2

    def furnish(self):
        self.scratch.env["STAND_IN_KEY"] = "none"
        self.scratch.write(self.file, PERSONS_SETTINGS % (LIMIT, self.stand_in.server.url))

    def is_setting(self, name):
        return name in (
            "home/.codex/config.toml",
            "home/.codex/hooks.json",
            "home/.codex/AGENTS.md",
            "project/AGENTS.md",
        ) or name.startswith(("home/.codex/rules/", "project/.codex/"))

    def work(self):
        server = Server(self)
        try:
            server.trust_hooks()
            thread = server.start_thread(approvalPolicy="never", sandbox="danger-full-access")
            self.first_turn(server, thread)
            self.compacted_by_tokens(server, thread)
            server.ask("thread/compact/start", threadId=thread)
            server.until("turn/completed")
            self.stand_in.play(Step("All is done."))
            server.say(thread, story.FURTHER)
            self.look_at_brief("a compaction by command", 2)
            server.end()
        finally:
            server.kill()

    def first_turn(self, server, thread):
        self.stand_in.play(
            Step("I suspect that the rounding is done twice.", [shell(story.CHECK)]),
            Step(calls=[shell(story.ADD_HYPOTHESIS)]),
            Step(calls=[Call("apply_patch", PATCH)]),
            Step(calls=[shell(story.BACKGROUND, yield_time_ms=300)]),
            lambda request: Step(calls=[wait_for_background(request.text)]),
            Step(calls=[shell(story.UNLISTED)]),
            Step(calls=[shell("sleep 2", yield_time_ms=5000)]),
            Step("calc.py is fixed."),
        )
        turn = server.start_turn(thread, story.PROMPT)
        # Typed while the last command runs.
        server.until("item/started", lambda params: "sleep 2" in json.dumps(params["item"]))
        typed = [{"type": "text", "text": story.TYPED}]
        server.ask("turn/steer", threadId=thread, expectedTurnId=turn, input=typed)
        server.until("turn/completed")

    def compacted_by_tokens(self, server, thread):
        self.stand_in.play(
            Step("The next part.", [shell("true")], tokens=OVER_LIMIT),
            Step("That part is done."),
        )
        server.say(thread, story.GO_ON)
        self.look_at_brief("a compaction by the number of tokens", 1)

    def look_at_commands(self, commands):
        super().look_at_commands(commands)
        self.look_at_background(commands)

    def more(self):
        """Runs a model that calls its tools from code that it writes."""
        patch = json.dumps(PATCH.replace("\n-", "\n~").replace("\n+", "\n-").replace("\n~", "\n+"))
        poll = "await tools.write_stdin({session_id: begun.session_id, chars: '', yield_time_ms: 5000});"
        server = Server(self)
        try:
            settings = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
            thread = server.start_thread(model=CODE_MODEL, **settings)
            self.stand_in.play(
                Step(calls=[code(in_code(story.CHECK))]),
                Step(calls=[code(in_code(story.UNLISTED))]),
                Step(calls=[code(f"const begun = {in_code(story.BACKGROUND, yield_time_ms=300)} {poll}")]),
                Step(calls=[code(f"await tools.apply_patch({patch});")]),
                Step("That is undone."),
            )
            server.say(thread, "Undo it")
            server.end()
        finally:
            server.kill()
        session = self.session_of("code mode", thread)
        if session is None:
            return
        commands = {one["command"]: one for one in self.listed(session, "command", "commands")}
        ends = {
            command: commands.get(command, {}).get("exit_code")
            for command in (story.CHECK, story.UNLISTED, story.BACKGROUND)
        }
        self.checks.equal(
            "code mode: commands have their ends",
            ends,
            {story.CHECK: 0, story.UNLISTED: 3, story.BACKGROUND: 7},
        )
        self.look_at_edit("code mode: the edit is kept", session)

    def rewrite(self):
        """Runs it with approvals, and lets it add a server to its settings and remove it."""
        server = Server(self)
        try:
            thread = server.start_thread(approvalPolicy="untrusted", sandbox="danger-full-access")
            self.stand_in.play(
                Step(calls=[shell("forge status")]),
                Step(calls=[shell("date +%Y > year.txt")]),
                Step("Asked and answered."),
            )
            server.say(thread, "What is known?")
            server.end()
        finally:
            server.kill()
        only = len(server.asked) == 1 and "date +%Y" in server.asked[0]
        self.checks.that("only what is on no list is asked about", only, server.asked)
        self.scratch.run("codex", "mcp", "add", "other", "--", "true")
        self.scratch.run("codex", "mcp", "remove", "other")

    def parsed(self, settings):
        values = tomllib.loads(settings.decode())
        # The client's notes about projects and about trust in hooks are its own.
        return {name: value for name, value in values.items() if name not in ("projects", "hooks")}


class Server:
    """The app server: requests are answered in order, and notices are waited for."""

    def __init__(self, client: Client):
        scratch = client.scratch
        self.project = str(scratch.project)
        self.asked: list[str] = []
        self._child = Child(["codex", "app-server"], env=scratch.env, cwd=scratch.project, log=scratch.log)
        self._number = 0
        self._notices: list[dict] = []
        about = {"name": "forge-clients", "title": "Tests", "version": "1"}
        self.ask("initialize", clientInfo=about)
        self._child.write_json({"method": "initialized"})

    def ask(self, method: str, **params) -> dict:
        self._number += 1
        number = self._number
        self._child.write_json({"id": number, "method": method, "params": params})
        line = self._next(lambda line: line.get("id") == number and "method" not in line)
        if "error" in line:
            raise RuntimeError(f"codex refused {method}: {line['error']}")
        return line["result"]

    def until(self, method: str, wanted=lambda params: True) -> dict:
        """The next notice of this kind; those before it are dropped."""
        while self._notices:
            notice = self._notices.pop(0)
            if notice["method"] == method and wanted(notice["params"]):
                return notice["params"]
        line = self._next(lambda line: line.get("method") == method and wanted(line["params"]))
        self._notices.clear()
        return line["params"]

    def _next(self, wanted) -> dict:
        def look(line):
            if wanted(line):
                return True
            if "method" in line and "id" in line:
                self._approve(line)
            elif "method" in line:
                self._notices.append(line)
            return False

        return self._child.next_json(look, 180)

    def _approve(self, request):
        params = request["params"]
        self.asked.append(params.get("command") or request["method"])
        self._child.write_json({"id": request["id"], "result": {"decision": "accept"}})

    def trust_hooks(self):
        """Trusts the hooks as a person does with /hooks, which the client saves in its settings."""
        hooks = self.ask("hooks/list", cwds=[self.project])["data"][0]["hooks"]
        trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": trusted}
        self.ask("config/batchWrite", edits=[edit], reloadUserConfig=True)

    def start_thread(self, **settings) -> str:
        return self.ask("thread/start", cwd=self.project, **settings)["thread"]["id"]

    def start_turn(self, thread: str, text: str) -> str:
        typed = [{"type": "text", "text": text}]
        return self.ask("turn/start", threadId=thread, input=typed)["turn"]["id"]

    def say(self, thread: str, text: str):
        self.start_turn(thread, text)
        self.until("turn/completed")

    def end(self):
        self._child.close_input()
        self._child.wait(30)

    def kill(self):
        self._child.kill()


def shell(command: str, **more) -> Call:
    return Call("exec_command", {"cmd": command, **more})


def code(script: str) -> Call:
    return Call("exec", script)


def in_code(command: str, **more) -> str:
    return f"await tools.exec_command({json.dumps(shell(command, **more).arguments)});"


def wait_for_background(request: str) -> Call:
    session = int(re.findall(r"running with session ID (\d+)", request)[-1])
    return Call("write_stdin", {"session_id": session, "chars": "", "yield_time_ms": 5000})
