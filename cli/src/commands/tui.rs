//! `forge tui`.

use super::report::{MAX_BYTES, start_browser};
use crate::args::ColorMode;
use crate::context::{Context, Environment, clock};
use crate::error::{CommandError, CommandErrorKind};
use crate::remote::Remotes;
use crate::session_page::read_page;
use crate::session_writer::enabled_triggers;
use crate::text_editor;
use crate::verb::{PrintedReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_report::PageZone;
use forge_report::html::{HtmlOptions, write_page};
use forge_report::markdown::write_markdown;
use forge_report::model::ReportLimits;
use forge_store::redact::Redactor;
use forge_store::store::Store;
use forge_tui::host::{BrowserHost, EditedText, NotifyEvent};
use forge_tui::theme::{Theme, ThemeName};
use forge_tui::{BrowserError, BrowserOptions, BrowserOutcome};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The colours of the browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ThemeChoice {
    /// The terminal's own sixteen colours; none where NO_COLOR or '--color never' asks for none.
    #[default]
    Auto,
    /// Many colours on a dark ground.
    Dark,
    /// Many colours on a light ground.
    Light,
    /// No colours.
    None,
}

/// What the browser announces with the bell and a notification of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NotifyChoice {
    /// A hypothesis is confirmed or rejected.
    Settled,
    /// A check fails that did not fail before.
    Failed,
    /// An agent's context is compacted.
    Compacted,
    /// All of these.
    All,
}

impl NotifyChoice {
    const fn events(self) -> &'static [NotifyEvent] {
        match self {
            Self::Settled => &[NotifyEvent::Settled],
            Self::Failed => &[NotifyEvent::Failed],
            Self::Compacted => &[NotifyEvent::Compacted],
            Self::All => &[NotifyEvent::Settled, NotifyEvent::Failed, NotifyEvent::Compacted],
        }
    }
}

#[derive(Debug, Default, clap::Args)]
pub struct TuiArgs {
    /// Colours
    #[arg(long, value_enum, default_value_t, env = "FORGE_THEME")]
    pub theme: ThemeChoice,

    /// Draw with ASCII only
    #[arg(long)]
    pub ascii: bool,

    /// Show only the title, the end of the story and the axis of time, for a low window beside an
    /// agent's
    #[arg(long)]
    pub strip: bool,

    /// Ring the bell and show a notification of the terminal when this arrives while the browser is
    /// open
    #[arg(long, value_enum, value_delimiter = ',', value_name = "EVENT", env = "FORGE_NOTIFY")]
    pub notify: Vec<NotifyChoice>,

    /// TOML file that binds commands to other keys, such as `down = "j <down>"`; `tui-keys.toml`
    /// beside the user's settings by default
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

/// Whether the browser can run: no JSON is wanted, and stdin and stdout are a terminal that can
/// move the cursor (`TERM` is set, and not to `dumb`).
pub(crate) fn on_terminal(context: &Context) -> bool {
    let named = context.environment.text("TERM").is_some_and(|term| term != "dumb");
    named
        && !context.global.json
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
}

impl Verb for TuiArgs {
    const NAME: &'static str = "tui";
    type Opened = ();
    type Report = PrintedReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        if context.global.json {
            return Err(CommandError::invalid("'forge tui' draws, and has no JSON")
                .hinted("'forge checkpoint timeline --json' lists the moments"));
        }
        let keys = key_bindings(self, context)?;
        // A store that cannot be written can still be browsed.
        let store = workspace::open_store(context, StoreAccess::Write)
            .or_else(|_| workspace::open_store(context, StoreAccess::Follow))?;
        let session = context.session().map(str::to_owned);
        let name = match self.theme {
            _ if context.config.color() == ColorMode::Never => ThemeName::None,
            ThemeChoice::None => ThemeName::None,
            ThemeChoice::Auto => ThemeName::Sixteen,
            ThemeChoice::Dark => ThemeName::Dark,
            ThemeChoice::Light => ThemeName::Light,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale =
            locale.iter().find_map(|name| context.environment.text(name)).unwrap_or("UTF-8");
        let unicode = locale.to_ascii_uppercase().replace('-', "").contains("UTF8");
        let theme = Theme { name, ascii: self.ascii || !unicode };
        let triggers = enabled_triggers(context);
        let mut notified: Vec<NotifyEvent> =
            self.notify.iter().flat_map(|choice| choice.events()).copied().collect();
        notified.sort_unstable();
        notified.dedup();
        let host = Arc::new(TerminalHost {
            store: store.clone(),
            environment: context.environment.clone(),
            redactor: workspace::redactor(context).unwrap_or_default(),
            folder: context.cwd.clone(),
        });
        let strip_only = self.strip;
        // The store can be browsed without its remotes: one of their keys may be missing.
        let remotes = Remotes::of(context, &store).map(|all| all.known).unwrap_or_default();
        let options =
            BrowserOptions { clock, theme, keys, triggers, remotes, host, notified, strip_only };
        let outcome = forge_tui::run(store.clone(), session, &options).map_err(browser_error)?;
        workspace::catch_up_index(&store);
        if let BrowserOutcome::Signal(signal) = outcome {
            // The exit code that shells use for a process that a signal ended.
            context.exit_code = 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
        }
        Ok(PrintedReport)
    }
}

/// The functions of this program that the browser calls.
#[derive(Debug)]
struct TerminalHost {
    store: Store,
    environment: Environment,
    redactor: Redactor,
    /// The folder that paths are relative to.
    folder: PathBuf,
}

impl BrowserHost for TerminalHost {
    fn edit(&self, text: &str) -> EditedText {
        let failed = |problem: String| EditedText { text: text.to_owned(), problem: Some(problem) };
        let Some(editor) = text_editor::editor(&self.environment) else {
            return failed("neither VISUAL nor EDITOR names an editor".to_owned());
        };
        match text_editor::edit_text(editor, &self.environment, text) {
            Ok((text, status)) if status.success() => EditedText { text, problem: None },
            Ok((text, _)) => {
                EditedText { text, problem: Some(format!("the editor '{editor}' failed")) }
            }
            Err(error) => failed(format!("the editor '{editor}' cannot be used ({error})")),
        }
    }

    fn report(&self, session: &str, path: Option<&str>) -> Result<String, String> {
        self.write_report(session, path).map_err(|error| error.message_with_causes())
    }
}

impl TerminalHost {
    fn write_report(&self, session: &str, path: Option<&str>) -> Result<String, CommandError> {
        let session = workspace::named_session(&self.store, session)?;
        let limits = ReportLimits { zone: PageZone::Local, ..ReportLimits::default() };
        let model = read_page(&session, &session.head()?, &self.redactor, limits)?;
        let text = match path {
            Some(path) if path.ends_with(".md") => write_markdown(&model, false),
            _ => {
                let options = HtmlOptions { max_bytes: Some(MAX_BYTES), ..HtmlOptions::default() };
                write_page(&model, None, &options).html
            }
        };
        let failed = |what: &str, error| CommandError::io(&format!("cannot write {what}"), error);
        if let Some(path) = path {
            // An existing file is not overwritten.
            std::fs::File::create_new(self.folder.join(path))
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| failed(&format!("'{path}'"), error))?;
            return Ok(format!("the report is in {path}"));
        }
        let folder = self.environment.path("TMPDIR").unwrap_or_else(std::env::temp_dir);
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix("forge-report-").suffix(".html").tempfile_in(folder);
        let kept = file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            // The web browser reads it later.
            file.into_temp_path().keep().map_err(|error| error.error)
        });
        let path = kept.map_err(|error| failed("the report", error))?;
        match start_browser(&path.to_string_lossy()) {
            Ok(()) => Ok(format!("the report is in {} and in the web browser", path.display())),
            Err(error) => Ok(format!("no web browser ({error}): open {}", path.display())),
        }
    }
}

fn browser_error(error: BrowserError) -> CommandError {
    let kind = match &error {
        BrowserError::Keys(_) => CommandErrorKind::Invalid,
        BrowserError::Terminal(_) => CommandErrorKind::Unavailable,
        BrowserError::Worker => CommandErrorKind::Internal,
    };
    let message = error.to_string();
    match error {
        BrowserError::Terminal(cause) => CommandError::new(kind, message).caused_by(cause),
        _ => CommandError::new(kind, message),
    }
}

/// The maximum size of a file of key bindings, in bytes.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// Reads the key bindings in the file that was named, or else in the user's own, which may be
/// missing.
fn key_bindings(
    args: &TuiArgs,
    context: &Context,
) -> Result<BTreeMap<String, String>, CommandError> {
    let own = context.config.user_file().ok().map(|file| file.with_file_name("tui-keys.toml"));
    let path = match (&args.keys, own) {
        (Some(path), _) => context.cwd.join(path),
        (None, Some(path)) if path.exists() => path,
        (None, _) => return Ok(BTreeMap::new()),
    };
    let shown = path.display();
    let text = forge_store::plain_file::read_text(&path, MAX_KEYS_BYTES)
        .map_err(|error| CommandError::io_at("cannot read", &path, error))?;
    toml::from_str(&text).map_err(|error| {
        CommandError::invalid(format!("'{shown}' is not a table of keys: {}", error.message()))
            .hinted(
                "a line binds a command: down = \"j <down>\"; '?' in the browser names them all",
            )
    })
}
