//! `forge complete`: prints the words that can complete a command line. The completion scripts of
//! the shells call it.

use crate::args::moment::is_moment;
use crate::args::{ForgeArgs, wrong_usage};
use crate::config::SettingKey;
use crate::context::Context;
use crate::error::CommandError;
use crate::verb::{RawReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command, CommandFactory};
use forge_store::model::{Kind, SessionKind};
use forge_store::store::{CheckpointFilter, Session, StateAt, Store, entity_title};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum number of ids of a kind, and of checkpoints, that are offered: the last ones.
const MAX_OFFERED: usize = 200;
/// The maximum length of the description beside a word, in characters.
const TITLE_CHARS: usize = 60;

#[derive(Debug, clap::Args)]
pub struct CompleteArgs {
    /// Words of the command line; the last one is to be completed
    #[arg(value_name = "WORD", last = true, num_args = 0.., allow_hyphen_values = true)]
    pub words: Vec<String>,
}

impl Verb for CompleteArgs {
    const NAME: &'static str = "complete";
    type Opened = ();
    type Report = RawReport;

    /// Prints one candidate on each line, with a tab and a description after it. If nothing is
    /// printed, the shell may complete a path.
    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let mut tree = ForgeArgs::command();
        tree.build();
        let (typed, before) = match self.words.split_last() {
            Some((typed, before)) => (typed.as_str(), before.get(1..).unwrap_or_default()),
            None => ("", &[][..]),
        };
        let place = CompletedPlace::find(&tree, before, typed);
        let mut candidates = place.candidates(context);
        candidates.retain(|(word, _)| {
            word.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed))
        });
        let mut text = String::new();
        for (word, about) in candidates {
            let about = crate::text::shorten(&about, TITLE_CHARS);
            let _ = writeln!(text, "{word}\t{about}");
        }
        Ok(RawReport(text.into_bytes()))
    }
}

/// A word that is offered, and its description.
type Candidate = (String, String);

/// The place of the word to complete: its command, and what is expected there.
struct CompletedPlace<'a> {
    command: &'a Command,
    /// The first word of the command's name.
    group: &'a str,
    expected: ExpectedWord<'a>,
}

enum ExpectedWord<'a> {
    Option,
    Value(&'a Arg),
    /// A subcommand or a value.
    Any(Option<&'a Arg>),
    /// A word of another program's command line.
    Foreign,
}

impl<'a> CompletedPlace<'a> {
    fn find(tree: &'a Command, before: &[String], typed: &str) -> Self {
        let (mut command, mut group) = (tree, "");
        let mut positionals = 0;
        let mut value_of: Option<&Arg> = None;
        for word in before {
            if value_of.take().is_some() {
                continue;
            }
            if word == "--" {
                let foreign = command.get_positionals().any(Arg::is_last_set);
                let expected =
                    if foreign { ExpectedWord::Foreign } else { ExpectedWord::Any(None) };
                return Self { command, group, expected };
            }
            if word.len() > 1 && word.starts_with('-') {
                let has_value = |arg: &&Arg| arg.get_action().takes_values();
                value_of = option_of(command, word).filter(has_value);
                continue;
            }
            match wrong_usage::subcommand(command, word).filter(|_| positionals == 0) {
                Some(sub) => {
                    if group.is_empty() {
                        group = sub.get_name();
                    }
                    command = sub;
                }
                None => positionals += 1,
            }
        }
        let expected = match value_of {
            Some(arg) => ExpectedWord::Value(arg),
            None if typed.starts_with('-') => ExpectedWord::Option,
            None => {
                let mut all = command.get_positionals();
                let next = all.nth(positionals).or_else(|| {
                    let last = command.get_positionals().last()?;
                    last.get_num_args().filter(|count| count.max_values() > 1).map(|_| last)
                });
                ExpectedWord::Any(next)
            }
        };
        Self { command, group, expected }
    }

    fn candidates(&self, context: &Context) -> Vec<Candidate> {
        match self.expected {
            ExpectedWord::Foreign => Vec::new(),
            ExpectedWord::Option => {
                let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
                let name =
                    |arg: &Arg| Some((format!("--{}", arg.get_long()?), plain(arg.get_help())));
                shown.filter_map(name).collect()
            }
            ExpectedWord::Value(arg) => self.values(arg, context),
            ExpectedWord::Any(arg) => {
                let shown = self.command.get_subcommands().filter(|sub| !sub.is_hide_set());
                let name = |sub: &Command| (sub.get_name().to_owned(), plain(sub.get_about()));
                let mut all: Vec<Candidate> = shown.map(name).collect();
                all.extend(arg.map(|arg| self.values(arg, context)).unwrap_or_default());
                all
            }
        }
    }

    /// Returns the values of an argument: its fixed values, or else values from the store.
    fn values(&self, arg: &Arg, context: &Context) -> Vec<Candidate> {
        let fixed = arg.get_possible_values();
        if !fixed.is_empty() {
            let name =
                |value: &PossibleValue| (value.get_name().to_owned(), plain(value.get_help()));
            return fixed.iter().map(name).collect();
        }
        // Completion never reports an error. Without a store there is nothing to offer.
        self.stored_values(arg, context).unwrap_or_default()
    }

    fn stored_values(&self, arg: &Arg, context: &Context) -> Result<Vec<Candidate>, CommandError> {
        let value_name =
            arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
        let kinds = self.kinds_of(arg, value_name);
        let wanted_sessions: Option<&[SessionKind]> = match value_name {
            "RUN" => Some(&[SessionKind::Run]),
            "THREAD" => Some(&[SessionKind::Thread]),
            "PROGRAM" => Some(&[SessionKind::Program]),
            "SESSION" | "SESSION|A..B" => Some(&SessionKind::ALL),
            "OTHER" if self.group == "session" => Some(&SessionKind::ALL),
            _ if arg.get_id() == "session" => Some(&SessionKind::ALL),
            _ => None,
        };
        let wants_branches = arg.get_id() == "branch"
            || (self.group == "branch" && matches!(value_name, "NAME" | "SOURCE" | "TARGET"));
        let wants_tags = value_name == "TAG";
        match value_name {
            "KIND" => {
                let name = |kind: &Kind| (kind.name().to_owned(), String::new());
                return Ok(Kind::ALL.iter().map(name).collect());
            }
            "KEY" => {
                let name = |key: &SettingKey| (key.name.to_owned(), key.about.to_owned());
                return Ok(SettingKey::all().iter().map(name).collect());
            }
            _ => {}
        }
        let is_of_session = !kinds.is_empty() || is_moment(arg) || wants_branches || wants_tags;
        if wanted_sessions.is_none() && !is_of_session {
            return Ok(Vec::new());
        }
        let store = workspace::open_store(context, StoreAccess::Read)?;
        if let Some(kinds) = wanted_sessions {
            return sessions(&store, kinds);
        }
        let Some(session) = workspace::session_to_read(context, &store)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        if !kinds.is_empty() {
            let state = session.state(&session.head()?)?;
            for kind in kinds {
                found.extend(ids(&state, kind)?);
            }
        }
        if wants_tags || is_moment(arg) {
            found.extend(tags(&session)?);
        }
        if wants_branches || is_moment(arg) {
            let branches = session.branches(&session.head()?)?.into_iter();
            found.extend(branches.map(|branch| (branch.name, "branch".to_owned())));
        }
        if is_moment(arg) {
            found.extend(checkpoints(&session)?);
            found.push(("HEAD".to_owned(), "the last revision".to_owned()));
        }
        Ok(found)
    }

    /// Returns the kinds whose ids an argument takes.
    fn kinds_of(&self, arg: &Arg, value_name: &str) -> Vec<Kind> {
        match (arg.get_id().as_str(), value_name) {
            ("hypothesis" | "parent" | "blocking", _) => vec![Kind::Hypothesis],
            ("evidence", _) => vec![Kind::Evidence],
            ("on" | "other" | "belief", _) => vec![Kind::Belief],
            ("from", _) if self.group == "evidence" => vec![Kind::Command],
            // Not the option `--id`, which names a new id.
            ("id", "ID") if arg.is_positional() => self.group.parse().into_iter().collect(),
            ("inference", "ID") => vec![Kind::Inference],
            (_, "ENTITY" | "WHAT") => CLAIMS.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// The kinds that are offered where any id fits.
const CLAIMS: [Kind; 5] = [Kind::Hypothesis, Kind::Evidence, Kind::Belief, Kind::Gap, Kind::Note];

/// Returns a description of clap without its style; empty if there is none.
fn plain(about: Option<&StyledStr>) -> String {
    about.map(ToString::to_string).unwrap_or_default()
}

/// Returns the option that a word names.
fn option_of<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    if word.contains('=') {
        return None;
    }
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    command.get_arguments().find(|arg| match long {
        Some(name) => arg.get_long() == Some(name),
        None => word.len() == 2 && arg.get_short() == short,
    })
}

fn ids(state: &StateAt, kind: Kind) -> Result<Vec<Candidate>, CommandError> {
    let mut found = Vec::new();
    if kind.is_claim() {
        for (id, entry) in state.claims_of(kind)? {
            found.push((id, entity_title(kind, &entry.value)));
        }
    } else {
        for known in state.facts_of(kind)? {
            found.push((known.fact.id.clone(), entity_title(kind, &known.fact.value)));
        }
    }
    found.drain(..found.len().saturating_sub(MAX_OFFERED));
    Ok(found)
}

fn sessions(store: &Store, kinds: &[SessionKind]) -> Result<Vec<Candidate>, CommandError> {
    let sessions = store.sessions()?.into_iter().filter(|one| kinds.contains(&one.info.kind));
    Ok(sessions.map(|one| (one.info.name, one.info.agent.unwrap_or_default())).collect())
}

fn tags(session: &Session) -> Result<Vec<Candidate>, CommandError> {
    let checkpoints = session.checkpoints(&CheckpointFilter::default())?;
    let tags: BTreeSet<String> = checkpoints.into_iter().flat_map(|one| one.tags).collect();
    Ok(tags.into_iter().map(|tag| (tag, "tag".to_owned())).collect())
}

/// Returns the numbers of the last checkpoints that have a name, without the `#` that would begin a
/// comment in a shell.
fn checkpoints(session: &Session) -> Result<Vec<Candidate>, CommandError> {
    let filter = CheckpointFilter { limit: Some(MAX_OFFERED), ..CheckpointFilter::default() };
    let mut checkpoints = session.checkpoints(&filter)?;
    checkpoints.retain(|checkpoint| !checkpoint.is_unnamed());
    Ok(checkpoints.into_iter().map(|one| (one.sequence.to_string(), one.message)).collect())
}
