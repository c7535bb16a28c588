//! `forge import langgraph`, which the Python package does: LangGraph's savers are in Python.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::import::LangGraphImportReport;
use crate::verb::{Verb, VerbResult};
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// The interpreter, unless `FORGE_PYTHON` names one.
const PYTHON: &str = "python3";

const INSTALL: &str = "install it in a clone of forge with 'pip install ./python langgraph', and \
                       name the interpreter that has it in FORGE_PYTHON";

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
        let python = python.map_or_else(|| PYTHON.into(), OsString::from);
        let shown = python.display().to_string();
        let done = Command::new(&python)
            .args(["-m", "forge_store.langgraph", "import", "--json", "--store"])
            .arg(store)
            .arg("--from")
            .args(&self.from)
            .current_dir(&context.cwd)
            .stdin(Stdio::null())
            .output();
        let done = done.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                CommandError::not_found(format!("there is no interpreter '{shown}'"))
                    .hinted("install Python 3.10 or newer, or name one in FORGE_PYTHON")
            }
            _ => CommandError::io(&format!("cannot start '{shown}'"), error),
        })?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() {
            return serde_json::from_slice(&done.stdout).map_err(|error| {
                let what = format!("the package forge_store of '{shown}' is of another version");
                CommandError::new(CommandErrorKind::Unsupported, what)
                    .hinted(INSTALL)
                    .caused_by(error)
            });
        }
        let last = said.trim().lines().last().unwrap_or_default();
        if last.contains("No module named") || last.contains("ModuleNotFoundError") {
            let what = format!("'{shown}' lacks what the import needs: {last}");
            return Err(CommandError::not_found(what).hinted(INSTALL));
        }
        Err(CommandError::invalid(last.trim_start_matches("error: ").to_owned()))
    }
}
