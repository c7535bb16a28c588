//! Prints results, errors and progress. Results go to stdout, as text for people or as one JSON
//! document; everything else goes to stderr.

mod pager;
pub mod progress;
mod screen;
mod table;
pub mod time;

pub use screen::{Screen, Tone};
pub(crate) use table::cells;
pub use table::{TableCell, TextTable};

use crate::args::{ColorMode, RawOutputFlags};
use crate::context::Environment;
use crate::error::{CommandError, CommandErrorKind, EXIT_OK};
use chrono::Local;
use forge_store::model::Timestamp;
use forge_store::model::text::{NewlineMode, sanitise};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

const ERROR_SCHEMA: &str = "forge.error/1";
const WARNING_SCHEMA: &str = "forge.warning/1";
/// The minimum width of the layout.
const MIN_WIDTH: usize = 20;
/// The assumed number of lines if the screen's height is not known.
const DEFAULT_HEIGHT: usize = 24;

/// The result of a command.
pub trait Report: Serialize {
    /// The name and version of its JSON, such as `forge.state/1`; `None` if it is that of the verb.
    const SCHEMA: Option<&'static str> = None;

    /// Returns [`Self::SCHEMA`], or that of the report inside.
    fn schema(&self) -> Option<&'static str> {
        Self::SCHEMA
    }

    /// Returns how the report is printed.
    fn form(&self) -> ReportForm<'_> {
        ReportForm::Screen
    }

    fn exit_code(&self) -> u8 {
        EXIT_OK
    }

    /// Returns the error with which the command ends after the report was printed, if any.
    fn take_failure(&mut self) -> Option<CommandError> {
        None
    }

    /// Writes the report as text for people.
    fn human(&self, _: &mut Screen) {}
}

/// A [`Report`] of any type, as [`OutputSink::emit`] prints it.
pub trait PrintableReport {
    fn schema(&self) -> Option<&'static str>;
    fn form(&self) -> ReportForm<'_>;
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;
    fn human(&self, screen: &mut Screen);
}

impl<R: Report> PrintableReport for R {
    fn schema(&self) -> Option<&'static str> {
        Report::schema(self)
    }

    fn form(&self) -> ReportForm<'_> {
        Report::form(self)
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn human(&self, screen: &mut Screen) {
        Report::human(self, screen);
    }
}

/// How a report is printed.
#[derive(Clone, Copy, Debug)]
pub enum ReportForm<'a> {
    /// As JSON, or as text for people.
    Screen,
    /// As JSON, or as this text of the store.
    Text(&'a str),
    /// As JSON, or as these bytes.
    JsonOrBytes(&'a [u8]),
    /// As these bytes, also if JSON is wanted.
    Bytes(&'a [u8]),
    /// Not at all: the verb itself has printed it.
    Printed,
}

#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// Whether to print JSON instead of text.
    pub json: bool,
    /// Whether to print only results, warnings and errors.
    pub quiet: bool,
    /// When to use colour.
    pub color: ColorMode,
    /// The pager for long output, if any.
    pub pager: Option<String>,
    /// The time zone of times.
    pub zone: Local,
    /// The time to which "ago" refers.
    pub now: Timestamp,
    /// The beginning of a suggested command.
    pub forge: String,
}

/// The output of results, warnings and progress.
#[derive(Debug)]
pub struct OutputSink {
    look: OutputOptions,
    /// The warnings, if they are to be kept and not printed.
    kept: Option<RefCell<Vec<String>>>,
    /// Whether stdout has colours.
    colored: bool,
    /// Whether stderr has colours.
    stderr_colored: bool,
    /// The width of the screen in columns; `None` if there is no screen and no width was set.
    width: Option<usize>,
    /// The height of the screen in lines, if stdout is a terminal.
    height: Option<usize>,
    /// The agent that called the command, if its session was chosen for that reason.
    session_of: RefCell<Option<String>>,
}

impl OutputSink {
    /// Creates the output. The size of the terminal and the environment are read only here.
    pub fn new(look: OutputOptions, environment: &Environment) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let size = terminal.then(|| terminal_size::terminal_size_of(&stdout)).flatten();
        let number = |name| environment.text(name).and_then(|text| text.parse::<usize>().ok());
        let width = number("COLUMNS").or_else(|| size.map(|(width, _)| usize::from(width.0)));
        let height = size.map(|(_, height)| usize::from(height.0));
        let colored = is_colored(look.color, terminal, environment);
        let stderr_colored = is_colored(look.color, io::stderr().is_terminal(), environment);
        let width = width.filter(|width| *width > 0).map(|width| width.max(MIN_WIDTH));
        let session_of = RefCell::default();
        Self { look, kept: None, colored, stderr_colored, width, height, session_of }
    }

    /// Creates an output that prints nothing: warnings are kept until they are
    /// [taken](Self::take_warnings).
    pub fn capturing(zone: Local, now: Timestamp) -> Self {
        let (json, quiet, color, pager) = (true, true, ColorMode::Never, None);
        let forge = "forge".to_owned();
        let look = OutputOptions { json, quiet, color, pager, zone, now, forge };
        let kept = Some(RefCell::default());
        Self {
            look,
            kept,
            colored: false,
            stderr_colored: false,
            width: None,
            height: None,
            session_of: RefCell::default(),
        }
    }

    /// Returns the warnings that were kept since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.kept.as_mut().map(|kept| std::mem::take(kept.get_mut())).unwrap_or_default()
    }

    /// Prints the report of a verb.
    pub fn emit(&mut self, verb: &str, report: &dyn PrintableReport) -> Result<(), CommandError> {
        match report.form() {
            ReportForm::Printed => return Ok(()),
            ReportForm::Bytes(bytes) => return self.raw(bytes),
            _ if self.look.json => {
                let session_of_agent = self.session_of.get_mut().take();
                let mut text = report_document(verb, session_of_agent, report)?;
                text.push(b'\n');
                return self.raw(&text);
            }
            ReportForm::Text(text) => return self.text(text),
            ReportForm::JsonOrBytes(bytes) => return self.raw(bytes),
            ReportForm::Screen => {}
        }
        let mut screen = self.screen(self.colored);
        report.human(&mut screen);
        let text = screen.into_text();
        let long = self.height.is_some_and(|height| text.lines().count() >= height);
        if let Some(command) = self.look.pager.as_deref().filter(|_| long)
            && pager::show(command, &text).is_ok()
        {
            return Ok(());
        }
        self.raw(text.as_bytes())
    }

    /// Returns the beginning of a suggested command.
    pub fn forge(&self) -> &str {
        &self.look.forge
    }

    /// Returns a screen for the lines of a command that prints as it goes.
    pub fn line_screen(&self) -> Screen {
        self.screen(self.colored)
    }

    /// Writes bytes to stdout that are a result by themselves: a script, an exported file. A
    /// capturing output writes nothing.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        if self.kept.is_some() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(|error| CommandError::io("cannot write to standard output", error))
    }

    /// Writes a text of the store that is a result by itself: on a terminal without control
    /// sequences and with a line break at the end, otherwise byte for byte.
    pub fn text(&mut self, text: &str) -> Result<(), CommandError> {
        if !io::stdout().is_terminal() {
            return self.raw(text.as_bytes());
        }
        let mut shown = sanitise(text, NewlineMode::Keep).into_owned();
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        self.raw(shown.as_bytes())
    }

    /// Flushes everything that was written.
    pub fn flush(&mut self) -> Result<(), CommandError> {
        self.raw(&[])
    }

    /// Reports that a command uses the session of the agent that called it, because no session was
    /// given. In JSON, the result has the agent in `session_of_agent`.
    pub fn note_agent_session(&self, agent: &str, session: &str) {
        self.print_status(&format!(
            "In session '{session}' of the agent ({agent}) that ran this command."
        ));
        *self.session_of.borrow_mut() = Some(agent.to_owned());
    }

    /// Prints to stderr what is being done, unless only results or JSON are wanted.
    pub fn print_status(&self, text: &str) {
        if !self.look.quiet && !self.look.json {
            let mut screen = self.screen(self.stderr_colored);
            screen.paragraph(Tone::Plain, 0, text);
            write_stderr(screen.into_text().as_bytes());
        }
    }

    /// Prints a message to stderr that a person needs to continue, whatever the options.
    pub fn print_notice(&self, text: &str) {
        let mut line = sanitise(text, NewlineMode::Escape).into_owned();
        line.push('\n');
        write_stderr(line.as_bytes());
    }

    /// Prints a warning to stderr; a capturing output keeps it.
    pub fn warn(&self, text: &str) {
        #[derive(Serialize)]
        struct Warning<'a> {
            message: &'a str,
        }
        if let Some(kept) = &self.kept {
            kept.borrow_mut().push(text.to_owned());
            return;
        }
        if self.look.json {
            if let Ok(mut line) = document(WARNING_SCHEMA, &Warning { message: text }) {
                line.push(b'\n');
                write_stderr(&line);
            }
            return;
        }
        let mut screen = self.screen(self.stderr_colored);
        screen.put(Tone::Warning, "warning: ");
        screen.paragraph(Tone::Plain, 0, text);
        write_stderr(screen.into_text().as_bytes());
    }

    /// Asks a question on the terminal, after showing the details. Without a terminal, or if only
    /// results or JSON are wanted, the answer is no.
    pub fn ask(
        &self,
        question: &str,
        show: impl FnOnce(&mut Screen),
    ) -> Result<bool, CommandError> {
        let stdin = io::stdin();
        let quiet = self.look.quiet || self.look.json;
        if quiet || !stdin.is_terminal() || !io::stderr().is_terminal() {
            return Ok(false);
        }
        let mut screen = self.screen(self.stderr_colored);
        show(&mut screen);
        screen.gap();
        screen.put(Tone::Plain, &format!("{question} [y/N] "));
        write_stderr(screen.into_text().as_bytes());
        let mut answer = String::new();
        stdin
            .read_line(&mut answer)
            .map_err(|error| CommandError::io("cannot read the answer", error))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Whether progress may be drawn on stderr.
    pub fn shows_progress(&self) -> bool {
        !self.look.json && !self.look.quiet && io::stderr().is_terminal()
    }

    fn screen(&self, colored: bool) -> Screen {
        let height = self.height.unwrap_or(DEFAULT_HEIGHT);
        Screen::new(self.width, colored, self.look.zone, self.look.now)
            .with_height(height)
            .with_forge(self.look.forge.clone())
    }
}

/// Returns the JSON document of a verb's report, for a caller in this process.
pub fn report_value(
    verb: &str,
    report: &dyn PrintableReport,
) -> Result<serde_json::Value, CommandError> {
    serde_json::from_slice(&report_document(verb, None, report)?).map_err(not_json)
}

/// Returns the JSON document of a verb's report. Without a schema of its own, it has that of the
/// verb: `forge.checkpoint.list/1`.
fn report_document(
    verb: &str,
    session_of_agent: Option<String>,
    report: &dyn PrintableReport,
) -> Result<Vec<u8>, CommandError> {
    let of_verb = || format!("forge.{}/1", verb.replace(' ', "."));
    let schema = report.schema().map_or_else(of_verb, str::to_owned);
    with_head(&DocumentHead { schema: &schema, session_of_agent }, report.to_json())
}

/// Returns one JSON document: the schema, then these fields.
fn document(schema: &str, fields: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    with_head(&DocumentHead { schema, session_of_agent: None }, serde_json::to_vec(fields))
}

/// The first fields of a JSON document.
#[derive(Serialize)]
struct DocumentHead<'a> {
    schema: &'a str,
    /// The agent whose session was chosen because none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_of_agent: Option<String>,
}

/// Returns a JSON object with the fields of the head, followed by the fields of `object`, which is
/// JSON. A serialiser for both would be compiled for each report once more.
fn with_head(
    head: &DocumentHead<'_>,
    object: serde_json::Result<Vec<u8>>,
) -> Result<Vec<u8>, CommandError> {
    let object = object.map_err(not_json)?;
    let Some(fields) = object.strip_prefix(b"{") else {
        return Err(CommandError::internal("a result is no JSON object"));
    };
    let mut document = serde_json::to_vec(head).map_err(not_json)?;
    document.pop();
    if fields != b"}" {
        document.push(b',');
    }
    document.extend(fields);
    Ok(document)
}

fn not_json(error: serde_json::Error) -> CommandError {
    CommandError::internal("a result is not JSON").caused_by(error)
}

/// Prints clap's message about wrong usage to stderr in sanitised form, if it repeats control
/// characters of the input. Returns whether it did.
pub fn print_hidden_usage(error: &clap::Error) -> bool {
    let message = error.render().to_string();
    let shown = sanitise(&message, NewlineMode::Keep);
    let hidden = shown != message;
    if hidden {
        write_stderr(shown.as_bytes());
    }
    hidden
}

/// Prints an error to stderr: as text, or as JSON if that is wanted.
pub fn print_error(error: &CommandError, form: RawOutputFlags, environment: &Environment) {
    #[derive(Serialize)]
    struct WrappedError<'a> {
        error: ErrorFields<'a>,
    }
    #[derive(Serialize)]
    struct ErrorFields<'a> {
        kind: CommandErrorKind,
        message: &'a str,
        causes: Vec<String>,
        hints: &'a [String],
    }
    if error.kind() == CommandErrorKind::BrokenPipe {
        return;
    }
    if form.json {
        let (kind, message) = (error.kind(), error.message());
        let fields = ErrorFields { kind, message, causes: error.causes(), hints: error.hints() };
        if let Ok(mut line) = document(ERROR_SCHEMA, &WrappedError { error: fields }) {
            line.push(b'\n');
            write_stderr(&line);
        }
        return;
    }
    let color = form.color.unwrap_or_default();
    let colored = is_colored(color, io::stderr().is_terminal(), environment);
    write_stderr(error_text(error, colored).as_bytes());
}

fn error_text(error: &CommandError, colored: bool) -> String {
    let mut text = String::new();
    let mut put = |tone: Tone, label: &str, content: &str| {
        screen::push_styled(&mut text, screen::style_of(tone, colored), label);
        text.push_str(&sanitise(content, NewlineMode::Keep));
        text.push('\n');
    };
    let label =
        if error.kind() == CommandErrorKind::Internal { "internal error: " } else { "error: " };
    put(Tone::Bad, label, error.message());
    let causes = error.causes();
    if let [cause] = causes.as_slice() {
        put(Tone::Dim, "Caused by: ", cause);
    } else if !causes.is_empty() {
        put(Tone::Dim, "Caused by:", "");
        for (number, cause) in causes.iter().enumerate() {
            put(Tone::Dim, &format!("  {}: ", number + 1), cause);
        }
    }
    for hint in error.hints() {
        put(Tone::Heading, "hint: ", hint);
    }
    text
}

/// Whether to use colour: as the user chose, or else by `NO_COLOR`, `CLICOLOR_FORCE`, and the
/// terminal.
fn is_colored(color: ColorMode, terminal: bool, environment: &Environment) -> bool {
    match color {
        ColorMode::Always => true,
        ColorMode::Never => false,
        ColorMode::Auto if environment.value("NO_COLOR").is_some() => false,
        ColorMode::Auto if environment.text("CLICOLOR_FORCE").is_some_and(|text| text != "0") => {
            true
        }
        ColorMode::Auto => terminal && environment.text("TERM") != Some("dumb"),
    }
}

/// Writes to stderr. A failure is ignored: it cannot be reported anywhere.
fn write_stderr(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_has_priority_over_the_environment() {
        let none = Environment::default();
        let no = Environment::from([("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
        let force = Environment::from([("CLICOLOR_FORCE", "1")]);
        let empty = Environment::from([("NO_COLOR", ""), ("CLICOLOR_FORCE", "0")]);
        let dumb = Environment::from([("TERM", "dumb")]);
        let auto = |terminal, environment| is_colored(ColorMode::Auto, terminal, environment);
        assert!(auto(true, &none) && !auto(false, &none));
        assert!(!auto(true, &no) && auto(false, &force) && !auto(true, &dumb));
        assert!(auto(true, &empty) && !auto(false, &empty));
        assert!(
            is_colored(ColorMode::Always, false, &no)
                && !is_colored(ColorMode::Never, true, &force)
        );
    }

    #[test]
    fn an_error_shows_causes_and_hints_and_no_control_characters() {
        let inner = CommandError::invalid("bad byte\u{1b}[2J");
        let error = CommandError::invalid("line 3")
            .caused_by(inner)
            .with_context("cannot read 'x'")
            .hinted("try 'y'");
        assert_eq!(
            error_text(&error, false),
            "error: cannot read 'x'\nCaused by:\n  1: line 3\n  2: bad byte\\x1b[2J\nhint: try 'y'\n"
        );
    }
}
