//! Trajectories of SWE-agent, mini-swe-agent and OpenHands: records of ended runs, read whole.
//!
//! A step becomes the same facts for all of these agents: what the agent said is a message; a
//! command is a command and, if it is a known check, a verification; an edit is code; a use of any
//! other tool is a tool. If a trajectory has no times, forge invents them. The facts with an
//! invented time have the field `synthetic`.

mod edit;
mod mini_swe_agent;
mod openhands;
mod swe_agent;

use crate::claude_code::command::{CommandRun, REFUSED, merged};
use crate::claude_code::line_context::{LineContext, PieceBuilder, fields};
use crate::claude_code::transcript_state::TranscriptState;
use crate::inference;
use crate::long_text::{self, SourceSpan};
use crate::piece::{CheckpointDraft, SessionDraft, TranscriptPiece};
use crate::verification::CheckCommandLine;
use forge_store::model::claim::{FactText, FieldValue};
use forge_store::model::{Fact, FieldMap, Kind, Timestamp, Value};
use std::borrow::Cow;

/// The agent that wrote a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrajectoryAuthor {
    /// SWE-agent, a single run or one with several attempts (`RetryAgent`).
    SweAgent,
    /// mini-swe-agent.
    MiniSweAgent,
    /// OpenHands: the events of its server, or of its agent SDK.
    OpenHands,
}

impl TrajectoryAuthor {
    /// Its name in sessions and sources.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::OpenHands => "openhands",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::SweAgent => "SWE-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::OpenHands => "OpenHands",
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::SweAgent => {
                "a .traj file holds one JSON object with the list 'trajectory' or 'attempts'"
            }
            Self::MiniSweAgent => "it holds one JSON object with the list 'messages'",
            Self::OpenHands => "it holds a list of events, or one event a line",
        }
    }
}

/// The document is not a trajectory of this agent.
#[derive(Debug, thiserror::Error)]
#[error("this is not a trajectory of {}; {}", .author.title(), .author.expected())]
pub struct NotATrajectory {
    author: TrajectoryAuthor,
    #[source]
    why: serde_json::Error,
}

impl NotATrajectory {
    fn new(author: TrajectoryAuthor, why: serde_json::Error) -> Self {
        Self { author, why }
    }

    fn unlike(author: TrajectoryAuthor, found: &str) -> Self {
        Self::new(
            author,
            <serde_json::Error as serde::de::Error>::custom(format_args!("found {found}")),
        )
    }
}

/// Reads a whole trajectory. `started_at` is when its run began, for a document without times.
/// `recorded_at` is the recorded time of every fact. With `infer`, rules find statements in the
/// beginnings of the agent's messages ([`crate::inference`]).
///
/// The same document always gives the same session and facts.
///
/// # Errors
/// The document is not a trajectory of this agent.
pub fn read(
    author: TrajectoryAuthor,
    bytes: &[u8],
    started_at: Timestamp,
    recorded_at: Timestamp,
    infer: bool,
) -> Result<TranscriptPiece, NotATrajectory> {
    let bom = b"\xef\xbb\xbf";
    let start = if bytes.starts_with(bom) { bom.len() } else { 0 };
    let mut body = bytes.get(start..).unwrap_or_default();
    // A file that was being written when the machine stopped can end with NUL bytes.
    while let [rest @ .., 0] = body {
        body = rest;
    }
    let document = TrajectoryDocument { bytes: body, offset: start as u64 };
    let mut piece = match author {
        TrajectoryAuthor::SweAgent => swe_agent::read(&document, started_at, recorded_at),
        TrajectoryAuthor::MiniSweAgent => mini_swe_agent::read(&document, started_at, recorded_at),
        TrajectoryAuthor::OpenHands => openhands::read(&document, started_at, recorded_at),
    }?;
    piece.taken = bytes.len() as u64;
    if infer {
        let found: Vec<Fact> = piece.facts.iter().flat_map(inferences_of).collect();
        piece.facts.extend(found);
    }
    Ok(piece)
}

/// Returns the inferences from a fact, if it is a message of the agent.
fn inferences_of(fact: &Fact) -> Vec<Fact> {
    let role = fact.value.field("role").and_then(Value::as_text);
    let text = fact.value.field("text").and_then(FactText::read);
    let (Kind::Message, Some("assistant"), Some(text)) = (fact.kind, role, text) else {
        return Vec::new();
    };
    let found = inference::inferences(&fact.id, text.preview()).into_iter();
    found
        .map(|(id, mut value)| {
            // The inference has the message's time, which may be invented.
            if let Some(synthetic) = fact.value.field("synthetic") {
                value.insert("synthetic".to_owned(), synthetic.clone());
            }
            Fact { kind: Kind::Inference, id, value: Value::Map(value), ..fact.clone() }
        })
        .collect()
}

/// The bytes of a document, and their offset in the file.
#[derive(Debug)]
struct TrajectoryDocument<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl TrajectoryDocument<'_> {
    fn place(&self) -> SourceSpan {
        (self.offset, self.bytes.len() as u64)
    }

    /// The hash of the document: the id of a session if the document has none.
    fn hash(&self) -> String {
        blake3::hash(self.bytes).to_hex().to_string()
    }

    /// Returns the document in a form that the parser accepts. Pointers into it stay the same.
    fn json(&self) -> Cow<'_, str> {
        match String::from_utf8_lossy(self.bytes) {
            Cow::Borrowed(text) => long_text::readable_json(text),
            Cow::Owned(text) => Cow::Owned(long_text::readable_json(&text).into_owned()),
        }
    }

    fn starts_with(&self, begin: u8) -> bool {
        self.bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&begin)
    }
}

/// What was read of a run so far.
#[derive(Debug)]
struct TrajectoryRun {
    carry: TranscriptState,
    facts: Vec<Fact>,
    checkpoints: Vec<CheckpointDraft>,
    recorded_at: Timestamp,
    started_at: Option<Timestamp>,
}

/// The place and time of a step.
#[derive(Clone, Debug)]
struct StepMoment {
    at: Timestamp,
    /// The number of the step, from 1: the position of its facts in the source.
    number: u64,
    place: SourceSpan,
    /// Whether the time is invented.
    synthetic: bool,
}

#[derive(Debug)]
struct EndedCommand<'a> {
    id: &'a str,
    line: &'a str,
    /// The command line as a value, which refers to the document if the line is long.
    command: Value,
    outcome: &'static str,
    exit_code: Option<i64>,
    /// The output or, for a refused command, the reason, with the pointer to it.
    output: (&'a str, &'a str),
    /// Whether the line is a shell command.
    shell: bool,
    more: FieldMap,
}

impl TrajectoryRun {
    fn new(recorded_at: Timestamp) -> Self {
        Self {
            carry: TranscriptState::default(),
            facts: Vec::new(),
            checkpoints: Vec::new(),
            recorded_at,
            started_at: None,
        }
    }

    /// Calls `make`. The facts that `make` adds belong to the step at this moment.
    fn at(&mut self, moment: &StepMoment, make: impl FnOnce(&mut PieceBuilder<'_>)) {
        let first = self.facts.len();
        let line = LineContext {
            at: moment.at,
            cwd: self.carry.session.cwd.clone(),
            ..LineContext::new(moment.place, self.recorded_at)
        };
        let mut work = PieceBuilder {
            carry: &mut self.carry,
            facts: &mut self.facts,
            checkpoints: &mut self.checkpoints,
            line,
            infer: false,
        };
        make(&mut work);
        self.started_at.get_or_insert(moment.at);
        for fact in self.facts.iter_mut().skip(first) {
            fact.place = moment.number;
            if let (true, Value::Map(fields)) = (moment.synthetic, &mut fact.value) {
                fields.insert("synthetic".to_owned(), true.into());
            }
        }
    }

    fn fact(&mut self, moment: &StepMoment, kind: Kind, id: &str, value: FieldMap) {
        self.at(moment, |work| work.fact(kind, id, value));
    }

    fn command(&mut self, moment: &StepMoment, ended: EndedCommand<'_>) {
        self.at(moment, |work| {
            let refused = ended.outcome == REFUSED;
            let checks = ended.shell && !refused;
            let verification = CheckCommandLine::from_line(ended.line).filter(|_| checks);
            let (text, pointer) = ended.output;
            let mut more = ended.more;
            more.extend(merged(&work.line, ended.outcome, text, 0..text.len(), pointer));
            let ran = CommandRun {
                command: ended.command,
                description: Value::Null,
                exit_code: ended.exit_code,
                outcome: ended.outcome,
                more,
                output: text,
                verification: verification.as_ref(),
                commits: ended.shell
                    && ended.outcome == "finished"
                    && crate::claude_code::call::runs_git_commit(ended.line),
            };
            work.push_command_run(ended.id, ran);
        });
    }

    /// Adds the patch that the agent submitted at the end; `pointer` leads to the patch.
    fn submission(
        &mut self,
        moment: &StepMoment,
        id: &str,
        (patch, pointer): (&str, &str),
        more: FieldMap,
    ) {
        let mut value = fields([
            ("tool", "submit".into()),
            ("paths", paths(patch).into()),
            ("patch", long_text::value(patch, moment.place, || pointer.to_owned())),
        ]);
        value.extend(more);
        self.fact(moment, Kind::Code, id, value);
    }

    fn prompt(&mut self, moment: &StepMoment, id: &str, text: &str, value: Value) {
        self.carry.session.note_prompt(text);
        self.fact(moment, Kind::Prompt, id, fields([("text", value)]));
    }

    fn piece(self, agent_session: String, started_at: Timestamp) -> TranscriptPiece {
        TranscriptPiece {
            session: Some(SessionDraft {
                agent_session,
                started_at: Some(self.started_at.unwrap_or(started_at)),
                cwd: self.carry.session.cwd,
                title: self.carry.session.title.or(self.carry.session.first_prompt),
                git_branch: None,
            }),
            facts: self.facts,
            checkpoints: self.checkpoints,
            ..TranscriptPiece::default()
        }
    }
}

/// Returns the paths of the files that a patch in git's format changes.
fn paths(patch: &str) -> Vec<String> {
    patch.lines().filter_map(|line| patched_path(line.strip_prefix("diff --git ")?)).collect()
}

/// Returns the path in the heading of a file's patch: `a/PATH b/PATH`. The prefixes may be others,
/// or absent. Only the paths of a renamed file differ. git quotes an unusual path.
fn patched_path(heading: &str) -> Option<String> {
    let after_prefix = |path: &str| path.split_once('/').map(|(_, path)| path.to_owned());
    if let Some((old, new)) = heading.strip_suffix('"').and_then(|it| it.rsplit_once(" \"")) {
        let path = unquoted(new);
        let is_same = old.strip_prefix('"').and_then(|it| it.strip_suffix('"')) == Some(new);
        return if is_same { Some(path) } else { after_prefix(&path) };
    }
    let middle = heading.len() / 2;
    let new = heading.get(middle..).and_then(|rest| rest.strip_prefix(' '));
    match heading.get(..middle).zip(new) {
        Some((old, new)) if old == new => Some(new.to_owned()),
        Some((old, new)) if old.get(1..) == new.get(1..) && new.get(1..2) == Some("/") => {
            after_prefix(new)
        }
        _ => heading.split_once(" b/").map(|(_, path)| path.to_owned()),
    }
}

/// Returns a path without the escapes with which git quotes it. A byte that is no ASCII is three
/// octal digits.
fn unquoted(path: &str) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = path;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend(before.bytes());
        let octal = escape.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let byte = octal.or_else(|| {
            escape.bytes().next().map(|letter| match letter {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                other => other,
            })
        });
        bytes.extend(byte);
        let length = if octal.is_some() { 3 } else { 1 };
        rest = escape.get(length..).unwrap_or_default();
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Converts seconds to microseconds.
#[expect(clippy::cast_possible_truncation, reason = "a cast from float to whole number saturates")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_a_patch_are_those_of_its_headings() {
        for (heading, expected) in [
            ("a/x.py b/x.py", Some("x.py")),
            // Regression: these paths were cut or left out.
            ("a/a b/c.py b/a b/c.py", Some("a b/c.py")),
            (r#""a/\303\251 \"x\".py" "b/\303\251 \"x\".py""#, Some("é \"x\".py")),
            (r#"a/x.py "b/\303\251.py""#, Some("é.py")),
            // Regression: without a prefix, the directory was taken for one.
            (r#""d/\303\251.py" "d/\303\251.py""#, Some("d/é.py")),
            ("x.py x.py", Some("x.py")),
            ("src/x.py src/x.py", Some("src/x.py")),
            ("i/x.py w/x.py", Some("x.py")),
            ("a/old.py b/new.py", Some("new.py")),
            ("a/é b/èè", Some("èè")),
            ("", None),
        ] {
            let found = paths(&format!("diff --git {heading}\n--- a/x\n+diff --git a/y b/y\n"));
            assert_eq!(found.first().map(String::as_str), expected, "{heading}");
        }
    }
}
