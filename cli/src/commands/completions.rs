//! `forge completions`.

use crate::args::ForgeArgs;
use crate::context::Context;
use crate::verb::{RawReport, Verb, VerbResult};
use clap::CommandFactory;
use clap_complete::Shell;

/// The scripts that call `forge complete`, and so also complete ids, tags, branches and sessions of
/// the store. The scripts for other shells only complete the words that clap knows.
const BASH: &str = include_str!("completions/forge.bash");
const ZSH: &str = include_str!("completions/forge.zsh");
const FISH: &str = include_str!("completions/forge.fish");

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

impl Verb for CompletionsArgs {
    const NAME: &'static str = "completions";
    type Opened = ();
    type Report = RawReport;

    fn run(&self, _: &(), _context: &mut Context) -> VerbResult<Self> {
        let script = match self.shell {
            Shell::Bash => BASH.as_bytes().to_vec(),
            Shell::Zsh => ZSH.as_bytes().to_vec(),
            Shell::Fish => FISH.as_bytes().to_vec(),
            other => {
                let mut script = Vec::new();
                clap_complete::generate(other, &mut ForgeArgs::command(), "forge", &mut script);
                script
            }
        };
        Ok(RawReport(script))
    }
}
