"""Claude Code, run with its stream of JSON on stdin and stdout."""

import json

import story
from client import Client
from process import Child
from protocols import SUB_AGENT_PROMPT, Messages
from scratch import FIXED
from stand_in import SUMMARY, Call, Step

ASKED = "Have another agent look"
# The text with which forge's hook tells the summariser what to keep begins with this.
KEEP = "Keep these in the summary"
YEAR = "date +%Y > year.txt"
PERSONS_RULE = "Bash(date *)"
PERSONS_SETTINGS = """{
    "permissions": {"allow": ["Bash(ls *)"]},
    "includeCoAuthoredBy": false
}
"""
# The client compacts before the next request when one had more tokens than its window.
WINDOW = 100_000
OVER_LIMIT = 120_000


class ClaudeCode(Client):
    name = "claude"
    service = Messages
    file = "project/.claude/settings.local.json"
    page = "project/CLAUDE.local.md"
    events = {
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SessionEnd",
    }
    prompts = [story.PROMPT, story.TYPED, story.GO_ON, "/compact", story.FURTHER]
    compactions = 2

    def furnish(self):
        self.scratch.env.update(
            ANTHROPIC_BASE_URL=self.stand_in.server.url,
            ANTHROPIC_API_KEY="sk-ant-api03-stand-in",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
            # Otherwise it refuses to skip permissions for root.
            IS_SANDBOX="1",
        )
        self.scratch.write(self.file, PERSONS_SETTINGS)

    def is_setting(self, name):
        return name in (
            "home/.claude.json",
            "home/.claude/settings.json",
            "home/.claude/CLAUDE.md",
            "project/.claude/settings.local.json",
            "project/.claude/settings.json",
            "project/.mcp.json",
            "project/CLAUDE.local.md",
            "project/CLAUDE.md",
        )

    def start(self, *options: str) -> Child:
        streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        command = ["claude", "-p", "--model", "claude-sonnet-4-5", *streams, *options]
        return Child(command, env=self.scratch.env, cwd=self.scratch.project, log=self.scratch.log)

    def work(self):
        client = self.start("--dangerously-skip-permissions", "--autocompact", str(WINDOW))
        try:
            self.first_turn(client)
            self.compacted_by_tokens(client)
            self.compacted_by_command(client)
            client.close_input()
            client.wait(30)
        finally:
            client.kill()

    def first_turn(self, client):
        calc = str(self.scratch.project / "calc.py")
        self.stand_in.play(
            Step("I suspect that the rounding is done twice.", [shell(story.CHECK)]),
            Step(calls=[shell(story.ADD_HYPOTHESIS)]),
            Step(calls=[Call("Read", {"file_path": calc})]),
            Step(calls=[Call("Write", {"file_path": calc, "content": FIXED})]),
            Step(calls=[shell(story.BACKGROUND, run_in_background=True)]),
            Step(calls=[shell(story.UNLISTED)]),
            Step(calls=[shell("sleep 3")]),
            Step("calc.py is fixed."),
        )
        say(client, story.PROMPT)
        # Typed while the last command runs.
        client.next_json(lambda line: "sleep 3" in json.dumps(line), 180)
        say(client, story.TYPED)
        client.next_json(is_result, 180)

    def compacted_by_tokens(self, client):
        self.stand_in.play(
            Step("The next part.", [shell("true")], tokens=OVER_LIMIT),
            Step("That part is done."),
        )
        say(client, story.GO_ON)
        client.next_json(is_result, 180)
        self.look_at_brief("a compaction by the number of tokens", 1)

    def compacted_by_command(self, client):
        say(client, "/compact")
        client.next_json(is_result, 180)
        self.stand_in.play(Step("All is done."))
        say(client, story.FURTHER)
        client.next_json(is_result, 180)
        self.look_at_brief("a compaction by command", 2)
        for request in self.stand_in.requests:
            if request.kind == SUMMARY:
                self.checks.that("the summariser is told what to keep", KEEP in json.dumps(request.body), request.body)

    def look_at_commands(self, commands):
        super().look_at_commands(commands)
        self.look_at_background(commands)

    def more(self):
        """Lets the agent start a sub-agent, which ends in the background: the client then starts a turn of its own."""
        agent = {"description": "Look", "prompt": SUB_AGENT_PROMPT, "subagent_type": "general-purpose"}
        self.stand_in.play(
            Step(calls=[Call("Agent", agent)]),
            Step("It is on its way."),
            Step("It has looked."),
        )
        self.stand_in.steps_of_sub_agent += [Step(calls=[shell("sleep 2")]), Step("In calc.py.")]
        client = self.start("--dangerously-skip-permissions")
        try:
            say(client, ASKED)
            thread = client.next_json(is_result, 180)["session_id"]
            client.next_json(is_result, 180)
            client.close_input()
            client.wait(30)
        finally:
            client.kill()
        called = self.scratch.project / ".forge/log/hooks.jsonl"
        for event in ("SubagentStart", "SubagentStop"):
            self.checks.that(f"a sub-agent: {event} is called", f'"{event}"' in called.read_text())
        session = self.session_of("a sub-agent", thread)
        if session is None:
            return
        prompts = [one["text"] for one in self.listed(session, "prompt", "prompts")]
        self.checks.equal("a sub-agent: what tells of its end is no prompt", prompts, [ASKED])
        ends = [(one["status"], one["result"]) for one in self.listed(session, "agent", "agents")]
        self.checks.equal("a sub-agent ends as it ended", ends, [("completed", "In calc.py.")])

    def rewrite(self):
        """Runs it with permission prompts. The client saves what the person allows permanently."""
        client = self.start("--permission-prompt-tool", "stdio")
        try:
            self.stand_in.play(
                Step(calls=[shell("forge status")]),
                Step(calls=[Call("ToolSearch", {"query": "select:mcp__forge__brief,mcp__forge__restore"})]),
                Step(calls=[Call("mcp__forge__brief", {})]),
                Step(calls=[Call("mcp__forge__restore", {"moment": "start"})]),
                Step(calls=[shell(YEAR)]),
                Step("Asked and answered."),
            )
            say(client, "What is known?")
            asked = self.answer_questions(client)
            client.close_input()
            client.wait(30)
        finally:
            client.kill()
        self.checks.equal("only what is on no list is asked about", asked, ["mcp__forge__restore", YEAR])
        results = tool_results(self.stand_in.turns[-1].body)
        errors = [bool(result.get("is_error")) for result in results]
        self.checks.that("the others are done", errors == [False, False, False, True, False], results)

    def answer_questions(self, client) -> list[str]:
        asked = []
        while True:
            line = client.next_json(lambda line: is_result(line) or line.get("type") == "control_request", 180)
            if is_result(line):
                return asked
            request = line["request"]
            if request["subtype"] != "can_use_tool":
                error = {"subtype": "error", "request_id": line["request_id"], "error": "not done here"}
                client.write_json({"type": "control_response", "response": error})
                continue
            asked.append(request["input"].get("command") or request["tool_name"])
            answer = self.permission(request["input"])
            response = {"subtype": "success", "request_id": line["request_id"], "response": answer}
            client.write_json({"type": "control_response", "response": response})

    @staticmethod
    def permission(arguments: dict) -> dict:
        """The person allows this command permanently, and nothing else."""
        if arguments.get("command") != YEAR:
            return {"behavior": "deny", "message": "No."}
        update = {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "date *"}],
            "behavior": "allow",
            "destination": "localSettings",
        }
        return {"behavior": "allow", "updatedInput": arguments, "updatedPermissions": [update]}

    def parsed(self, settings):
        return json.loads(settings)

    def rewritten(self, settings):
        settings["permissions"]["allow"].append(PERSONS_RULE)


def shell(command: str, **more) -> Call:
    return Call("Bash", {"command": command, "description": "Run it", **more})


def tool_results(body: dict) -> list[dict]:
    blocks = [
        block for message in body["messages"] for block in message["content"] if isinstance(block, dict)
    ]
    return [block for block in blocks if block["type"] == "tool_result"]


def say(client: Child, text: str):
    client.write_json({"type": "user", "message": {"role": "user", "content": text}})


def is_result(line: dict) -> bool:
    return line.get("type") == "result"
