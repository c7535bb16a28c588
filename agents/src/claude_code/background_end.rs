//! Reads the ends of background tasks: commands and agents whose call returns before they end.
//!
//! Claude Code reports the end of a task in a notice (`<task-notification>`, in older clients
//! `<bash-notification>` and `<agent-notification>`). The notice is in a `user` line, in an
//! attachment or in the queue, often in several of these. The state of a task in an attachment, the
//! result of a tool that queries or stops a task, and the client's note that a person stopped
//! agents also report the end. Of a command the first report counts. Of an agent each report counts
//! that differs from the report before.

use super::agent::own_words;
use super::command::CommandRun;
use super::line_context::{PieceBuilder, fields};
use super::open_call::{CallRequest, OpenCall};
use super::tool_result::ClaudeCallResult;
use super::transcript_state::{BackgroundCommand, SubAgentState, TranscriptState};
use super::typed_text::{stopped_agents, text_in_tag, typed_part};
use crate::lenient::{LenientId, LenientInteger, LenientText};
use forge_store::model::{FieldMap, Value};
use serde::Deserialize;
use std::ops::Range;

/// Tools that query a background task.
const TASK_QUERY_TOOLS: [&str; 5] =
    ["TaskOutput", "BashOutput", "AgentOutputTool", "AgentOutput", "BashOutputTool"];
/// Tools that stop a background task.
const TASK_STOP_TOOLS: [&str; 3] = ["TaskStop", "KillShell", "KillBash"];
/// The fields in which such a tool is given the id of the task.
const TASK_FIELDS: [&str; 4] = ["task_id", "bash_id", "shell_id", "agentId"];
/// The tags of the ids of tasks in notices.
const TASK_TAGS: [&str; 3] = ["task-id", "shell-id", "agent-id"];
/// The beginning of a mark among these ids that names no task.
const NO_TASK: &str = "__orphan_summary";
/// Parts of the summary about a task of the session before whose end the client does not know.
const LOST: [&str; 2] = ["No completion record was found", "have no completion record"];
/// A part of the summary about a task that was stopped together with the session before.
const LEFT_BEHIND: &str = "finish before the previous session ended";
/// The beginnings of the tags of notices.
const NOTIFIERS: [&str; 3] = ["<task", "<bash", "<agent"];
/// The elements with an output or a result in the text that such a tool returns.
const OUTPUTS: [&str; 2] = ["output", "stdout"];
/// The beginning of the result of an agent that has handed back its report in a message.
const HANDED_BACK: &str = "This agent's report was delivered to you as a message from ";
/// The pointer to what a command printed as errors.
const STDERR: &str = "/toolUseResult/stderr";
/// The end of the tags of all notices.
const NOTICE: &str = "-notification>";

/// What a notice, an attachment or a tool's result says about a background task.
#[derive(Debug, Default)]
struct TaskEnd<'t> {
    task: Option<&'t str>,
    call: Option<&'t str>,
    status: Option<&'t str>,
    summary: &'t str,
    exit_code: Option<i64>,
    /// Whether the client explains the exit code, so that a code other than 0 may be no failure.
    interpreted: bool,
    duration_ms: Option<i64>,
    tokens: Option<i64>,
    output_file: Option<&'t str>,
    /// The result of the agent or the output of the command.
    result: Option<TextPart<'t>>,
    /// What the command printed as errors.
    stderr: Option<&'t str>,
}

/// A text, a range in the text, and the pointer to the text.
type TextPart<'t> = (&'t str, Range<usize>, &'t str);

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TaskQueryResult<'a> {
    task: QueriedTask<'a>,
    #[serde(alias = "shellId", alias = "task_id")]
    shell_id: LenientId,
    status: LenientText<'a>,
    #[serde(alias = "exitCode")]
    exit_code: LenientInteger,
    stdout: LenientText<'a>,
    stderr: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct QueriedTask<'a> {
    #[serde(alias = "taskId", alias = "agentId")]
    task_id: LenientId,
    status: LenientText<'a>,
    #[serde(alias = "exitCode")]
    exit_code: LenientInteger,
    output: LenientText<'a>,
    result: LenientText<'a>,
}

impl PieceBuilder<'_> {
    /// Reads the notices in a text. `pointer` is the pointer to the text.
    pub(super) fn notices(&mut self, text: &str, pointer: &str) {
        if let Some(descriptions) = stopped_agents(text.trim()) {
            self.agents_stopped(&descriptions);
        }
        if let Some((agent, report)) = handed_back(text) {
            let shown = self.part(text, report.clone(), pointer);
            if let Some(state) = self.carry.agents.get_mut(agent) {
                // The notice of the end does not repeat the report.
                state.fields.insert("result".to_owned(), shown);
            }
            let words = text.get(report).unwrap_or_default();
            self.agent_reported(agent, ("completed", words), FieldMap::new());
        }
        for notice in notices(text) {
            let part = text.get(notice.clone()).unwrap_or_default();
            let summary = text_in_tag(part, "summary").unwrap_or_default().trim();
            let name = |tag| text_in_tag(part, tag).map(str::trim).filter(|name| !name.is_empty());
            let result =
                part.find("<result>").zip(part.rfind("</result>")).and_then(|(from, to)| {
                    let from = notice.start + from + "<result>".len();
                    let range = from..notice.start + to;
                    (range.start <= range.end).then_some((text, range, pointer))
                });
            // The result of an agent, or a line that a program printed, may contain the same tags.
            let head = part.split("<result>").next().unwrap_or(part);
            let head = head.split("<event>").next().unwrap_or(head);
            // The summary may quote a description with these tags.
            let tasks = task_ids(head.split("<summary>").next().unwrap_or(head));
            let mut end = TaskEnd {
                task: None,
                // A notice about several tasks cannot be about one call.
                call: name("tool-use-id").filter(|_| tasks.len() < 2),
                status: text_in_tag(head, "status")
                    .map(str::trim)
                    .filter(|status| !status.is_empty())
                    .or_else(|| status_in(summary)),
                summary,
                exit_code: exit_code(summary).map(|(code, _)| code),
                interpreted: exit_code(summary).is_some_and(|(_, interpreted)| interpreted),
                duration_ms: name("duration_ms").and_then(|number| number.parse().ok()),
                tokens: name("subagent_tokens")
                    .or_else(|| name("total_tokens"))
                    .and_then(|number| number.parse().ok()),
                output_file: name("output-file"),
                result,
                stderr: None,
            };
            if tasks.is_empty() {
                self.end(&end);
            }
            for task in tasks {
                end.task = Some(task);
                self.end(&end);
            }
        }
    }

    /// Reads the state of a task in an attachment.
    pub(super) fn task_state(&mut self, task: Option<&str>, status: Option<&str>) {
        self.end(&TaskEnd { task, status, ..TaskEnd::default() });
    }

    /// Reads the result of a tool that queries or stops background tasks.
    pub(super) fn background_task_result(
        &mut self,
        call: &OpenCall,
        answer: &ClaudeCallResult<'_>,
    ) {
        let tool = call.tool.as_str();
        let (queries, stops) = (TASK_QUERY_TOOLS.contains(&tool), TASK_STOP_TOOLS.contains(&tool));
        if answer.error || !(queries || stops) {
            return;
        }
        let queried: TaskQueryResult<'_> = answer.object();
        // What the command printed may contain the same tags.
        let head = answer.shown_to_agent.as_ref().and_then(|(text, _)| {
            let before_output = text.split("<output>").next()?;
            before_output.split("<stdout>").next()
        });
        let named = |tag| text_in_tag(head?, tag).map(str::trim);
        let task = queried.task.task_id.0.as_deref().or(queried.shell_id.0.as_deref());
        let status = if stops {
            Some("killed")
        } else {
            queried.task.status.text().or(queried.status.text()).or_else(|| named("status"))
        };
        let exit_code = queried.task.exit_code.0.or(queried.exit_code.0);
        let exit_code = exit_code.or_else(|| named("exit_code")?.parse().ok());
        let texts = [
            (queried.task.result.text(), "/toolUseResult/task/result"),
            (queried.task.output.text(), "/toolUseResult/task/output"),
            (queried.stdout.text(), "/toolUseResult/stdout"),
        ];
        let result = texts.into_iter().find_map(|(text, pointer)| {
            let text = text?;
            Some((text, 0..text.len(), pointer))
        });
        let shown = answer.shown_to_agent.as_ref().filter(|_| status != Some("running"));
        let result = result.or_else(|| shown.and_then(|(text, at)| shown_output(text, at)));
        let stderr = queried.stderr.text();
        let task = task.or_else(|| named("task_id")).or_else(|| asked_task(call));
        self.end(&TaskEnd { task, status, exit_code, result, stderr, ..TaskEnd::default() });
    }

    fn end(&mut self, end: &TaskEnd<'_>) {
        let Some(status) = end.status else { return };
        let background = &self.carry.claude.background;
        let found = end.call.filter(|call| background.contains_key(*call)).map(str::to_owned);
        let call = found.or_else(|| {
            let task = end.task?;
            let of_task =
                |(_, ran): &(&String, &BackgroundCommand)| ran.task.as_deref() == Some(task);
            // Older clients count the tasks from 1 again in a resumed session.
            let found = background.iter().filter(of_task).max_by_key(|(_, ran)| ran.called_at);
            found.map(|(call, _)| call.clone())
        });
        if let Some(call) = call {
            self.command_ended(&call, end, status);
        } else if let Some(agent) = agent(self.carry, end) {
            // The client can also name agents whose end it has reported.
            let ended = self.carry.agents.get(&agent).is_some_and(SubAgentState::has_ended);
            if ended && (is_lost(end.summary) || end.summary.contains(LEFT_BEHIND)) {
                return;
            }
            let waits = end.summary.ends_with("is waiting on its own background work");
            let status = match status {
                "completed" if waits => "running",
                "failed" | "stopped" if is_lost(end.summary) => "unknown",
                "stopped" => "killed",
                other => other,
            };
            let result = end.result.as_ref().filter(|(text, range, _)| {
                let words = text.get(range.clone()).unwrap_or_default();
                !words.is_empty() && !words.trim_start().starts_with(HANDED_BACK)
            });
            let text = result.and_then(|(text, range, _)| text.get(range.clone()));
            let shown =
                result.map(|(text, range, pointer)| self.part(text, range.clone(), pointer));
            let more = fields([
                ("result", shown.into()),
                ("duration_ms", end.duration_ms.into()),
                ("tokens", end.tokens.into()),
            ]);
            self.agent_reported(&agent, (status, text.unwrap_or_default()), more);
        }
    }

    fn command_ended(&mut self, call: &str, end: &TaskEnd<'_>, status: &str) {
        let outcome = match status {
            "failed" | "stopped" if is_lost(end.summary) => "unknown",
            "completed" if end.exit_code.is_some_and(|code| code != 0) && !end.interpreted => {
                "failed"
            }
            "completed" => "finished",
            "failed" => "failed",
            "killed" | "stopped"
                if after_description(end.summary).is_some_and(|end| end.contains("time limit")) =>
            {
                "timed_out"
            }
            "killed" | "stopped" => "interrupted",
            _ => return,
        };
        let background = &mut self.carry.claude.background;
        let Some(known) = background.get_mut(call) else { return };
        let repeated = std::mem::replace(&mut known.ended, true) && end.exit_code.is_none();
        if repeated {
            return;
        }
        let ran = known.clone();
        // A later report may have the exit code.
        if end.exit_code.is_some() || !matches!(outcome, "finished" | "failed" | "unknown") {
            background.remove(call);
        }
        let printed = end.result.as_ref().and_then(|(text, range, pointer)| {
            Some((text.get(range.clone())?, self.part(text, range.clone(), pointer)))
        });
        let more = fields([
            ("working_dir", ran.cwd.into()),
            ("called_at", ran.called_at.to_string().into()),
            ("background_task", ran.task.into()),
            ("output_file", end.output_file.into()),
            ("stdout_preview", printed.as_ref().map(|(_, shown)| shown.clone()).into()),
            ("stderr_preview", end.stderr.map(|text| self.text(text, STDERR)).into()),
        ]);
        let output = [printed.map(|(text, _)| text), end.stderr];
        let output = output.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let done = CommandRun {
            command: ran.command,
            description: ran.description,
            exit_code: end.exit_code,
            outcome,
            more,
            output: &output,
            verification: ran.verification.as_ref(),
            commits: ran.commit && outcome == "finished",
        };
        // The command belongs to the agent that called it, not to the one of this line.
        let agent = std::mem::replace(&mut self.line.agent, ran.agent);
        self.push_command_run(call, done);
        self.line.agent = agent;
    }
}

/// Returns the agent that hands back its report in a message, and the range of the report. The
/// client indents the report, so that no line of it can end the message.
fn handed_back(text: &str) -> Option<(&str, Range<usize>)> {
    let (before, rest) = text.split_once("<agent-message from=\"")?;
    if typed_part(before).is_some() && typed_part(text).is_some() {
        // A person quotes such a message.
        return None;
    }
    let (agent, rest) = rest.split_once('"')?;
    let inside = rest.split_once('>')?.1.trim_start();
    let start = text.len() - inside.len();
    let (body, _) = inside.split_once("\n</agent-message>")?;
    let words = own_words(body.trim_end());
    let report = start + words.start..start + words.end;
    (words.start > 0 && !words.is_empty()).then_some((agent, report))
}

/// Returns the output in the text that a query returned; `pointer` is the pointer to the text.
fn shown_output<'t>(text: &'t str, pointer: &'t str) -> Option<TextPart<'t>> {
    let found = OUTPUTS.iter().filter_map(|tag| Some((text.find(&format!("<{tag}>"))?, *tag)));
    let (at, tag) = found.min()?;
    let start = at + tag.len() + "<>".len();
    let end = text.rfind(&format!("</{tag}>")).filter(|end| *end >= start).unwrap_or(text.len());
    let inside = text.get(start..end)?;
    let start = start + inside.len() - inside.trim_start_matches('\n').len();
    let range = start..start + inside.trim_matches('\n').len();
    (!range.is_empty()).then_some((text, range, pointer))
}

/// Returns the id of the task that a call queries or stops.
fn asked_task(call: &OpenCall) -> Option<&str> {
    let CallRequest::Tool { fields } = &call.request else { return None };
    let input = fields.get("input")?;
    TASK_FIELDS.iter().find_map(|name| input.field(name)?.as_text())
}

/// Returns the id of the agent that a report is about, if the agent is known.
fn agent(carry: &TranscriptState, end: &TaskEnd<'_>) -> Option<String> {
    let agents = &carry.agents;
    if let Some(task) = end.task.filter(|task| agents.contains_key(*task)) {
        return Some(task.to_owned());
    }
    let call = Value::from(end.call?);
    agents.iter().find(|(_, state)| state.is_of(&call)).map(|(agent, _)| agent.clone())
}

/// Returns the ranges of the notices in a text. A notice without its closing tag extends to the end
/// of the text.
fn notices(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(length) = text.get(from..).and_then(|rest| rest.find(NOTICE)) {
        let end = from + length + NOTICE.len();
        let before = text.get(from..from + length).unwrap_or_default();
        from = end;
        let Some(who) = NOTIFIERS.iter().find(|who| before.ends_with(**who)) else { continue };
        let start = end - NOTICE.len() - who.len();
        let closing = format!("</{}{NOTICE}", who.trim_start_matches('<'));
        let length = text.get(end..).and_then(|rest| rest.find(&closing));
        from = length.map_or(text.len(), |length| end + length + closing.len());
        found.push(start..from);
    }
    found
}

/// Returns the ids of the tasks that a notice names. A resumed session has one notice for several
/// tasks of the session before.
fn task_ids(notice: &str) -> Vec<&str> {
    for tag in TASK_TAGS {
        let (opening, closing) = (format!("<{tag}>"), format!("</{tag}>"));
        let rests = notice.split(opening.as_str()).skip(1);
        let ids = rests.filter_map(|rest| rest.split_once(closing.as_str())).map(|(id, _)| id);
        let named = |id: &&str| !id.is_empty() && !id.starts_with(NO_TASK);
        let ids: Vec<&str> = ids.map(str::trim).filter(named).collect();
        if !ids.is_empty() {
            return ids;
        }
    }
    Vec::new()
}

/// Whether a summary says that the client does not know how a task of the session before ended.
fn is_lost(summary: &str) -> bool {
    // A description in quotes may contain such words.
    let end = after_description(summary).unwrap_or(summary);
    summary.starts_with(LOST[0]) || LOST.iter().any(|words| end.contains(words))
}

/// Returns the part of a summary after the quoted description of the command. The description is
/// skipped because it may also name an exit code.
fn after_description(summary: &str) -> Option<&str> {
    let (_, end) = summary.rsplit_once('"')?;
    Some(end.trim_start())
}

/// Returns the exit code in "... failed with exit code 3" or "... completed (exit code 0)", and
/// whether the client explains the code, as in "(exit code 1: No matches found)".
fn exit_code(summary: &str) -> Option<(i64, bool)> {
    let (_, rest) = after_description(summary)?.split_once("exit code ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let (code, after) = rest.split_at(end);
    Some((code.parse().ok()?, after.starts_with(':')))
}

/// Returns the status in a summary, for a notice without a status field.
fn status_in(summary: &str) -> Option<&'static str> {
    let end = after_description(summary)?;
    [
        ("completed", "completed"),
        ("finished", "completed"),
        ("failed", "failed"),
        ("was stopped", "killed"),
        ("was killed", "killed"),
    ]
    .iter()
    .find_map(|(word, status)| end.starts_with(word).then_some(*status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_read_from_the_summary() {
        for (summary, expected) in [
            ("Background command \"Run\" failed with exit code 101", Some((101, false))),
            ("Background command \"exit code 9\" completed (exit code 0)", Some((0, false))),
            (
                "Background command \"grep\" completed (exit code 1: No matches found)",
                Some((1, true)),
            ),
            ("Background command \"x\" was stopped", None),
            ("Background command \"check exit code 0 of cargo\" failed", None),
            (
                "Background command \"say \"exit code 0\" twice\" failed with exit code 2",
                Some((2, false)),
            ),
            ("the check of exit code 0 failed", None),
        ] {
            assert_eq!(exit_code(summary), expected, "{summary}");
        }
        assert_eq!(status_in("Background command \"x\" is still running after 5 min"), None);
        assert_eq!(status_in("Background command \"was stopped\" completed"), Some("completed"));
    }

    #[test]
    fn several_notices_in_a_text_are_distinguished() {
        let text = "<task-notification>a</task-notification>\n<bash-notification>b</bash-notification> <task-notification>";
        let found: Vec<_> = notices(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], "<bash-notification>b</bash-notification>");
    }
}
