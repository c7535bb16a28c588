//! Trajectories of SWE-agent: one JSON document a run, without times, exit codes or ids.
//!
//! Every step becomes a message and a command; its `edit` or `create`, and the patch handed in at the end, become
//! code. The session's id is the hash of the document. The times are made up from the steps' durations, and every
//! fact says so with `synthetic`.

use crate::lenient::{Name, Word};
use crate::piece::{Piece, SessionDraft};
use crate::text::{self, Place};
use forge_store::model::{Fact, Kind, Origin, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A document that is no trajectory.
#[derive(Debug, thiserror::Error)]
#[error(
    "this is no SWE-agent trajectory; a .traj file holds one JSON object with the list 'trajectory'"
)]
pub struct NotATrajectory(#[from] serde_json::Error);

impl NotATrajectory {
    fn unlike(found: &str) -> Self {
        Self(<serde_json::Error as serde::de::Error>::custom(format_args!("found {found}")))
    }
}

#[derive(Debug, Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    trajectory: Vec<Step<'a>>,
    #[serde(borrow, default)]
    info: About<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct About<'a> {
    #[serde(borrow)]
    submission: Word<'a>,
    #[serde(borrow)]
    exit_status: Word<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step<'a> {
    #[serde(borrow)]
    action: Word<'a>,
    #[serde(borrow)]
    observation: Word<'a>,
    #[serde(borrow)]
    response: Word<'a>,
    #[serde(borrow)]
    thought: Word<'a>,
    execution_time: Option<f64>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
}

/// What the environment says of itself after a step. Older versions write it as JSON inside a string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    open_file: Name,
    working_dir: Name,
}

impl State {
    fn read(raw: Option<&RawValue>) -> Self {
        let raw = raw.map_or("null", RawValue::get);
        let inside: Option<String> = serde_json::from_str(raw).ok();
        serde_json::from_str(inside.as_deref().unwrap_or(raw)).unwrap_or_default()
    }

    fn open_file(&self) -> Option<&str> {
        self.open_file.0.as_deref().filter(|path| *path != "n/a")
    }
}

/// Reads a whole trajectory that began at `started_at`.
///
/// A step's time is the beginning plus the durations up to its end, or plus as many seconds as its number where not
/// every step has a duration. The same document gives the same session and facts again.
///
/// # Errors
/// The document is no trajectory.
pub fn read(
    bytes: &[u8],
    started_at: Timestamp,
    recorded_at: Timestamp,
) -> Result<Piece, NotATrajectory> {
    // An array would be read as the fields in their order.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(NotATrajectory::unlike("an array"));
    }
    let document: Document<'_> = serde_json::from_slice(bytes)?;
    let place = (0, bytes.len() as u64);
    let timed = document.trajectory.iter().all(|step| step.execution_time.is_some());
    let mut piece = Piece { taken: bytes.len() as u64, ..Piece::default() };
    let (mut at, mut seconds) = (started_at, 0.0);
    for (index, step) in document.trajectory.iter().enumerate() {
        let number = index as u64 + 1;
        seconds += step.execution_time.filter(|_| timed).unwrap_or(1.0).max(0.0);
        at = started_at.plus_micros(micros(seconds));
        let moment = Moment { at, recorded_at, number, place };
        piece.facts.extend(moment.step(step, index));
    }
    if let Some(patch) = document.info.submission.text() {
        let number = document.trajectory.len() as u64 + 1;
        let moment = Moment { at, recorded_at, number, place };
        piece.facts.push(moment.submission(patch, document.info.exit_status.text()));
    }
    piece.session = Some(SessionDraft {
        agent_session: blake3::hash(bytes).to_hex().to_string(),
        started_at: Some(started_at),
        cwd: document.trajectory.first().and_then(|step| State::read(step.state).working_dir.0),
        ..SessionDraft::default()
    });
    Ok(piece)
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float to whole number saturates")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

struct Moment {
    at: Timestamp,
    recorded_at: Timestamp,
    /// The step's number, from 1: its place in the source.
    number: u64,
    place: Place,
}

impl Moment {
    fn fact(&self, kind: Kind, id: String, value: Value) -> Fact {
        let Self { at, recorded_at, number, .. } = *self;
        Fact { kind, id, at, origin: Origin::Imported, place: number, recorded_at, value }
    }

    fn text(&self, text: Option<&str>, pointer: impl FnOnce() -> String) -> Value {
        text.map(|text| text::value(text, self.place, pointer)).into()
    }

    fn step(&self, step: &Step<'_>, index: usize) -> Vec<Fact> {
        let id = format!("step-{}", self.number);
        let at = |name: &str| format!("/trajectory/{index}/{name}");
        let state = State::read(step.state);
        let response =
            step.response.text().filter(|response| step.thought.text() != Some(*response));
        let message = Value::from([
            ("role", "assistant".into()),
            ("text", self.text(step.thought.text(), || at("thought"))),
            ("response", self.text(response, || at("response"))),
            ("synthetic", true.into()),
        ]);
        let mut facts = vec![self.fact(Kind::Message, id.clone(), message)];
        let Some(action) = step.action.text() else { return facts };
        let whole = action.trim_end();
        let command = || text::part(action, 0..whole.len(), self.place, || at("action"));
        let value = Value::from([
            ("command", command()),
            ("working_dir", state.working_dir.0.clone().into()),
            ("stdout_preview", self.text(step.observation.text(), || at("observation"))),
            ("streams", "merged".into()),
            ("duration_ms", step.execution_time.map(|it| micros(it) / 1000).into()),
            ("synthetic", true.into()),
        ]);
        facts.push(self.fact(Kind::Command, id.clone(), value));
        let (verb, argument) = whole.split_once(char::is_whitespace).unwrap_or((whole, ""));
        if matches!(verb, "edit" | "create") {
            let named = Some(argument.trim()).filter(|_| verb == "create");
            let told = step.observation.text().unwrap_or_default();
            let value = Value::from([
                ("tool", verb.into()),
                ("path", state.open_file().or(named).into()),
                ("edit", command()),
                ("applied", (!told.contains("Your proposed edit has introduced")).into()),
                ("synthetic", true.into()),
            ]);
            facts.push(self.fact(Kind::Code, id, value));
        }
        facts
    }

    fn submission(&self, patch: &str, exit_status: Option<&str>) -> Fact {
        let paths = patch.lines().filter_map(|line| {
            let (_, path) = line.strip_prefix("diff --git a/")?.split_once(" b/")?;
            Some(path.to_owned())
        });
        let value = Value::from([
            ("tool", "submit".into()),
            ("paths", paths.collect::<Vec<_>>().into()),
            ("patch", self.text(Some(patch), || "/info/submission".to_owned())),
            ("exit_status", exit_status.into()),
            ("synthetic", true.into()),
        ]);
        self.fact(Kind::Code, "submission".to_owned(), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::TextRef;

    const START: Timestamp = Timestamp::from_micros(1_000_000);

    fn piece(document: &str) -> Piece {
        read(document.as_bytes(), START, Timestamp::from_micros(7)).unwrap()
    }

    fn at(piece: &Piece, kind: Kind) -> Vec<(&str, i64)> {
        let facts = piece.facts.iter().filter(|fact| fact.kind == kind);
        facts.map(|fact| (fact.id.as_str(), fact.at.micros_since(START))).collect()
    }

    #[test]
    fn a_step_is_a_message_and_a_command_and_its_edit_is_code() {
        let piece = piece(
            r#"{"trajectory":[
                {"thought":"look","response":"look\nls","action":"ls -F\n","observation":"a.py",
                 "execution_time":0.5,"state":"{\"open_file\": \"n/a\", \"working_dir\": \"/w\"}\n"},
                {"thought":"fix","response":"fix","action":"edit 1:1\nx = 1\nend_of_edit",
                 "observation":"Your proposed edit has introduced new syntax error(s).","execution_time":0.25,
                 "state":{"open_file":"/w/a.py","working_dir":"/w"}},
                {"action":"create b.py\n","observation":"","execution_time":1,"state":{"open_file":"n/a"}}],
              "info":{"submission":"\ndiff --git a/s/a.py b/s/a.py\n","exit_status":"submitted"}}"#,
        );
        let ends = [("step-1", 500_000), ("step-2", 750_000), ("step-3", 1_750_000)];
        assert_eq!(at(&piece, Kind::Message), ends);
        assert_eq!(at(&piece, Kind::Command), ends);
        assert_eq!(at(&piece, Kind::Code), [ends[1], ends[2], ("submission", 1_750_000)]);
        assert!(piece.facts.iter().all(|fact| fact.value.field("synthetic") == Some(&true.into())));
        let value = |index: usize| &piece.facts[index].value;
        let field = |index: usize, name| value(index).field(name).cloned();
        assert_eq!(field(0, "response"), Some("look\nls".into()));
        assert_eq!(field(1, "command"), Some("ls -F".into()));
        assert_eq!(field(1, "working_dir"), Some("/w".into()));
        assert_eq!(field(1, "exit_code"), None);
        assert_eq!(field(2, "response"), None);
        assert_eq!(
            (field(4, "path"), field(4, "applied")),
            (Some("/w/a.py".into()), Some(false.into()))
        );
        assert_eq!(
            (field(7, "path"), field(7, "applied")),
            (Some("b.py".into()), Some(true.into()))
        );
        assert_eq!(field(8, "paths"), Some(vec!["s/a.py"].into()));
    }

    #[test]
    fn without_durations_a_step_takes_a_second() {
        let piece = piece(r#"{"trajectory":[{"thought":"a","execution_time":9},{"thought":"b"}]}"#);
        assert_eq!(at(&piece, Kind::Message), [("step-1", 1_000_000), ("step-2", 2_000_000)]);
    }

    #[test]
    fn the_session_is_named_by_the_content_and_the_same_document_gives_the_same() {
        let document = r#"{"trajectory":[{"thought":"a"}]}"#;
        assert_eq!(piece(document), piece(document));
        assert_ne!(piece(document).session, piece(r#"{"trajectory":[{"thought":"b"}]}"#).session);
    }

    #[test]
    fn what_is_no_trajectory_is_refused() {
        for bytes in [&b"{}"[..], b"", b"[1]", b"\xff", b"{\"trajectory\":{}}", &[b'['; 100_000]] {
            assert!(read(bytes, START, START).is_err());
        }
        let nested = ["[".repeat(100_000), "]".repeat(100_000)].concat();
        assert!(read(nested.as_bytes(), START, START).is_err());
        assert!(read(b" [[{}],{}]", START, START).is_err());
    }

    #[test]
    fn the_recorded_runs_have_their_steps_and_every_reference_leads_to_its_text() {
        for (name, steps, code) in [("marshmallow-1867", 13, 3), ("pydicom-1458", 12, 7)] {
            let Some(bytes) = crate::recorded::read("swe-agent", &format!("{name}.traj")) else {
                return;
            };
            let piece = read(&bytes, START, START).unwrap();
            assert_eq!(at(&piece, Kind::Message).len(), steps, "{name}");
            assert_eq!(at(&piece, Kind::Command).len(), steps, "{name}");
            assert_eq!(at(&piece, Kind::Code).len(), code, "{name}");
            let fields = piece.facts.iter().filter_map(|fact| fact.value.as_map());
            let texts: Vec<_> =
                fields.flat_map(|map| map.values()).filter_map(TextRef::from_value).collect();
            assert!(texts.len() > 10);
            for text in texts {
                assert_eq!(text.place, Some((0, bytes.len() as u64)));
                let whole = crate::resolve(&bytes, &text.pointer).unwrap();
                assert_eq!(blake3::hash(whole.as_bytes()).as_bytes(), text.hash.as_bytes());
            }
        }
    }
}
