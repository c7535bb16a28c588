//! Reads trajectories of SWE-agent: one JSON document per run, without times, exit codes or ids.
//!
//! Every step becomes a message and, if it has an action, a command. Its edit and the submitted
//! patch become code. The session's id is the hash of the document. The times are computed from the
//! steps' durations. A run with several attempts (`RetryAgent`) has a list of trajectories in
//! order, and a copy of the chosen one.

use super::{
    EndedCommand, NotATrajectory, StepMoment, TrajectoryAuthor, TrajectoryDocument, TrajectoryRun,
    edit, micros,
};
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{fields, flag};
use crate::lenient::{LenientId, LenientInteger, LenientText, object, objects};
use crate::long_text;
use crate::piece::TranscriptPiece;
use forge_store::model::{Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

const AUTHOR: TrajectoryAuthor = TrajectoryAuthor::SweAgent;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweAgentTrajectory<'a> {
    trajectory: Option<&'a RawValue>,
    attempts: Option<&'a RawValue>,
    info: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweAgentSummary<'a> {
    submission: LenientText<'a>,
    exit_status: LenientText<'a>,
    best_attempt_idx: LenientInteger,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweAgentStep<'a> {
    action: LenientText<'a>,
    observation: LenientText<'a>,
    response: LenientText<'a>,
    thought: LenientText<'a>,
    execution_time: Option<&'a RawValue>,
    state: Option<&'a RawValue>,
}

impl SweAgentStep<'_> {
    /// Whether a step has fields that only SWE-agent writes together.
    fn is_known(&self) -> bool {
        let said = [&self.thought, &self.response].iter().any(|text| text.0.is_some());
        said || (self.action.0.is_some() && self.observation.0.is_some())
            || self.state.is_some()
            || self.execution_time.is_some()
    }

    fn seconds(&self) -> Option<f64> {
        let seconds: Option<f64> =
            self.execution_time.and_then(|raw| serde_json::from_str(raw.get()).ok());
        // A duration that no step can have counts as absent.
        seconds.filter(|seconds| (0.0..1e9).contains(seconds))
    }
}

/// The state of the environment after a step. Older versions write it as JSON in a string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SweAgentState {
    open_file: LenientId,
    working_dir: LenientId,
}

impl SweAgentState {
    fn read(raw: Option<&RawValue>) -> Self {
        let raw = raw.map_or("null", RawValue::get);
        let inside: Option<String> = serde_json::from_str(raw).ok();
        serde_json::from_str(inside.as_deref().unwrap_or(raw)).unwrap_or_default()
    }

    fn open_file(&self) -> Option<&str> {
        self.open_file.0.as_deref().filter(|path| *path != "n/a")
    }
}

/// An attempt of an agent: its steps, and where it is in the document.
struct SweAgentAttempt<'a> {
    steps: Vec<(usize, SweAgentStep<'a>)>,
    about: SweAgentSummary<'a>,
    /// The pointer to the attempt: `""` for the document itself.
    base: String,
    /// Its number, from 1, if the document has several.
    number: Option<u64>,
}

impl<'a> SweAgentAttempt<'a> {
    fn new(trajectory: &SweAgentTrajectory<'a>, base: String, number: Option<u64>) -> Self {
        let (steps, about) = (objects(trajectory.trajectory), object(trajectory.info));
        Self { steps, about, base, number }
    }

    fn id(&self, name: &str) -> String {
        self.number.map_or_else(|| name.to_owned(), |number| format!("attempt-{number}/{name}"))
    }
}

/// Reads the facts of a document. Its first step begins at `started_at`.
pub(super) fn read(
    document: &TrajectoryDocument<'_>,
    started_at: Timestamp,
    recorded_at: Timestamp,
) -> Result<TranscriptPiece, NotATrajectory> {
    // serde would read an array as the fields in their order.
    if !document.starts_with(b'{') {
        return Err(NotATrajectory::unlike(AUTHOR, "no object"));
    }
    let json = document.json();
    let whole: SweAgentTrajectory<'_> =
        serde_json::from_str(&json).map_err(|why| NotATrajectory::new(AUTHOR, why))?;
    let is_list = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get().starts_with('['));
    let tried: Vec<(usize, SweAgentTrajectory<'_>)> = objects(whole.attempts);
    if !is_list(whole.trajectory) && !is_list(whole.attempts) {
        return Err(NotATrajectory::unlike(AUTHOR, "no list 'trajectory' or 'attempts'"));
    }
    let chosen = SweAgentAttempt::new(&whole, String::new(), None);
    let is_known = |(_, step): &(usize, SweAgentStep<'_>)| step.is_known();
    if !chosen.steps.is_empty() && !chosen.steps.iter().any(is_known) {
        return Err(NotATrajectory::unlike(AUTHOR, "no step of this agent"));
    }
    let attempts: Vec<SweAgentAttempt<'_>> = tried
        .iter()
        .map(|(at, it)| SweAgentAttempt::new(it, format!("/attempts/{at}"), Some(*at as u64 + 1)))
        .collect();
    let mut reading = SweAgentReader {
        run: TrajectoryRun::new(recorded_at),
        at: started_at,
        number: 0,
        place: document.place(),
    };
    if attempts.is_empty() {
        reading.attempt(&chosen);
    }
    for attempt in &attempts {
        reading.attempt(attempt);
    }
    if attempts.is_empty() || chosen.about.submission.text().is_some() {
        reading.submission(&chosen);
    }
    let first = attempts.first().unwrap_or(&chosen);
    reading.run.carry.session.cwd =
        first.steps.first().and_then(|(_, step)| SweAgentState::read(step.state).working_dir.0);
    let mut piece = reading.run.piece(document.hash(), started_at);
    if let Some(session) = &mut piece.session {
        session.started_at = Some(started_at);
    }
    Ok(piece)
}

/// The state of reading a document: the facts so far, and the current time.
struct SweAgentReader {
    run: TrajectoryRun,
    at: Timestamp,
    number: u64,
    place: long_text::SourceSpan,
}

impl SweAgentReader {
    fn moment(&mut self) -> StepMoment {
        self.number += 1;
        StepMoment { at: self.at, number: self.number, place: self.place, synthetic: true }
    }

    /// Reads an attempt. A step's time is the start plus the durations up to the step's end. If not
    /// every step has a duration, it is the start plus one second per step.
    fn attempt(&mut self, attempt: &SweAgentAttempt<'_>) {
        let timed = attempt.steps.iter().all(|(_, step)| step.seconds().is_some());
        let (began, mut seconds) = (self.at, 0.0);
        for (number, (index, step)) in attempt.steps.iter().enumerate() {
            seconds += step.seconds().filter(|_| timed).unwrap_or(1.0);
            self.at = began.plus_micros(micros(seconds));
            let moment = self.moment();
            let id = attempt.id(&format!("step-{}", number + 1));
            self.step(attempt, &moment, &id, (*index, step));
        }
        if attempt.number.is_some() {
            self.submission(attempt);
        }
    }

    fn step(
        &mut self,
        attempt: &SweAgentAttempt<'_>,
        moment: &StepMoment,
        id: &str,
        (index, step): (usize, &SweAgentStep<'_>),
    ) {
        let at = |name: &str| format!("{}/trajectory/{index}/{name}", attempt.base);
        let shown = |text: Option<&str>, name: &str| {
            Value::from(text.map(|text| long_text::value(text, moment.place, || at(name))))
        };
        let response =
            step.response.text().filter(|response| step.thought.text() != Some(*response));
        let message = fields([
            ("role", "assistant".into()),
            ("text", shown(step.thought.text(), "thought")),
            ("response", shown(response, "response")),
            ("attempt", attempt.number.into()),
        ]);
        self.run.fact(moment, Kind::Message, id, message);
        let Some(action) = step.action.text() else { return };
        let whole = action.trim_end();
        let state = SweAgentState::read(step.state);
        let command = || long_text::part(action, 0..whole.len(), moment.place, || at("action"));
        let observation = step.observation.text().unwrap_or_default();
        let more = fields([
            ("working_dir", state.working_dir.0.clone().into()),
            ("duration_ms", step.seconds().map(|it| micros(it) / 1000).into()),
            ("attempt", attempt.number.into()),
        ]);
        let ended = EndedCommand {
            id,
            line: whole,
            command: command(),
            outcome: outcome(observation),
            exit_code: None,
            output: (observation, &at("observation")),
            shell: edit::is_shell(whole),
            more,
        };
        self.run.command(moment, ended);
        if let Some(edited) = edit::parse_edit_action(whole) {
            let applied = edit::applied(observation);
            let open = state.open_file();
            // An edit that was not made opened no file.
            let created = open.filter(|_| applied != Some(false));
            let path = match &edited.path {
                Some(named) => Some(created.filter(|open| is_at(open, named)).unwrap_or(named)),
                None => open.or_else(|| edit::shown_file(observation)),
            };
            let value = fields([
                ("tool", edited.tool.as_str().into()),
                ("path", path.into()),
                ("edit", command()),
                ("applied", applied.into()),
                ("attempt", attempt.number.into()),
            ]);
            self.run.fact(moment, Kind::Code, id, value);
        }
    }

    fn submission(&mut self, attempt: &SweAgentAttempt<'_>) {
        let SweAgentSummary { submission, exit_status, best_attempt_idx } = &attempt.about;
        let Some(patch) = submission.text() else { return };
        let moment = self.moment();
        let best = best_attempt_idx.0.map(|index| index + 1);
        let more = fields([
            ("exit_status", exit_status.text().into()),
            ("attempt", attempt.number.map_or_else(|| best.into(), Value::from)),
            ("chosen", flag(best.is_some())),
        ]);
        let pointer = format!("{}/info/submission", attempt.base);
        self.run.submission(&moment, &attempt.id("submission"), (patch, &pointer), more);
    }
}

/// Whether an absolute path can be that of a file with this name or relative path.
fn is_at(path: &str, named: &str) -> bool {
    let before = path.strip_suffix(named.strip_prefix("./").unwrap_or(named));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns how a command ended, by the environment's answer, which has no exit code.
fn outcome(observation: &str) -> &'static str {
    let begin = observation.trim_start();
    let cancelled = begin.starts_with("The command '")
        && observation.contains("' was cancelled because it took more than ");
    // The environment writes this after the output so far.
    let timed_out = |line: &str| line.starts_with("EXECUTION TIMED OUT");
    if cancelled || timed_out(begin) || begin.lines().rev().take(3).any(timed_out) {
        "timed_out"
    } else if begin.starts_with("Interactive operation '")
        || begin.starts_with("Operation '")
            && observation.contains("is not supported by this environment")
    {
        REFUSED
    } else {
        "unknown"
    }
}

#[cfg(test)]
mod tests;
