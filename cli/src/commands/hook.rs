//! `forge hook`.

use crate::context::Context;
use crate::hook;
use crate::verb::{PrintedReport, Verb, VerbResult};

/// Arguments of `forge hook`. They are not checked here, because an agent must not get an error: an
/// unknown agent goes to the log of the hooks.
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// Agent: claude, codex, gemini, cursor or opencode
    #[arg(value_name = "AGENT", default_value = "", hide_default_value = true)]
    pub agent: String,

    /// Event, as the agent calls it
    #[arg(value_name = "EVENT", default_value = "", hide_default_value = true)]
    pub event: String,
}

impl Verb for HookArgs {
    const NAME: &'static str = "hook";
    type Opened = ();
    type Report = PrintedReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        hook::run(&self.agent, &self.event, context);
        Ok(PrintedReport)
    }
}
