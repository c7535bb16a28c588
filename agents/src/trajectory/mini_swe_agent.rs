//! Trajectories of mini-swe-agent: one JSON document with the messages of a run.
//!
//! Since version 2 (`mini-swe-agent-1.1`) a message has its data next to its text: the commands
//! that were run, their return codes, the time. In earlier versions, a command is the only block of
//! code in a message of the agent, and its result is the next message.

use super::{
    EndedCommand, NotATrajectory, StepMoment, TrajectoryAuthor, TrajectoryDocument, TrajectoryRun,
    micros,
};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{fields, flag};
use crate::lenient::{LenientId, LenientInteger, LenientText, field, object, objects};
use crate::long_text;
use crate::piece::TranscriptPiece;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

const AUTHOR: TrajectoryAuthor = TrajectoryAuthor::MiniSweAgent;
/// The texts by which the last command submits the result. No message contains its output.
const SUBMITS: &[&str] = &["COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"];
/// Beginnings of messages with what a person typed.
const INTERRUPTION: &str = "Interrupted by user: ";
const NEW_TASK: &str = "The user added a new task: ";
/// The text of an interruption without a comment.
const NO_COMMENT: &str = "Temporary interruption caught.";
/// The error in the result of each command after the point where the run was interrupted.
const NOT_EXECUTED: &str = "action was not executed";

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniSweTrajectory<'a> {
    messages: Option<&'a RawValue>,
    info: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniSweSummary<'a> {
    submission: LenientText<'a>,
    exit_status: LenientText<'a>,
    config: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniSweMessage<'a> {
    role: LenientText<'a>,
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    content: Option<&'a RawValue>,
    /// The content in messages of newer model interfaces.
    output: Option<&'a RawValue>,
    reasoning_content: LenientText<'a>,
    tool_call_id: LenientId,
    call_id: LenientId,
    timestamp: Option<&'a RawValue>,
    extra: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct MiniSweExtra<'a> {
    actions: Option<&'a RawValue>,
    raw_output: LenientText<'a>,
    returncode: LenientInteger,
    exception_info: LenientText<'a>,
    exception_type: LenientText<'a>,
    exit_status: LenientText<'a>,
    interrupt_type: LenientText<'a>,
    timestamp: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
}

impl<'a> MiniSweExtra<'a> {
    /// Returns the data of a message. Version 1 names the kind of an interruption only in the text,
    /// never in that of the task.
    fn of(message: &MiniSweMessage<'a>, is_task: bool) -> Self {
        const KINDS: &[(&str, &str)] = &[
            ("Command not executed. ", "UserRejection"),
            (INTERRUPTION, "UserInterruption"),
            (NEW_TASK, "UserNewTask"),
        ];
        let mut extra: Self = object(message.extra);
        let only_text = message.role.text() == Some("user") && message.extra.is_none();
        if only_text && !is_task {
            let (text, _) = long_text::content_text(message.content, "").unwrap_or_default();
            let kind = KINDS.iter().find(|(begin, _)| text.starts_with(begin));
            extra.interrupt_type = LenientText(kind.map(|(_, kind)| (*kind).into()));
        }
        extra
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MiniSweAction<'a> {
    #[serde(borrow)]
    command: LenientText<'a>,
    tool_call_id: LenientId,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelResponse {
    model: LenientId,
    usage: Option<MiniSweTokenUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MiniSweTokenUsage {
    prompt_tokens: LenientInteger,
    completion_tokens: LenientInteger,
    input_tokens: LenientInteger,
    output_tokens: LenientInteger,
}

/// A command that waits for its result.
struct PendingCommand<'a> {
    id: String,
    call: Option<String>,
    line: Cow<'a, str>,
    command: Value,
    moment: StepMoment,
}

pub(super) fn read(
    document: &TrajectoryDocument<'_>,
    started_at: Timestamp,
    recorded_at: Timestamp,
) -> Result<TranscriptPiece, NotATrajectory> {
    if !document.starts_with(b'{') {
        return Err(NotATrajectory::unlike(AUTHOR, "no object"));
    }
    let json = document.json();
    let whole: MiniSweTrajectory<'_> =
        serde_json::from_str(&json).map_err(|why| NotATrajectory::new(AUTHOR, why))?;
    if !whole.messages.is_some_and(|raw| raw.get().starts_with('[')) {
        return Err(NotATrajectory::unlike(AUTHOR, "no list 'messages'"));
    }
    let messages: Vec<(usize, MiniSweMessage<'_>)> = objects(whole.messages);
    if messages.iter().all(|(_, message)| message.role.text().is_none()) && !messages.is_empty() {
        return Err(NotATrajectory::unlike(AUTHOR, "no message with a role"));
    }
    let about: MiniSweSummary<'_> = object(whole.info);
    let LenientId(template) = field(field(about.config, "agent"), "instance_template");
    let LenientId(cwd) = field(field(about.config, "environment"), "cwd");
    let mut reading = MiniSweReader {
        run: TrajectoryRun::new(recorded_at),
        waiting: VecDeque::new(),
        template: template.unwrap_or_default(),
        place: document.place(),
        prompted: false,
        stopped_by: None,
    };
    reading.run.carry.session.cwd = cwd;
    let task = messages.iter().position(|(_, message)| message.role.text() == Some("user"));
    let extras: Vec<MiniSweExtra<'_>> = messages
        .iter()
        .enumerate()
        .map(|(number, (_, message))| MiniSweExtra::of(message, Some(number) == task))
        .collect();
    let recorded =
        messages.iter().zip(&extras).find_map(|((_, message), extra)| time(message, extra));
    let mut moment = StepMoment {
        at: recorded.unwrap_or(started_at),
        number: 0,
        place: reading.place,
        synthetic: true,
    };
    for (number, ((index, message), extra)) in messages.iter().zip(&extras).enumerate() {
        if extra.exception_info.text() == Some(NOT_EXECUTED) && reading.stopped_by.is_none() {
            let later = extras.get(number..).unwrap_or_default();
            reading.stopped_by = Some(outcome_of_stopped(later));
        }
        let at = time(message, extra);
        moment.number += 1;
        moment.synthetic = at.is_none();
        moment.at = match (at, recorded) {
            (Some(at), _) => at,
            (None, Some(_)) => moment.at,
            (None, None) => moment.at.plus_micros(1_000_000),
        };
        reading.message(&moment, *index, message, extra);
    }
    moment.number += 1;
    reading.hand_in(&moment, &about);
    let mut piece = reading.run.piece(document.hash(), started_at);
    if let (None, Some(session)) = (recorded, &mut piece.session) {
        session.started_at = Some(started_at);
    }
    Ok(piece)
}

/// Returns the outcome of the command at which a run stopped: the first of those that have the
/// error [`NOT_EXECUTED`]. The message after their results says why it stopped.
fn outcome_of_stopped(later: &[MiniSweExtra<'_>]) -> &'static str {
    let mut later = later.iter();
    let next = later.find(|extra| extra.exception_info.text() != Some(NOT_EXECUTED));
    let Some(next) = next else { return REFUSED };
    match (next.interrupt_type.text(), next.exit_status.text()) {
        // Its output submitted the result.
        (Some("UserNewTask"), _) | (_, Some("Submitted")) => "finished",
        (Some("UserInterruption"), _) => "interrupted",
        (None, Some(_)) => "unknown",
        _ => REFUSED,
    }
}

/// Returns the time of a message, which is in seconds since 1970.
fn time(message: &MiniSweMessage<'_>, extra: &MiniSweExtra<'_>) -> Option<Timestamp> {
    let raw = extra.timestamp.or(message.timestamp)?;
    let seconds: f64 = serde_json::from_str(raw.get()).ok()?;
    (seconds > 0.0).then(|| Timestamp::from_micros(micros(seconds)))
}

struct MiniSweReader<'a> {
    run: TrajectoryRun,
    waiting: VecDeque<PendingCommand<'a>>,
    /// The template of the first user message; the task replaces `{{task}}`.
    template: String,
    place: long_text::SourceSpan,
    /// Whether the message with the task was read.
    prompted: bool,
    /// The outcome of the command at which the run stopped, from its result on until the next
    /// command.
    stopped_by: Option<&'static str>,
}

impl<'a> MiniSweReader<'a> {
    fn message(
        &mut self,
        moment: &StepMoment,
        index: usize,
        message: &MiniSweMessage<'a>,
        extra: &MiniSweExtra<'a>,
    ) {
        let id = format!("message-{}", index + 1);
        let base = format!("/messages/{index}");
        let content = long_text::content_text(message.content, "/content");
        let result = message.kind.text() == Some("function_call_output");
        let role = match message.role.text() {
            Some(role) => role,
            None if result => "tool",
            None => "assistant",
        };
        let actions: Vec<(usize, MiniSweAction<'_>)> = objects(extra.actions);
        let answers = extra.returncode.0.is_some()
            || role == "tool"
            || (role == "user"
                && content.as_ref().is_some_and(|(text, _)| MiniSweCommandEnd::is_result(text)));
        let typed =
            (role == "user" && !answers).then(|| self.typed(content.as_ref(), extra)).flatten();
        let response: ModelResponse = object(extra.response);
        let usage = response.usage.unwrap_or_default();
        let shown = |text: &str, pointer: &str| {
            long_text::value(text, self.place, || format!("{base}{pointer}"))
        };
        let text =
            content.as_ref().filter(|_| !answers).map(|(text, pointer)| shown(text, pointer));
        let thinking = message.reasoning_content.text();
        let thinking = thinking.map(|text| shown(text, "/reasoning_content"));
        let value = fields([
            ("role", role.into()),
            ("model", response.model.0.filter(|_| role == "assistant").into()),
            ("text", text.into()),
            ("thinking", thinking.into()),
            ("meta", flag(role == "user" && !answers && typed.is_none() && actions.is_empty())),
            ("input_tokens", usage.prompt_tokens.0.or(usage.input_tokens.0).into()),
            ("output_tokens", usage.completion_tokens.0.or(usage.output_tokens.0).into()),
        ]);
        self.run.fact(moment, Kind::Message, &id, value);
        if answers {
            return self.answer(moment, &base, message, extra);
        }
        match extra.interrupt_type.text() {
            Some("UserRejection") => self.refuse(moment, content.as_ref(), &base),
            Some("UserInterruption") => self.end_unanswered("interrupted"),
            // Only a command whose output submits the result ends so.
            Some("UserNewTask") => self.end_unanswered("finished"),
            _ => {}
        }
        if let (Some(range), Some((text, pointer))) = (typed, &content) {
            let words = text.get(range.clone()).unwrap_or_default();
            let value = long_text::part(text, range, self.place, || format!("{base}{pointer}"));
            self.run.prompt(moment, &id, words, value);
        }
        if actions.is_empty() && role == "assistant" && extra.actions.is_none() {
            self.open_command_in_text(moment, &id, &base, content);
        }
        if !actions.is_empty() {
            self.stopped_by = None;
            self.end_unanswered("unknown");
        }
        for (number, action) in actions {
            let Some(line) = action.command.0 else { continue };
            let pointer = format!("{base}/extra/actions/{number}/command");
            let command = long_text::value(&line, self.place, || pointer);
            let id = if number == 0 { id.clone() } else { format!("{id}/{}", number + 1) };
            let call = action.tool_call_id.0;
            let moment = moment.clone();
            self.waiting.push_back(PendingCommand { id, call, line, command, moment });
        }
    }

    /// Returns the range of what a person typed in a user message: the task, an interruption or a
    /// new task.
    fn typed(
        &mut self,
        content: Option<&(String, String)>,
        extra: &MiniSweExtra<'_>,
    ) -> Option<Range<usize>> {
        let (text, _) = content?;
        let after = |begin: &str| text.starts_with(begin).then_some(begin.len()..text.len());
        match extra.interrupt_type.text() {
            Some("UserInterruption") => {
                let typed = after(INTERRUPTION)?;
                return (text.get(typed.clone()) != Some(NO_COMMENT)).then_some(typed);
            }
            Some("UserNewTask") => return after(NEW_TASK),
            Some(_) => return None,
            None => {}
        }
        if self.prompted || extra.actions.is_some() {
            return None;
        }
        self.prompted = true;
        Some(task(text, &self.template).unwrap_or(0..text.len()))
    }

    /// Opens the command in a message's text: its only block of shell code.
    fn open_command_in_text(
        &mut self,
        moment: &StepMoment,
        id: &str,
        base: &str,
        content: Option<(String, String)>,
    ) {
        let Some((text, pointer)) = content else { return };
        let Some(range) = block(&text) else { return };
        self.end_unanswered("unknown");
        let line = text.get(range.clone()).unwrap_or_default().to_owned();
        let command = long_text::part(&text, range, self.place, || format!("{base}{pointer}"));
        let pending = PendingCommand {
            id: id.to_owned(),
            call: None,
            line: line.into(),
            command,
            moment: moment.clone(),
        };
        self.waiting.push_back(pending);
    }

    /// Closes the command that a result belongs to: the one that it names, or else the oldest open
    /// one without a name.
    fn answer(
        &mut self,
        moment: &StepMoment,
        base: &str,
        message: &MiniSweMessage<'a>,
        extra: &MiniSweExtra<'a>,
    ) {
        let call = message.tool_call_id.0.as_ref().or(message.call_id.0.as_ref());
        let called = |name: Option<&String>| {
            self.waiting.iter().position(|pending| pending.call.as_ref() == name)
        };
        let answered = call.and_then(|call| called(Some(call))).or_else(|| called(None));
        // Without a name, the results are in the order of the commands.
        let answered = answered.or_else(|| call.is_none().then_some(0));
        let Some(pending) = answered.and_then(|at| self.waiting.remove(at)) else { return };
        let content = long_text::content_text(message.content, "/content")
            .or_else(|| long_text::content_text(message.output, "/output"));
        let (text, pointer) = content.unwrap_or_default();
        let mut answer = MiniSweCommandEnd::read(&text, extra);
        if answer.outcome == REFUSED {
            answer.outcome = self.stopped_by.replace(REFUSED).unwrap_or(REFUSED);
        }
        let (output, pointer) = match extra.raw_output.text() {
            Some(text) => (text, "/extra/raw_output".to_owned()),
            None => (text.get(answer.output.clone()).unwrap_or_default(), pointer),
        };
        let whole = extra.raw_output.text().is_some() || answer.output == (0..text.len());
        let pointer = if whole {
            format!("{base}{pointer}")
        } else {
            format!("{base}{pointer}#{}-{}", answer.output.start, answer.output.end)
        };
        let reason = extra.exception_info.text().filter(|why| {
            answer.exit_code.is_none() && (answer.outcome == REFUSED || *why != NOT_EXECUTED)
        });
        let (output, pointer) = match reason {
            Some(reason) if answer.outcome == REFUSED => {
                (reason, format!("{base}/extra/exception_info"))
            }
            _ => (output, pointer),
        };
        let mut more = fields([
            ("called_at", called_at(&pending.moment).into()),
            ("reason", answer.signal.map(|signal| format!("signal {signal}")).into()),
        ]);
        if let (Some(reason), None) = (reason, answer.signal) {
            let at = format!("{base}/extra/exception_info");
            more.insert("reason".to_owned(), long_text::value(reason, self.place, || at));
        }
        self.end(moment, pending, answer.outcome, answer.exit_code, (output, &pointer), more);
    }

    fn end(
        &mut self,
        moment: &StepMoment,
        pending: PendingCommand<'_>,
        outcome: &'static str,
        exit_code: Option<i64>,
        output: (&str, &str),
        more: FieldMap,
    ) {
        let ended = EndedCommand {
            id: &pending.id,
            line: &pending.line,
            command: pending.command,
            outcome,
            exit_code,
            output,
            shell: true,
            more,
        };
        self.run.command(moment, ended);
    }

    /// Ends the waiting commands with this outcome. They get no result: the results follow their
    /// commands before the next command begins.
    fn end_unanswered(&mut self, outcome: &'static str) {
        while let Some(pending) = self.waiting.pop_front() {
            let at = pending.moment.clone();
            self.end(&at, pending, outcome, None, ("", ""), FieldMap::new());
        }
    }

    /// Records that the person refused the waiting commands.
    fn refuse(&mut self, moment: &StepMoment, content: Option<&(String, String)>, base: &str) {
        let (text, pointer) = content.cloned().unwrap_or_default();
        while let Some(pending) = self.waiting.pop_front() {
            let pointer = format!("{base}{pointer}");
            self.end(moment, pending, REFUSED, None, (&text, &pointer), FieldMap::new());
        }
    }

    /// Records the end of a run: the commands without a result, and the submission.
    fn hand_in(&mut self, moment: &StepMoment, about: &MiniSweSummary<'_>) {
        let submitted = about.exit_status.text() == Some("Submitted");
        while let Some(pending) = self.waiting.pop_front() {
            let submits = submitted && SUBMITS.iter().any(|it| pending.line.contains(it));
            let outcome = if submits { "finished" } else { "unknown" };
            let at = pending.moment.clone();
            self.end(&at, pending, outcome, None, ("", ""), FieldMap::new());
        }
        let moment = StepMoment { synthetic: true, ..moment.clone() };
        if let Some(patch) = about.submission.text().filter(|patch| patch.contains("diff --git ")) {
            let more = fields([("exit_status", about.exit_status.text().into())]);
            self.run.submission(&moment, "submission", (patch, "/info/submission"), more);
        }
    }
}

fn called_at(moment: &StepMoment) -> Option<String> {
    (!moment.synthetic).then(|| moment.at.to_string())
}

/// Returns the range of the task in the first message: between the texts before and after it in the
/// template. `None` if the message does not have the form of the template.
fn task(text: &str, template: &str) -> Option<Range<usize>> {
    let (before, after) =
        template.split_once("{{task}}").or_else(|| template.split_once("{{ task }}"))?;
    let before = before.trim_start();
    let start = text.find(before)? + before.len();
    let rest = text.get(start..)?;
    let next: &str = after.split("{{").next()?.split("{%").next()?;
    let end = if next.trim().is_empty() { rest.len() } else { rest.find(next)? };
    Some(start..start + end)
}

/// Returns the range of the command in a message: the text, without the space around it, of the
/// only block of shell code, which is fenced or an element.
fn block(text: &str) -> Option<Range<usize>> {
    const FENCE: &str = "\n```";
    const BLOCKS: &[(&str, &str)] = &[
        ("```bash", FENCE),
        ("```mswea_bash_command", FENCE),
        ("```sh", FENCE),
        ("<bash_code>", "</bash_code>"),
        ("<mswea_bash_command>", "</mswea_bash_command>"),
    ];
    let mut found: Vec<Range<usize>> = Vec::new();
    for (begin, end) in BLOCKS {
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(begin)) {
            from += at + begin.len();
            let rest = text.get(from..)?;
            // Only space can be on the line of a fence, as in "```bash" but not in "```shell".
            let after = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
            if *end == FENCE && !after.starts_with('\n') {
                continue;
            }
            let opened = if *end == FENCE { rest.len() - after.len() } else { 0 };
            let Some(body) = rest.get(opened..).and_then(|rest| rest.get(..rest.find(end)?)) else {
                break;
            };
            let start = from + opened + body.len() - body.trim_start().len();
            from += opened + body.len();
            if !body.trim().is_empty() {
                found.push(start..start + body.trim().len());
            }
        }
    }
    // A block inside another one is a part of its text.
    found.sort_by_key(|block| block.start);
    let mut blocks = found.into_iter();
    let first = blocks.next()?;
    blocks.all(|block| block.start < first.end).then_some(first)
}

/// How a command ended, parsed from its result.
struct MiniSweCommandEnd {
    outcome: &'static str,
    exit_code: Option<i64>,
    signal: Option<i64>,
    /// The range of the output in the text.
    output: Range<usize>,
}

impl MiniSweCommandEnd {
    /// Whether a user message is a result, for versions that do not mark results.
    fn is_result(text: &str) -> bool {
        let begin = text.trim_start();
        begin.starts_with("<returncode>")
            || (begin.starts_with("<exception>") && text.contains("<returncode>"))
            || (begin.starts_with("The last command <command>") && text.contains("timed out"))
    }

    fn read(text: &str, extra: &MiniSweExtra<'_>) -> Self {
        let all = 0..text.len();
        let inside = |begin: &str, end: &str| {
            let start = text.find(begin)? + begin.len();
            Some(start..start + text.get(start..)?.rfind(end)?)
        };
        let code = extra.returncode.0.or_else(|| {
            let code_text =
                inside("<returncode>", "</returncode>").and_then(|range| text.get(range))?;
            code_text.split('<').next()?.trim().parse().ok()
        });
        let output = inside("<output>", "</output>").unwrap_or(all);
        let error = text.trim_start().strip_prefix("<exception>");
        let error = error.and_then(|rest| Some(rest.split_once("</exception>")?.0));
        let why = extra.exception_info.text().or(error).unwrap_or_default();
        let timed_out = extra.exception_type.text() == Some("TimeoutExpired")
            || (why.contains(" timed out after "))
            || (text.trim_start().starts_with("The last command <command>")
                && text.contains("timed out"));
        let end = |outcome, exit_code, signal| Self {
            outcome,
            exit_code,
            signal,
            output: output.clone(),
        };
        match code {
            _ if why == NOT_EXECUTED => end(REFUSED, None, None),
            _ if timed_out => end("timed_out", None, None),
            _ if !why.is_empty() => end("failed", None, None),
            Some(0) => end("finished", code, None),
            Some(code) if code < 0 => end("failed", None, Some(-code)),
            Some(_) => end("failed", code, None),
            None => end("unknown", None, None),
        }
    }
}

#[cfg(test)]
mod tests;
