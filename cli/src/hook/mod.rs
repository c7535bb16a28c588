//! What happens when an agent calls a hook: `forge hook AGENT EVENT`.
//!
//! Nothing here may stop, slow or break the agent: every way out is exit code 0 with an answer in the agent's own form,
//! and a line in the [`log`]. What is saved, and when, is said in `docs/hooks.md`.

pub mod input;
pub mod log;

use crate::context::{Context, Environment};
use crate::discovery;
use crate::error::CommandError;
use forge_agents::hook::{Agent, Event, Happening, answer};
use log::{Line, Outcome};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A call of a hook on its way through.
struct Call<'c> {
    context: &'c Context,
    began: Instant,
    line: Line,
}

/// Handles one call. Never fails: what goes wrong is in the log.
pub fn run(agent: &str, event: &str, context: &Context) {
    let line = Line::new(context.now, agent, event);
    let mut call = Call { context, began: Instant::now(), line };
    let found = Agent::named(agent);
    let (store, text) = match found {
        None => {
            call.line.failed(&format!("'{agent}' is no agent that forge knows"));
            (None, String::new())
        }
        Some(agent) => match read(agent, event) {
            Err(reason) => {
                call.line.failed(&reason);
                let empty = Event::read(agent, event, b"{}").ok();
                let store = store_directory(context, empty.as_ref()).ok();
                (store, empty.map(|event| answer(&event, None)).unwrap_or_default())
            }
            Ok(event) => call.handle(&event),
        },
    };
    // An agent that has gone away needs no answer.
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    call.end(store.as_deref());
}

fn read(agent: Agent, name: &str) -> Result<Event, String> {
    let input = input::read().map_err(|error| format!("cannot read standard input: {error}"))?;
    Event::read(agent, name, &input).map_err(|error| error.to_string())
}

impl Call<'_> {
    /// What there is to do, the store it was done in, and what to answer.
    fn handle(&mut self, event: &Event) -> (Option<PathBuf>, String) {
        self.line.session.clone_from(&event.session);
        self.line.event.clone_from(&event.name);
        let store = match store_directory(self.context, Some(event)) {
            Ok(store) => store,
            Err(error) => {
                self.line.outcome = Outcome::Ignored;
                self.line.say(error.message());
                self.line.directory = event.cwd.clone().or(Some(self.context.cwd.clone()));
                return (None, answer(event, None));
            }
        };
        if event.happening == Happening::Other {
            self.line.outcome = Outcome::Ignored;
            self.line.say("forge has no use for this event");
        }
        (Some(store), answer(event, None))
    }

    /// Writes the line of the log.
    fn end(mut self, store: Option<&Path>) {
        self.line.micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        note(&self.context.environment, store, &self.line);
    }
}

/// Writes a line to the log of the store, else to the user's.
fn note(environment: &Environment, store: Option<&Path>, line: &Line) {
    let log = store.map(log::of_store).or_else(|| log::of_user(environment));
    // There is nobody left to tell.
    let _ = log.map(|log| log::append(&log, line));
}

/// Notes a call that failed before it was known what it is.
pub fn note_failure(environment: &Environment, words: &[String], error: &CommandError) {
    #[expect(clippy::disallowed_methods, reason = "this is the edge")]
    let now = chrono::Utc::now().into();
    let word = |place: usize| words.get(place).map(String::as_str).unwrap_or_default();
    let mut line = Line::new(now, word(0), word(1));
    line.failed(error.message());
    let store = std::env::current_dir().ok().and_then(|cwd| discovery::find(&cwd).ok());
    note(environment, store.as_deref(), &line);
}

/// The store of the project an agent works in: the one named outright, else that of the project as the agent calls it,
/// else of the directory it is in.
fn store_directory(context: &Context, event: Option<&Event>) -> Result<PathBuf, CommandError> {
    if context.global.store.is_some() {
        return context.store_directory();
    }
    let variable = match event.map(|event| event.agent) {
        Some(Agent::Claude) => "CLAUDE_PROJECT_DIR",
        Some(Agent::Gemini) => "GEMINI_PROJECT_DIR",
        Some(Agent::Cursor) => "CURSOR_PROJECT_DIR",
        _ => "",
    };
    let project = context.environment.path(variable).filter(|path| path.is_absolute());
    let cwd = event.and_then(|event| event.cwd.clone()).filter(|path| path.is_absolute());
    let mut first = None;
    for directory in project.into_iter().chain(cwd).chain([context.cwd.clone()]) {
        match discovery::find(&directory) {
            Ok(store) => return Ok(store),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| CommandError::not_found("no store here")))
}
