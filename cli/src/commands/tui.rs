//! `forge tui`.

use crate::args::ColorMode;
use crate::context::{Context, clock};
use crate::error::{CommandError, CommandErrorKind};
use crate::session_writer::enabled_triggers;
use crate::verb::{PrintedReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_tui::theme::{Theme, ThemeName};
use forge_tui::{BrowserError, BrowserOptions, BrowserOutcome};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

/// What the terminal looks like.
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

#[derive(Debug, Default, clap::Args)]
pub struct TuiArgs {
    /// Colours
    #[arg(long, value_enum, default_value_t, env = "FORGE_THEME")]
    pub theme: ThemeChoice,

    /// Draw with ASCII only
    #[arg(long)]
    pub ascii: bool,

    /// TOML file that binds commands to other keys, such as `down = "j <down>"`; `tui-keys.toml`
    /// beside the user's settings by default
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

/// Whether there is a terminal to draw on and to read keys from.
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
            _ if context.color() == ColorMode::Never => ThemeName::None,
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
        let options = BrowserOptions { clock, theme, keys, triggers };
        let outcome = forge_tui::run(store.clone(), session, &options).map_err(browser_error)?;
        workspace::catch_up_index(&store);
        if let BrowserOutcome::Signal(signal) = outcome {
            // The exit code that shells use for a process that a signal ended.
            context.exit_code = 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
        }
        Ok(PrintedReport)
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

/// The maximum size of a file of key bindings.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// The key bindings in the given file, or else in the user's own.
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
        .map_err(|error| CommandError::io(&format!("cannot read '{shown}'"), error))?;
    toml::from_str(&text).map_err(|error| {
        CommandError::invalid(format!("'{shown}' is not a table of keys: {}", error.message()))
            .hinted(
                "a line binds a command: down = \"j <down>\"; '?' in the browser names them all",
            )
    })
}
