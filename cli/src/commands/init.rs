//! `forge init`.

use super::import::found_transcripts;
use crate::args::value::NameArg;
use crate::config::trust;
use crate::context::{Context, Environment};
use crate::database;
use crate::discovery;
use crate::error::CommandError;
use crate::report::store::InitReport;
use crate::verb::{Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_agents::claude_code::TranscriptDialect;
use forge_store::error::Error;
use forge_store::model::Timestamp;
use forge_store::store::database::shard_name;
use forge_store::store::{NewSession, Options, SealStatus, Store, StreamImportRequest};
use forge_store::store_place;
use std::io::{BufRead, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Directory of the project; the working directory by default
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Name of a session to begin at once; with '--at', of the store in the database
    #[arg(long, value_name = "NAME")]
    pub name: Option<NameArg>,

    /// Address of a PostgreSQL database that holds the store, such as postgres://HOST/DATABASE; it
    /// is created there if it has no store of that name
    #[arg(long, value_name = "ADDRESS", requires = "name", conflicts_with_all = ["demo", "import"])]
    pub at: Option<String>,

    /// Number of stores of that name, for frameworks that write many sessions at once; the
    /// directory opens the first
    #[arg(long, value_name = "N", requires = "at", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub shards: Option<u32>,

    /// Make a store without seals: anyone who can write to it can change it unnoticed
    #[arg(long)]
    pub unsealed: bool,

    /// Encrypt everything that is recorded; it cannot be read without the key, which is outside the
    /// store
    #[arg(long, conflicts_with = "unsealed")]
    pub encrypted: bool,

    /// Import what the agent has recorded here so far, without asking
    #[arg(long)]
    pub import: bool,

    /// Make a store with a recorded example, to try forge: in DIR, or else in a new directory for
    /// temporary files
    #[arg(long, conflicts_with_all = ["name", "encrypted", "import"])]
    pub demo: bool,
}

impl Verb for InitArgs {
    const NAME: &'static str = "init";
    type Opened = ();
    type Report = InitReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        if self.demo {
            return make_demo(self.directory.as_deref(), context);
        }
        let path = context.new_store_directory(self.directory.as_deref());
        discovery::check_new_store(&path, &context.environment)?;
        let mut options = workspace::store_options(context, StoreAccess::Write);
        if self.unsealed {
            options.keyring = None;
        }
        options.encrypted = self.encrypted;
        if let (Some(address), Some(name)) = (&self.at, &self.name) {
            return self.create_in_database(address, name.as_str(), &path, options, context);
        }
        let is_plain = self.name.is_none() && !self.unsealed && !self.encrypted;
        let store = match Store::create(&path, options) {
            // As with git, a second 'init' changes nothing.
            Err(Error::StoreExists { .. }) if is_plain => {
                let store =
                    Store::open(&path, workspace::store_options(context, StoreAccess::Read))?;
                let (path, encrypted) = (path.display().to_string(), store.is_encrypted());
                let transcripts = match self.import {
                    true => found_transcripts(TranscriptDialect::ClaudeCode, context, &store)?,
                    false => Vec::new(),
                };
                let existing = true;
                return Ok(InitReport {
                    path,
                    encrypted,
                    existing,
                    transcripts,
                    ..InitReport::default()
                });
            }
            made => made?,
        };
        if self.unsealed
            && let Some(keyring) = context.environment.keyring()
            && store.take_place(&keyring)
        {
            context
                .out
                .warn("a sealed store was here before: this one, without seals, takes its place");
        }
        if let Err(error) = trust::note_own_store(&context.environment, &path) {
            tracing::info!(
                error = error.message(),
                "that this store is the user's own was not noted"
            );
        }
        let act = workspace::write_context(context, "init");
        let session = self.name.as_ref().map(|name| name.as_str().to_owned());
        if let Some(name) = &session {
            workspace::begin_session(context, &store, &act, NewSession::named(name.clone()))?;
        }
        let above = store_above(&path, &context.environment);
        let (path, encrypted) = (path.display().to_string(), store.is_encrypted());
        let transcripts = match found_transcripts(TranscriptDialect::ClaudeCode, context, &store) {
            Err(error) if !self.import => {
                context.out.warn(error.message());
                Vec::new()
            }
            found => found?,
        };
        Ok(InitReport { path, above, session, encrypted, transcripts, ..InitReport::default() })
    }

    /// Offers to import what an agent has recorded here.
    fn after_report(&self, made: InitReport, context: &mut Context) -> Result<(), CommandError> {
        if made.transcripts.is_empty() {
            return Ok(());
        }
        let mut options = workspace::store_options(context, StoreAccess::Write);
        if self.unsealed {
            options.keyring = None;
        }
        let path = context.new_store_directory(self.directory.as_deref());
        let store = Store::open(&path, options)?;
        super::import::offer_import(context, &store, made.transcripts, self.import)
    }
}

impl InitArgs {
    /// Makes the directory the place of a store in a database.
    fn create_in_database(
        &self,
        address: &str,
        name: &str,
        path: &Path,
        options: Options,
        context: &Context,
    ) -> Result<InitReport, CommandError> {
        let (first, has_new_shards) = match self.shards {
            Some(count) => {
                let options = options.clone();
                let is_new = database::create_shards(context, address, name, count, options)?;
                (shard_name(name, 0, count), is_new)
            }
            None => (name.to_owned(), false),
        };
        let database = database::open_database(context, address, &first)?;
        let (store, is_new) = Store::create_in_database(path, &database, options)?;
        let is_new = is_new || has_new_shards;
        trust::note_own_store(&context.environment, path)?;
        if !is_new && matches!(store.seal_status(), SealStatus::NoKey) {
            context.out.warn(
                "the store is sealed, and its key is not on this machine: it can only be read until \
                'forge key import' brings the key ('forge key export FILE' writes it where it is)",
            );
        }
        Ok(InitReport {
            path: path.display().to_string(),
            encrypted: store.is_encrypted(),
            database: Some(database.place().to_string()),
            joined: !is_new,
            ..InitReport::default()
        })
    }
}

/// Returns the store that commands in the project of a new store used before, if there is one.
fn store_above(store: &Path, environment: &Environment) -> Option<String> {
    let project = store.parent().filter(|_| store.ends_with(store_place::STORE_FOLDER))?;
    let project = project.canonicalize().ok()?;
    let above = discovery::find_store(project.parent()?, environment).ok()?;
    Store::id_in(&above).is_ok().then(|| above.display().to_string())
}

/// The recorded example, in the form that `forge import events` reads.
const EXAMPLE: &str = include_str!("../../../docs/example/session.jsonl");
/// How long before the present the example ends.
const DEMO_AGE_MICROS: i64 = 5 * 60 * 1_000_000;

/// Makes a store with the recorded example. The store has no seals, so that all of its files are in
/// its directory. The times are moved so that the example ends [`DEMO_AGE_MICROS`] ago.
fn make_demo(directory: Option<&Path>, context: &Context) -> Result<InitReport, CommandError> {
    let project = match directory {
        Some(directory) => context.cwd.join(directory),
        None => {
            let folder = context.environment.path("TMPDIR").unwrap_or_else(std::env::temp_dir);
            let made = tempfile::Builder::new().prefix("forge-demo-").tempdir_in(&folder);
            let failed = |error| {
                CommandError::io(
                    &format!("cannot make a directory in '{}'", folder.display()),
                    error,
                )
            };
            made.map_err(failed)?.keep()
        }
    };
    let path = project.join(store_place::STORE_FOLDER);
    let mut options = workspace::store_options(context, StoreAccess::Write);
    options.keyring = None;
    let store = Store::create(&path, options)?;
    let events = moved_to(EXAMPLE, context.now.plus_micros(-DEMO_AGE_MICROS));
    let stream = StreamImportRequest { source: "events:demo", name: "demo", session: None };
    let act = workspace::write_context(context, "init");
    let bytes: Arc<[u8]> = events.into_bytes().into();
    let open = &mut || Ok(Box::new(Cursor::new(Arc::clone(&bytes))) as Box<dyn BufRead>);
    let taken = store.import_events(&act, stream, open, &|_| {})?;
    store.sync()?;
    Ok(InitReport {
        path: path.display().to_string(),
        session: taken.sessions.into_iter().next(),
        demo: Some(project.display().to_string()),
        ..InitReport::default()
    })
}

/// Moves the times of all events by the same amount, so that the last event is at `end`.
fn moved_to(events: &str, end: Timestamp) -> String {
    const FIELD: &str = "{\"at\": \"";
    let parsed = events.lines().map(|line| {
        let (time, rest) = line.strip_prefix(FIELD)?.split_once('"')?;
        Some((Timestamp::parse_rfc3339(time)?, rest))
    });
    let parsed: Vec<_> = parsed.collect();
    let last = parsed.iter().flatten().map(|(time, _)| *time).max().unwrap_or(end);
    let shift = end.micros_since(last);
    let mut moved = String::with_capacity(events.len());
    for (line, parsed) in events.lines().zip(parsed) {
        match parsed {
            Some((time, rest)) => {
                moved.push_str(&format!("{FIELD}{}\"{rest}", time.plus_micros(shift)));
            }
            None => moved.push_str(line),
        }
        moved.push('\n');
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_ends_at_the_given_time_and_keeps_its_distances() {
        let end = Timestamp::parse_rfc3339("2026-02-01T12:00:00Z").unwrap();
        let moved = moved_to(EXAMPLE, end);
        assert_eq!(moved.lines().count(), EXAMPLE.lines().count());
        let times = moved.lines().map(|line| line.split('"').nth(3).unwrap());
        let times: Vec<_> = times.map(|time| Timestamp::parse_rfc3339(time).unwrap()).collect();
        assert_eq!(times.iter().max(), Some(&end));
        assert!(times.iter().all(|time| end.micros_since(*time) < 24 * 3600 * 1_000_000));
        assert_eq!(moved_to("not an event", end), "not an event\n");
    }
}
