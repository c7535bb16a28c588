//! The context of a command: directory, environment, settings, clock, output.

use crate::args::GlobalArgs;
use crate::args::value::{MomentArg, to_micros};
use crate::config::{Config, IgnoredSetting, key};
use crate::discovery;
use crate::error::{CommandError, CommandErrorKind, EXIT_OK, EXIT_UNKEYED};
use crate::output::{OutputOptions, OutputSink};
use chrono::{DateTime, Local};
use forge_store::model::{Timestamp, time_grammar};
use forge_store::shell::quoted;
use forge_store::store_place;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variables of a process, read once, so that tests can use their own.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads the variables of this process.
    pub fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the variable, unless it is unset or empty.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns the variable as text, unless it is unset, empty, or not UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.to_str()
    }

    /// Sets a variable, if it is unset or empty.
    pub fn set_default(&mut self, name: &str, value: &str) {
        if self.value(name).is_none() {
            self.0.insert(name.into(), value.into());
        }
    }

    /// Returns the variables that are text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }

    /// Returns the variable as a path, unless it is unset or empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from)
    }

    /// Returns the variable as a directory, unless it is unset, empty, or relative: a relative one
    /// would depend on the current directory (XDG base directory specification).
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        self.path(name).filter(|path| path.is_absolute())
    }

    /// Returns the directory for the user's settings: `$XDG_CONFIG_HOME`, by default `~/.config`.
    pub fn config_directory(&self) -> Option<PathBuf> {
        self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.directory("HOME")?.join(".config")))
    }

    /// Returns the directory for the state of programs: `$XDG_STATE_HOME`, by default
    /// `~/.local/state`.
    pub fn state_directory(&self) -> Option<PathBuf> {
        let own = self.directory("XDG_STATE_HOME");
        own.or_else(|| Some(self.directory("HOME")?.join(".local/state")))
    }

    /// Returns the folder for the keys and witnesses of stores.
    pub fn keyring(&self) -> Option<PathBuf> {
        let own = self.directory("FORGE_KEYRING");
        own.or_else(|| Some(self.state_directory()?.join("forge/keyring")))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[derive(Debug)]
pub struct Context {
    pub cwd: PathBuf,
    pub environment: Environment,
    /// The flags of every command.
    pub global: GlobalArgs,
    pub config: Config,
    /// When the command began, which is the time of everything that it records.
    pub now: Timestamp,
    /// The time zone for input and output.
    pub zone: Local,
    /// The output of results.
    pub out: OutputSink,
    /// The exit code of the process if there is no error.
    pub exit_code: u8,
    /// Whether the process ends with the command.
    pub is_process: bool,
    /// Whether data was read that could not be verified.
    pub unverified: Cell<bool>,
}

impl Context {
    /// Creates the context of this process, whose results are printed.
    pub fn new(global: GlobalArgs, environment: Environment) -> Result<Self, CommandError> {
        let mut context = Self::capturing(global, environment)?;
        let Self { environment, global, config, .. } = &context;
        let look = OutputOptions {
            json: global.json,
            quiet: global.quiet,
            color: config.color(),
            pager: pager(global, environment, config),
            zone: Local,
            now: context.now,
            forge: suggested_forge(&context),
        };
        set_up_tracing(global.verbose, environment)?;
        context.out = OutputSink::new(look, environment);
        context.is_process = true;
        Ok(context)
    }

    /// Creates a context whose commands print nothing: their results are kept in [`Self::out`].
    pub fn capturing(global: GlobalArgs, environment: Environment) -> Result<Self, CommandError> {
        let cwd = std::env::current_dir()
            .map_err(|error| CommandError::io("cannot find the working directory", error))?;
        let now = now(&environment)?;
        let project = store_directory(&cwd, &global, &environment).ok();
        let config = Config::read(&global, &environment, project.as_deref())?;
        let out = OutputSink::capturing(Local, now);
        let exit_code = EXIT_OK;
        Ok(Self {
            cwd,
            environment,
            global,
            config,
            now,
            zone: Local,
            out,
            exit_code,
            is_process: false,
            unverified: Cell::new(false),
        })
    }

    /// Reads the settings of this store, unless it is the store of this context.
    pub fn use_settings_of(&mut self, store: &Path) -> Result<(), CommandError> {
        if self.store_directory().is_ok_and(|known| known == store) {
            return Ok(());
        }
        self.config = Config::read(&self.global, &self.environment, Some(store))?;
        Ok(())
    }

    /// Warns about the settings of the project that are ignored.
    pub fn warn_of_ignored_settings(&self) {
        let ignored = self.config.ignored();
        if !ignored.is_empty() {
            self.out.warn(&IgnoredSetting::describe(ignored));
        }
    }

    /// Returns the current time, for a long-running command.
    pub fn current_time(&self) -> Result<Timestamp, CommandError> {
        now(&self.environment)
    }

    pub fn store_directory(&self) -> Result<PathBuf, CommandError> {
        store_directory(&self.cwd, &self.global, &self.environment)
    }

    /// Returns whether `--store` or FORGE_STORE names the store.
    pub fn names_store(&self) -> bool {
        given_store(&self.global).is_some()
    }

    /// Returns where `forge init` creates a store: at the path of `--store`, or else in `start`, or
    /// else for the project around the working directory.
    pub fn new_store_directory(&self, start: Option<&Path>) -> PathBuf {
        match (given_store(&self.global), start) {
            (Some(path), _) => self.absolute(path),
            (None, Some(start)) => self.absolute(start).join(store_place::STORE_FOLDER),
            (None, None) => store_place::new_store_path(&self.cwd),
        }
    }

    /// Returns the exit code of the process if there is no error.
    pub fn final_exit_code(&self) -> u8 {
        match self.exit_code {
            EXIT_OK if self.unverified.get() => EXIT_UNKEYED,
            code => code,
        }
    }

    /// Returns the session that `--session` or FORGE_SESSION names, by name or id.
    pub fn session(&self) -> Option<&str> {
        self.global.session.as_deref().filter(|session| !session.is_empty())
    }

    /// Returns a path from the working directory, without components `.`.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path).components().collect()
    }

    /// Returns whether FORGE_SESSION names this session, and not only `--session`.
    pub fn is_session_of_shell(&self, name: &str) -> bool {
        self.environment.text("FORGE_SESSION") == Some(name)
    }

    /// Returns the session that `--session` names, if FORGE_SESSION does not name it too.
    pub fn session_of_option(&self) -> Option<&str> {
        self.session().filter(|name| !self.is_session_of_shell(name))
    }

    /// Returns the beginning of a suggested command: `forge`, with the session that `--session`
    /// names.
    pub fn forge(&self) -> &str {
        self.out.forge()
    }

    /// Parses a moment, as far as the text alone says.
    pub fn moment(&self, name: &MomentArg) -> Result<time_grammar::MomentExpression, CommandError> {
        time_grammar::parse_moment(name.as_str(), self.now, &self.zone)
            .map_err(|error| CommandError::invalid(error.to_string()))
    }

    pub fn check_moment(&self, name: Option<&MomentArg>) -> Result<(), CommandError> {
        name.map_or(Ok(()), |name| self.moment(name).map(drop))
    }

    /// Returns how long to wait for a lock.
    pub fn lock_timeout(&self) -> Duration {
        self.config.duration(key::LOCK_TIMEOUT).expect("it has a default")
    }
}

/// Returns the path that `--store` or FORGE_STORE gives; an empty one is none.
fn given_store(global: &GlobalArgs) -> Option<&Path> {
    global.store.as_deref().filter(|path| !path.as_os_str().is_empty())
}

fn store_directory(
    cwd: &Path,
    global: &GlobalArgs,
    environment: &Environment,
) -> Result<PathBuf, CommandError> {
    match given_store(global) {
        Some(path) => discovery::named_store(&cwd.join(path), environment),
        None => discovery::find_store(cwd, environment),
    }
}

/// Returns the beginning of a suggested command. It has the session that `--session` names, because
/// the command would be about another session without it.
fn suggested_forge(context: &Context) -> String {
    match context.session_of_option() {
        Some(name) => format!("forge --session {}", quoted(name)),
        None => "forge".to_owned(),
    }
}

/// Returns the time of a command. In tests, `FORGE_TEST_NOW` (RFC 3339) replaces the clock.
fn now(environment: &Environment) -> Result<Timestamp, CommandError> {
    if let Some(text) = environment.text("FORGE_TEST_NOW") {
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| {
            CommandError::invalid(format!("FORGE_TEST_NOW is not an RFC 3339 time: '{text}'"))
        });
        return check_clock(time?.to_utc().into());
    }
    check_clock(clock())
}

/// Reads the clock of the system, in the only place that does. Never panics: a wrong clock can show
/// any time.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub fn clock() -> Timestamp {
    timestamp(SystemTime::now())
}

/// Converts a time of the system, which may be before 1970.
fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::from_micros(match time.duration_since(UNIX_EPOCH) {
        Ok(after) => to_micros(after),
        Err(before) => -to_micros(before.duration()),
    })
}

/// Refuses a time before 1970: the clock is wrong, and ids cannot encode the time.
fn check_clock(time: Timestamp) -> Result<Timestamp, CommandError> {
    if time.as_micros() >= 0 {
        return Ok(time);
    }
    let shown = time.to_datetime().format("%Y-%m-%dT%H:%M:%SZ");
    let text = format!("the clock of this machine says {shown}, which is before 1970");
    Err(CommandError::new(CommandErrorKind::Unavailable, text)
        .hinted("set the clock; nothing was changed"))
}

/// Returns the command line of the pager; `None` if no pager is wanted.
fn pager(global: &GlobalArgs, environment: &Environment, config: &Config) -> Option<String> {
    if global.no_pager || global.json {
        return None;
    }
    let command = config.text(key::PAGER).unwrap_or_else(|| common_pager(environment));
    (!command.trim().is_empty() && command.trim() != "cat").then(|| command.to_owned())
}

/// Returns the pager of all programs; empty on a terminal that cannot move the cursor, where `less`
/// waits for a key before it shows anything.
fn common_pager(environment: &Environment) -> &str {
    match environment.text("TERM") {
        None | Some("dumb") => "",
        Some(_) => environment.text("PAGER").unwrap_or("less -FRX"),
    }
}

/// Sends log events to stderr: those that FORGE_LOG selects, else with `-v` up to level info, with
/// `-vv` all. Without any of these, none.
fn set_up_tracing(verbose: u8, environment: &Environment) -> Result<(), CommandError> {
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::prelude::*;
    let filter = match (environment.text("FORGE_LOG"), verbose) {
        (Some(directives), _) => directives,
        (None, 0) => return Ok(()),
        (None, 1) => "info",
        (None, _) => "trace",
    };
    let targets: Targets = filter.parse().map_err(|error| {
        CommandError::invalid(format!("FORGE_LOG is not a filter: '{filter}'"))
            .caused_by(error)
            .hinted("set it to a level such as 'info', or to 'forge_store=debug'")
    })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time();
    // A subscriber exists already only in tests that run two commands in one process.
    let _ = tracing_subscriber::registry().with(lines).with(targets).try_init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_cannot_move_the_cursor_has_no_pager() {
        let common =
            |variables: [(&str, &str); 2]| common_pager(&Environment::from(variables)).to_owned();
        assert_eq!(common([("TERM", "dumb"), ("PAGER", "less")]), "");
        assert_eq!(common([("TERM", ""), ("PAGER", "less")]), "");
        assert_eq!(common([("TERM", "xterm"), ("PAGER", "more")]), "more");
        assert_eq!(common([("TERM", "xterm"), ("PAGER", "")]), "less -FRX");
    }

    #[test]
    fn a_time_before_1970_is_negative_and_refused() {
        let at = |seconds| Duration::from_secs(seconds);
        assert_eq!(timestamp(UNIX_EPOCH + at(86_400)).as_micros(), 86_400_000_000);
        assert_eq!(timestamp(UNIX_EPOCH - at(86_400)).as_micros(), -86_400_000_000);
        let far = UNIX_EPOCH.checked_sub(at(1 << 62)).unwrap();
        for early in [UNIX_EPOCH - Duration::from_micros(1), far] {
            let error = check_clock(timestamp(early)).unwrap_err();
            assert!(error.message().ends_with("which is before 1970"), "{error:?}");
        }
        assert_eq!(check_clock(timestamp(UNIX_EPOCH)).unwrap().as_micros(), 0);
    }
}
