"""OpenCode, run as its server with HTTP."""

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import story
from client import Client, has_brief, without_comments
from process import Child, Stuck
from protocols import ChatCompletions
from scratch import FIXED
from stand_in import SUMMARY, TURN, Call, Step

OVER_LIMIT = 99_500
ASK = '"permission": {"bash": {"*": "ask"}}'
LAST = "Is anything left?"
PERSONS_SETTINGS = """{
  "$schema": "https://opencode.ai/config.json",
  // Mine
  "autoupdate": false,
  "share": "disabled",
  "model": "stand-in/model",
  "provider": {
    "stand-in": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "%s/v1", "apiKey": "none"},
      "models": {"model": {"limit": {"context": 100000, "output": 1000}}}
    }
  }
}
"""


class OpenCode(Client):
    name = "opencode"
    service = ChatCompletions
    file = "home/.config/opencode/opencode.jsonc"
    page = "home/.config/opencode/AGENTS.md"
    events = {
        "session.created",
        "chat.message",
        "tool.execute.after",
        "chat.system.transform",
        "session.compacting",
        "session.compacted",
        "session.idle",
    }
    prompts = [story.PROMPT, story.TYPED, story.GO_ON, story.FURTHER, LAST]
    compactions = 2

    def furnish(self):
        self.scratch.env.update(
            OPENCODE_DISABLE_AUTOUPDATE="1",
            OPENCODE_DISABLE_MODELS_FETCH="1",
            OPENCODE_DISABLE_LSP_DOWNLOAD="1",
            OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
            # For a plugin it also installs a package of its own, which forge's plugin does not need.
            npm_config_offline="true",
        )
        self.scratch.write(self.file, PERSONS_SETTINGS % self.stand_in.server.url)

    def is_setting(self, name):
        ours = name.startswith(("home/.config/opencode/", "project/.opencode/", "project/opencode.json"))
        return ours and not name.endswith(".gitignore") or name == "project/AGENTS.md"

    def work(self):
        server = Server(self)
        try:
            session = server.ask("POST", "/session", {})["id"]
            self.first_turn(server, session)
            self.compacted_by_tokens(server, session)
            self.compacted_by_command(server, session)
        finally:
            server.kill()

    def first_turn(self, server, session):
        path = str(self.scratch.project / "calc.py")
        self.stand_in.play(
            Step("I suspect that the rounding is done twice.", [shell(story.CHECK)]),
            Step(calls=[shell(story.ADD_HYPOTHESIS)]),
            Step(calls=[Call("read", {"filePath": path})]),
            Step(calls=[Call("write", {"filePath": path, "content": FIXED})]),
            Step(calls=[shell(story.UNLISTED)]),
            Step(calls=[shell("touch started; sleep 2")]),
            Step("calc.py is fixed."),
        )
        with ThreadPoolExecutor() as pool:
            turn = pool.submit(server.say, session, story.PROMPT)
            self.scratch.wait_for("started")
            server.say_later(session, story.TYPED)
            turn.result()

    def compacted_by_tokens(self, server, session):
        self.stand_in.play(
            Step("The next part.", [shell("true")], tokens=OVER_LIMIT),
            Step("More of it.", [shell("pwd")]),
            Step("That part is done."),
            Step("All is done."),
        )
        server.say(session, story.GO_ON)
        server.say(session, story.FURTHER)
        self.look_at_brief("a compaction by the number of tokens", 1)
        self.look_at_every_brief("a compaction by the number of tokens", 3)

    def compacted_by_command(self, server, session):
        server.ask("POST", f"/session/{session}/summarize", {"providerID": "stand-in", "modelID": "model"})
        self.stand_in.play(Step("More of it.", [shell("pwd")]), Step("That is all."))
        server.say(session, LAST)
        self.look_at_brief("a compaction by command", 2)
        self.look_at_every_brief("a compaction by command", 2)

    def look_at_every_brief(self, what: str, count: int):
        """Checks the requests after the last compaction: the system prompt is built for each of them."""
        requests = self.stand_in.requests
        summaries = [at for at, request in enumerate(requests) if request.kind == SUMMARY]
        after = requests[summaries[-1] + 1 :] if summaries else []
        handed = [has_brief(request) for request in after if request.kind == TURN]
        self.checks.equal(f"{what}: the brief is in every request after it", handed, [True] * count)

    def more(self):
        """Runs it for a person who wants to be asked about commands."""
        self.scratch.run("forge", "hooks", "uninstall", self.name)
        settings = self.scratch.root / self.file
        settings.write_text(settings.read_text().replace("  // Mine\n", f"  // Mine\n  {ASK},\n"))
        self.install(None)
        year = "date +%Y > year.txt"
        self.stand_in.play(
            Step(calls=[shell("forge status")]),
            Step(calls=[shell(year)]),
            Step("Asked and answered."),
        )
        server = Server(self)
        try:
            session = server.ask("POST", "/session", {})["id"]
            asked = server.say_and_permit(session, "What is known?")
        finally:
            server.kill()
        self.checks.equal("only what is on no list is asked about", asked, [year])

    def rewrite(self):
        """Lets the client write its settings: it adds a server, which its command line cannot remove again."""
        self.scratch.run("opencode", "mcp", "add", "other", "--", "true")

    def parsed(self, settings):
        return without_comments(settings)

    def rewritten(self, settings):
        settings |= json.loads(f"{{{ASK}}}")
        settings["mcp"] = {"other": {"type": "local", "command": ["true"]}}


class Server:
    """The client's server, which is used over HTTP."""

    def __init__(self, client: Client):
        scratch = client.scratch
        command = ["opencode", "serve", "--port", "0", "--print-logs"]
        self._child = Child(command, env=scratch.env, cwd=scratch.project, log=scratch.log)
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        line = ""
        while "listening on http" not in line:
            line = self._child.next_line(180)
        self._address = line.split()[-1]

    def ask(self, method: str, path: str, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=180) as answer:
                text = answer.read()
        except (TimeoutError, urllib.error.URLError) as error:
            raise Stuck(f"opencode did not answer {method} {path}: {error}") from None
        return json.loads(text) if text else None

    def say(self, session: str, text: str):
        self.ask("POST", f"/session/{session}/message", {"parts": [{"type": "text", "text": text}]})

    def say_later(self, session: str, text: str):
        """Types a prompt without waiting for the answer."""
        self.ask("POST", f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": text}]})

    def say_and_permit(self, session: str, text: str) -> list[str]:
        """Permits each command that it asks about, and returns these commands."""
        asked = []
        with ThreadPoolExecutor() as pool:
            turn = pool.submit(self.say, session, text)
            while not turn.done():
                for question in self.ask("GET", "/permission"):
                    asked += question["patterns"]
                    self.ask("POST", f"/permission/{question['id']}/reply", {"reply": "once"})
                time.sleep(0.1)
            turn.result()
        return asked

    def kill(self):
        self._child.kill()


def shell(command: str) -> Call:
    return Call("bash", {"command": command, "description": "Run it"})
