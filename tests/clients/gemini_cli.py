"""Gemini CLI, run once per prompt, because it has no conversation mode on a pipe."""

import json

import story
from client import Client, has_brief, without_comments
from process import run
from protocols import GenerateContent
from scratch import FIXED
from stand_in import SUMMARY, Call, Step

PERSONS_SETTINGS = """{
  // Mine
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false}
}
"""
# More than half of the window of its models.
OVER_LIMIT = 700_000


class GeminiCli(Client):
    name = "gemini"
    service = GenerateContent
    file = "home/.gemini/settings.json"
    page = "home/.gemini/GEMINI.md"
    events = {"SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"}
    prompts = [story.PROMPT, story.GO_ON, story.FURTHER]
    compactions = 1

    def furnish(self):
        self.scratch.env.update(
            GOOGLE_GEMINI_BASE_URL=self.stand_in.server.url,
            GEMINI_API_KEY="none",
            GEMINI_CLI_TRUST_WORKSPACE="true",
        )
        self.scratch.write(self.file, PERSONS_SETTINGS)

    def is_setting(self, name):
        if name in ("home/.gemini/settings.json", "home/.gemini/GEMINI.md", "project/GEMINI.md"):
            return True
        return name.startswith(("home/.gemini/policies/", "project/.gemini/"))

    def say(self, text: str, *options: str):
        command = ["gemini", "-p", text, "-o", "stream-json", *options]
        scratch = self.scratch
        code, _ = run(command, env=scratch.env, cwd=scratch.project, limit=240, log=scratch.log)
        self.checks.equal(f"'{text}' comes to its end", code, 0)

    def work(self):
        self.stand_in.play(
            Step("I suspect that the rounding is done twice.", [shell(story.CHECK)]),
            Step(calls=[shell(story.ADD_HYPOTHESIS)]),
            Step(
                calls=[
                    Call("write_file", {"file_path": str(self.scratch.project / "calc.py"), "content": FIXED})
                ]
            ),
            Step(calls=[shell(story.BACKGROUND, is_background=True)]),
            Step(calls=[shell(story.UNLISTED)]),
            Step(calls=[shell("sleep 2")]),
            # The only place where the client reports how it ended.
            Step(calls=[Call("list_background_processes", {})]),
            Step("calc.py is fixed."),
        )
        self.add_precompress()
        self.say(story.PROMPT, "--approval-mode", "yolo")
        # PreCompress was called before each of these requests.
        found = self.compactions_so_far()
        self.checks.equal("where nothing was compacted there is no compaction", len(found), 0)
        self.stand_in.play(
            Step("The next part.", [shell("true")], tokens=OVER_LIMIT),
            Step("More of it.", [shell("pwd")]),
            Step("That part is done."),
        )
        self.say(story.GO_ON, "--approval-mode", "yolo", "--resume", "latest")
        requests = self.stand_in.requests
        # It requests a summary, and then a review of it.
        summaries = [at for at, request in enumerate(requests) if request.kind == SUMMARY]
        self.checks.equal("the compaction by the number of tokens is real", len(summaries), 2)
        early = [request for request in requests[: (summaries or [None])[0]] if has_brief(request)]
        self.checks.equal("nothing is handed back before it", len(early), 0)
        # The first hook after it that accepts a text for the model is the hook of a tool.
        after = [has_brief(request) for request in requests[summaries[-1] + 1 :]] if summaries else []
        self.checks.equal("the brief is in the request after the next tool", after, [False, True])
        self.stand_in.play(Step("All is done."))
        self.say(story.FURTHER, "--approval-mode", "yolo", "--resume", "latest")

    def add_precompress(self):
        """Adds the hook that an earlier forge installed. It is called before every request to the model."""
        path = self.scratch.root / self.file
        text = path.read_text()
        if "PreCompress" not in text:
            command = f"{self.scratch.root}/bin/forge hook gemini PreCompress"
            hook = {"hooks": [{"type": "command", "command": command, "timeout": 20000}]}
            path.write_text(text.replace('"hooks": {', f'"hooks": {{"PreCompress": [{json.dumps(hook)}],', 1))

    def look_at_commands(self, commands):
        super().look_at_commands(commands)
        self.look_at_background(commands)

    def rewrite(self):
        """Runs it in the mode that asks, which without a terminal means a refusal, and lets it write its settings."""
        self.stand_in.play(
            Step(calls=[Call("mcp_forge_brief", {})]),
            Step(calls=[shell("forge status")]),
            Step(calls=[shell("date +%Y > year.txt")]),
            Step("Asked and answered."),
        )
        before = len(self.stand_in.turns)
        self.say("What is known?", "--approval-mode", "default")
        answers = [tool_answer(request.body) for request in self.stand_in.turns[before + 1 :]]
        brief, status, date = [*answers, {}, {}, {}][:3]
        self.checks.that("forge's tools are not asked about", "output" in brief, brief)
        self.checks.that("forge's commands are not asked about", "output" in status, status)
        self.checks.that("what is on no list is asked about", "denied by policy" in str(date), date)
        offered = json.dumps(self.stand_in.turns[before].body["tools"])
        self.checks.that("what goes back is asked about", "mcp_forge_restore" not in offered)
        self.scratch.run("gemini", "mcp", "add", "--scope", "user", "other", "true")
        self.scratch.run("gemini", "mcp", "remove", "--scope", "user", "other")

    def parsed(self, settings):
        return without_comments(settings)


def shell(command: str, **more) -> Call:
    return Call("run_shell_command", {"command": command, "description": "Run it", **more})


def tool_answer(body: dict) -> dict:
    """The response of the last step's tool, as the client reports it: an output or an error."""
    parts = body["contents"][-1]["parts"]
    return next((part["functionResponse"]["response"] for part in parts if "functionResponse" in part), {})
