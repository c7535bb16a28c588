//! `forge import langgraph` runs forge's Python package, because LangGraph's savers are in Python.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::import::LangGraphImportReport;
use crate::verb::{Verb, VerbResult};
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// The interpreter, unless `FORGE_PYTHON` names another one.
const DEFAULT_PYTHON: &str = "python3";

/// What to do if the package is missing or does not fit.
const INSTALL_HINT: &str = "install it in a clone of forge with 'pip install ./python langgraph', \
                            and name the interpreter that has it in FORGE_PYTHON";

/// Arguments of `forge import langgraph`.
#[derive(Debug, clap::Args)]
pub struct LangGraphImport {
    /// Saver that has the threads ('sqlite' or 'postgres') and the path or address of its database
    #[arg(long, num_args = 2, value_names = ["SAVER", "DATABASE"], required = true)]
    from: Vec<OsString>,
}

impl Verb for LangGraphImport {
    const NAME: &'static str = "import langgraph";
    type Opened = ();
    type Report = LangGraphImportReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let store = context.store_directory()?;
        let python = context.environment.value("FORGE_PYTHON");
        let python = python.map_or_else(|| DEFAULT_PYTHON.into(), OsString::from);
        let interpreter = python.display().to_string();
        let ended = Command::new(&python)
            .args(["-m", "forge_store.langgraph", "import", "--json", "--store"])
            .arg(store)
            .arg("--from")
            .args(&self.from)
            .current_dir(&context.cwd)
            .stdin(Stdio::null())
            .output();
        let ended = ended.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                CommandError::not_found(format!("there is no interpreter '{interpreter}'"))
                    .hinted("install Python 3.10 or newer, or name one in FORGE_PYTHON")
            }
            _ => CommandError::io(&format!("cannot start '{interpreter}'"), error),
        })?;
        let stderr = String::from_utf8_lossy(&ended.stderr);
        if ended.status.success() {
            return serde_json::from_slice(&ended.stdout).map_err(|error| {
                let what =
                    format!("'{interpreter}' has another version of the package forge_store");
                CommandError::new(CommandErrorKind::Unsupported, what)
                    .hinted(INSTALL_HINT)
                    .caused_by(error)
            });
        }
        let last_line = stderr.trim().lines().last().unwrap_or_default();
        // The package prints its own errors in this form, and says in them what to do.
        if let Some(own) = last_line.strip_prefix("error: ") {
            return Err(CommandError::invalid(own));
        }
        if let Some((_, missing)) = last_line.split_once("No module named ") {
            // What follows is advice for programs that use the package.
            let missing = missing.split([')', ';']).next().unwrap_or(missing);
            let what = format!("'{interpreter}' lacks what the import needs: no module {missing}");
            return Err(CommandError::not_found(what).hinted(INSTALL_HINT));
        }
        if last_line.is_empty() {
            let what = format!("'{interpreter}' ended without a message ({})", ended.status);
            return Err(CommandError::new(CommandErrorKind::Unavailable, what).hinted(
                "what was imported stays; run the same command again, with more free memory if it \
                 was killed",
            ));
        }
        Err(CommandError::invalid(last_line))
    }
}
