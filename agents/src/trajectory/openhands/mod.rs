//! Trajectories of OpenHands: its events, as one list or one per line.
//!
//! There are two forms. The events of the server have `action` or `observation`; an observation
//! names the action that it answers in `cause`. The events of the agent SDK have a `kind`; an
//! answer names its action in `action_id`. The list may be the document, or the `trajectory`,
//! `history` or `events` of an object. A time without a zone is read as UTC.

mod sdk;
mod server;
#[cfg(test)]
mod tests;

use super::edit::applied;
use super::{
    EndedCommand, NotATrajectory, StepMoment, TrajectoryAuthor, TrajectoryDocument, TrajectoryRun,
};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::fields;
use crate::lenient::{LenientId, LenientInteger, LenientText, object, parse_object};
use crate::long_text::{self, SourceSpan};
use crate::patch::EditDescription;
use crate::piece::TranscriptPiece;
use crate::text_hash::text_hash;
use crate::tool_use::input_fields;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const AUTHOR: TrajectoryAuthor = TrajectoryAuthor::OpenHands;

/// An event, with the fields that both forms share.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OpenHandsEvent<'a> {
    id: LenientId,
    timestamp: LenientText<'a>,
    source: LenientText<'a>,
    kind: LenientText<'a>,
    action: Option<&'a RawValue>,
    observation: Option<&'a RawValue>,
}

/// An object that holds a list of events.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct EventContainer<'a> {
    trajectory: Option<&'a RawValue>,
    history: Option<&'a RawValue>,
    events: Option<&'a RawValue>,
}

/// The metadata of the shell after a command.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShellMetadata {
    exit_code: LenientInteger,
    working_dir: LenientId,
}

/// The JSON of an event, the position of its document, and the pointer to the event there.
struct EventLocation<'a> {
    json: &'a RawValue,
    place: SourceSpan,
    base: String,
}

impl EventLocation<'_> {
    /// Returns a text of the event as the value of a fact. `pointer` leads to it from the event.
    fn text(&self, text: &str, pointer: &str) -> Value {
        long_text::value(text, self.place, || format!("{}{pointer}", self.base))
    }

    /// Returns the same as [`Self::text`] for a text that may be absent.
    fn optional_text(&self, text: Option<&str>, pointer: &str) -> Value {
        text.map(|text| self.text(text, pointer)).into()
    }

    /// Returns the same as [`Self::text`] for a text that was found with its pointer.
    fn found_text(&self, found: Option<&(String, String)>) -> Value {
        found.map(|(text, pointer)| self.text(text, pointer)).into()
    }
}

/// The request of a call.
enum OpenHandsRequest {
    Command {
        line: String,
        command: Value,
        working_dir: Option<String>,
    },
    /// Input for the running command, or a query of its output.
    Poll {
        stops: bool,
    },
    Edit {
        fields: FieldMap,
    },
    Tool {
        fields: FieldMap,
    },
    Agent {
        fields: FieldMap,
    },
    Tasks,
}

/// A call that waits for its answer.
struct OpenHandsOpenCall {
    moment: StepMoment,
    request: OpenHandsRequest,
    /// The id of the call, which differs from the id of its event.
    call: Option<String>,
}

/// The answer to a call.
#[derive(Default)]
struct OpenHandsCallResult<'a> {
    /// `finished`, `failed` or `refused`, or `unknown` without an answer. For a command that ended,
    /// `exit_code` decides between `finished` and `failed`.
    outcome: &'static str,
    text: &'a str,
    /// The pointer from the document to the text.
    pointer: String,
    exit_code: Option<i64>,
    working_dir: Option<String>,
    /// Whether waiting for the command ended while it still runs.
    goes_on: bool,
    timed_out: bool,
    /// The fields that the answer adds to an edit.
    edit: FieldMap,
    /// The new task list.
    tasks: Option<BTreeMap<String, FieldMap>>,
}

impl OpenHandsCallResult<'_> {
    /// Whether the answer to an edit says that nothing was changed. The editor reports this with
    /// the same observation as a success.
    fn refuses_edit(&self) -> bool {
        let unchanged = is_editor_error(self.text)
            || (!self.edit.contains_key("patch") && applied(self.text) == Some(false));
        self.outcome == "finished" && unchanged
    }
}

/// Whether an answer of the file editor is an error.
fn is_editor_error(answer: &str) -> bool {
    answer.trim_start().starts_with("ERROR:")
}

pub(super) fn read(
    document: &TrajectoryDocument<'_>,
    started_at: Timestamp,
    recorded_at: Timestamp,
) -> Result<TranscriptPiece, NotATrajectory> {
    let locations = locations(document)?;
    let mut reading = OpenHandsReader {
        run: TrajectoryRun::new(recorded_at),
        open: BTreeMap::new(),
        running: None,
        moment: StepMoment { at: started_at, number: 0, place: document.place(), synthetic: true },
        timed: false,
    };
    let mut known = 0_usize;
    for location in &locations {
        known += usize::from(reading.event(location));
    }
    if known == 0 {
        return Err(NotATrajectory::unlike(AUTHOR, "no event"));
    }
    reading.finish();
    // A longer save of the same run has the same first event.
    let first = locations.first().map_or("", |location| location.json.get());
    Ok(reading.run.piece(text_hash(first), started_at))
}

fn locations<'a>(
    document: &TrajectoryDocument<'a>,
) -> Result<Vec<EventLocation<'a>>, NotATrajectory> {
    let bad = |why| NotATrajectory::new(AUTHOR, why);
    let whole: Result<&RawValue, _> = serde_json::from_slice(document.bytes);
    let whole = match whole {
        Ok(whole) => whole,
        Err(why) => return by_line(document)?.ok_or_else(|| bad(why)),
    };
    let list = |raw: &'a RawValue, base: &str| -> Vec<EventLocation<'a>> {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        let place = document.place();
        let mut locations = Vec::new();
        for (index, json) in items.into_iter().enumerate() {
            let base = format!("{base}/{index}");
            // Early versions stored pairs of an action and its observation.
            if json.get().starts_with('[') {
                let pair: Vec<&RawValue> = serde_json::from_str(json.get()).unwrap_or_default();
                let pair = pair.into_iter().enumerate();
                locations.extend(pair.map(|(at, json)| EventLocation {
                    json,
                    place,
                    base: format!("{base}/{at}"),
                }));
            } else {
                locations.push(EventLocation { json, place, base });
            }
        }
        locations
    };
    if whole.get().starts_with('[') {
        return Ok(list(whole, ""));
    }
    if !whole.get().starts_with('{') {
        return Err(NotATrajectory::unlike(AUTHOR, "no list"));
    }
    let holder: EventContainer<'a> = serde_json::from_str(whole.get()).map_err(bad)?;
    Ok(match event_list(&holder) {
        Some((raw, base)) => list(raw, base),
        None => vec![EventLocation { json: whole, place: document.place(), base: String::new() }],
    })
}

/// Returns the list of events in an object, and the pointer to it.
fn event_list<'a>(holder: &EventContainer<'a>) -> Option<(&'a RawValue, &'static str)> {
    let lists = [
        (holder.trajectory, "/trajectory"),
        (holder.history, "/history"),
        (holder.events, "/events"),
    ];
    lists
        .into_iter()
        .find_map(|(raw, base)| Some((raw.filter(|raw| raw.get().starts_with('['))?, base)))
}

/// Reads one event per line. Other lines are skipped; `None` if there is no event.
///
/// # Errors
///
/// If a line contains a whole run.
fn by_line<'a>(
    document: &TrajectoryDocument<'a>,
) -> Result<Option<Vec<EventLocation<'a>>>, NotATrajectory> {
    let mut offset = document.offset;
    let mut locations = Vec::new();
    for line in document.bytes.split_inclusive(|byte| *byte == b'\n') {
        let begin = line.len() - line.trim_ascii_start().len();
        let text = line.trim_ascii();
        if text.starts_with(b"{")
            && let Ok(json) = serde_json::from_slice::<&RawValue>(text)
        {
            if event_list(&object(Some(json))).is_some() {
                return Err(NotATrajectory::unlike(
                    AUTHOR,
                    "several runs: put each line into a separate file",
                ));
            }
            let place = (offset + begin as u64, text.len() as u64);
            locations.push(EventLocation { json, place, base: String::new() });
        }
        offset += line.len() as u64;
    }
    Ok((!locations.is_empty()).then_some(locations))
}

/// Parses a time with or without a zone.
fn time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}Z")))
}

struct OpenHandsReader {
    run: TrajectoryRun,
    /// Open calls, by the name that their answers use.
    open: BTreeMap<String, OpenHandsOpenCall>,
    /// The command that still runs, although waiting for it ended.
    running: Option<(String, OpenHandsOpenCall)>,
    moment: StepMoment,
    /// Whether an event had a time.
    timed: bool,
}

impl OpenHandsReader {
    /// Reads an event. Returns whether it is an event of OpenHands.
    fn event(&mut self, location: &EventLocation<'_>) -> bool {
        let event: Option<OpenHandsEvent<'_>> = parse_object(location.json.get());
        let Some(event) = event else { return false };
        let at = event.timestamp.text().and_then(time);
        self.moment.number += 1;
        self.moment.place = location.place;
        self.moment.synthetic = at.is_none();
        self.moment.at = match at {
            Some(at) => at,
            None if self.timed => self.moment.at,
            None => self.moment.at.plus_micros(1_000_000),
        };
        self.timed |= at.is_some();
        let number = self.moment.number;
        let id = event
            .id
            .0
            .clone()
            .map_or_else(|| format!("event-{number}"), |id| format!("event-{id}"));
        if event.kind.text().is_some() && event.source.text().is_some() {
            sdk::event(self, location, &event, &id)
        } else {
            server::event(self, location, &event, &id)
        }
    }

    fn message(&mut self, id: &str, value: FieldMap) {
        let moment = self.moment.clone();
        self.run.fact(&moment, Kind::Message, id, value);
    }

    fn call(&mut self, name: String, request: OpenHandsRequest) {
        let moment = self.moment.clone();
        self.open.insert(name, OpenHandsOpenCall { moment, request, call: None });
    }

    /// Returns the name of the open call with this id.
    fn called(&self, id: &str) -> Option<String> {
        let mut open = self.open.iter();
        open.find(|(_, open)| open.call.as_deref() == Some(id)).map(|(name, _)| name.clone())
    }

    /// Closes the call of this name.
    fn answer(&mut self, name: &str, answer: OpenHandsCallResult<'_>) {
        let Some(open) = self.open.remove(name) else { return };
        match open.request {
            OpenHandsRequest::Command { .. } if answer.goes_on => {
                self.command(name, &open, "background", &answer);
                self.running = Some((name.to_owned(), open));
            }
            OpenHandsRequest::Command { .. } => {
                let outcome = ended(&answer);
                self.command(name, &open, outcome, &answer);
            }
            OpenHandsRequest::Poll { stops } => self.polled(stops, &answer),
            OpenHandsRequest::Edit { .. }
            | OpenHandsRequest::Tool { .. }
            | OpenHandsRequest::Agent { .. } => {
                self.used(name, open, &answer);
            }
            OpenHandsRequest::Tasks => {
                let moment = self.moment.clone();
                if let Some(tasks) = answer.tasks {
                    self.run.at(&moment, |work| work.push_todos(&tasks));
                }
            }
        }
    }

    /// Handles the answer to a poll of the running command.
    fn polled(&mut self, stops: bool, answer: &OpenHandsCallResult<'_>) {
        if answer.goes_on {
            return;
        }
        let Some((name, open)) = self.running.take() else { return };
        let outcome = if stops { "interrupted" } else { ended(answer) };
        self.command(&name, &open, outcome, answer);
    }

    fn command(
        &mut self,
        name: &str,
        open: &OpenHandsOpenCall,
        outcome: &'static str,
        answer: &OpenHandsCallResult<'_>,
    ) {
        let OpenHandsRequest::Command { line, command, working_dir } = &open.request else {
            return;
        };
        if let Some(directory) = &answer.working_dir {
            self.run.carry.session.cwd = Some(directory.clone());
        }
        let called = (!open.moment.synthetic).then(|| open.moment.at.to_string());
        let directory = working_dir.clone().or_else(|| answer.working_dir.clone());
        let reason = matches!(outcome, "failed")
            .then_some(answer.text)
            .filter(|_| answer.exit_code.is_none());
        let ended = EndedCommand {
            id: name,
            line,
            command: command.clone(),
            outcome,
            exit_code: answer.exit_code.filter(|_| !matches!(outcome, REFUSED | "background")),
            output: (answer.text, &answer.pointer),
            shell: true,
            more: fields([
                ("working_dir", directory.into()),
                ("called_at", called.into()),
                (
                    "reason",
                    reason.map(|it| long_text::beginning(it, long_text::INLINE_BYTES)).into(),
                ),
            ]),
        };
        let moment = self.moment.clone();
        self.run.command(&moment, ended);
    }

    fn used(&mut self, name: &str, open: OpenHandsOpenCall, answer: &OpenHandsCallResult<'_>) {
        let moment = self.moment.clone();
        let text_value = || long_text::value(answer.text, moment.place, || answer.pointer.clone());
        let called = (!open.moment.synthetic).then(|| open.moment.at.to_string());
        let outcome = match open.request {
            OpenHandsRequest::Edit { .. } if answer.refuses_edit() => "failed",
            _ => answer.outcome,
        };
        let (kind, mut value) = match open.request {
            OpenHandsRequest::Edit { mut fields } if outcome == "finished" => {
                fields.remove("input");
                fields.extend(answer.edit.clone());
                (Kind::Code, fields)
            }
            OpenHandsRequest::Agent { mut fields } if answer.outcome != REFUSED => {
                let status = if answer.outcome == "finished" { "completed" } else { "failed" };
                fields.insert("status".to_owned(), status.into());
                fields.insert("result".to_owned(), text_value());
                (Kind::Agent, fields)
            }
            OpenHandsRequest::Edit { fields }
            | OpenHandsRequest::Tool { fields }
            | OpenHandsRequest::Agent { fields } => {
                let mut fields = fields;
                fields.insert("outcome".to_owned(), outcome.into());
                if outcome != "finished" && !answer.text.is_empty() {
                    fields.insert("reason".to_owned(), text_value());
                }
                (Kind::Tool, fields)
            }
            OpenHandsRequest::Command { .. }
            | OpenHandsRequest::Poll { .. }
            | OpenHandsRequest::Tasks => return,
        };
        if kind != Kind::Code {
            value.extend(fields([("called_at", called.into())]));
        }
        self.run.fact(&moment, kind, name, value);
    }

    /// Records commands, edits and other uses of tools without an answer, with an unknown outcome.
    fn finish(&mut self) {
        for (name, open) in std::mem::take(&mut self.open) {
            self.moment = open.moment.clone();
            let nothing =
                OpenHandsCallResult { outcome: "unknown", ..OpenHandsCallResult::default() };
            match &open.request {
                OpenHandsRequest::Command { .. } => self.command(&name, &open, "unknown", &nothing),
                OpenHandsRequest::Tool { .. } | OpenHandsRequest::Edit { .. } => {
                    self.used(&name, open, &nothing);
                }
                _ => {}
            }
        }
    }

    /// Records a compaction: earlier messages are no longer shown to the model.
    fn condensed(&mut self, id: &str, summary: Option<Value>) {
        let moment = self.moment.clone();
        self.run.at(&moment, |work| work.single_line_compaction(id, summary));
    }

    /// Returns the fields of an edit with this input, which `pointer` leads to.
    fn edit(&mut self, tool: &str, input: Option<&RawValue>, pointer: &str) -> FieldMap {
        let mut made = self.input(tool, input, pointer);
        let edit: EditDescription<'_> = object(input);
        if let Some(patch) = edit.patch() {
            let place = self.moment.place;
            made.extend(fields([
                ("patch", long_text::value(&patch.text, place, || pointer.to_owned())),
                ("lines_added", patch.added.into()),
                ("lines_removed", patch.removed.into()),
            ]));
        }
        made
    }

    /// Returns the fields of a use of a tool with this input, which `pointer` leads to.
    fn input(&mut self, tool: &str, input: Option<&RawValue>, pointer: &str) -> FieldMap {
        let moment = self.moment.clone();
        let mut made = FieldMap::new();
        self.run.at(&moment, |work| made = input_fields(&work.line, input, pointer));
        made.insert("tool".to_owned(), tool.into());
        made
    }
}

/// Returns the outcome of a command that does not run any more.
fn ended(answer: &OpenHandsCallResult<'_>) -> &'static str {
    match answer.exit_code {
        _ if matches!(answer.outcome, REFUSED | "failed") => answer.outcome,
        Some(0) => "finished",
        Some(_) => "failed",
        None if answer.timed_out => "timed_out",
        None => "unknown",
    }
}

/// Parses the answer of a command without an exit code. Returns whether the command still runs, and
/// whether the time limit stopped it.
fn without_code(answer: &str) -> (bool, bool) {
    let is_waiting = answer.contains("[The command has no new output after ")
        || (answer.contains("[The command timed out after ")
            && answer.contains("You may wait longer"));
    let still = answer.contains("Below is the output of the previous command")
        && answer.contains("The previous command is still running");
    (is_waiting || still, !is_waiting && answer.contains("[The command timed out after "))
}

/// Whether this input stops the running command.
fn stops(input: &str) -> bool {
    matches!(input.trim(), "C-c" | "C-d" | "C-z")
}
