//! `forge completions`.

use crate::args::ForgeArgs;
use crate::context::Context;
use crate::error::CommandError;
use clap::CommandFactory;
use clap_complete::Shell;

/// Arguments of `forge completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Prints the script; `--json` has no effect, because the script is the result.
pub fn run(args: &CompletionsArgs, context: &mut Context) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut ForgeArgs::command(), "forge", &mut script);
    context.out.raw(&script)
}
