//! `forge hook`.

use crate::context::Context;
use crate::error::CommandError;
use crate::hook;

/// Arguments of `forge hook`. Any arguments are accepted, because an agent must not get an error.
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// Agent: claude, codex, gemini, cursor or opencode
    #[arg(value_name = "AGENT", default_value = "", hide_default_value = true)]
    pub agent: String,

    /// Event, as the agent calls it
    #[arg(value_name = "EVENT", default_value = "", hide_default_value = true)]
    pub event: String,
}

/// Runs `forge hook`.
pub fn run(args: &HookArgs, context: &mut Context) -> Result<(), CommandError> {
    hook::run(&args.agent, &args.event, context);
    Ok(())
}
