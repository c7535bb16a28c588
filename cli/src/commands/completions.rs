//! `forge completions`.

use crate::args::ForgeArgs;
use crate::context::Context;
use crate::verb::{RawReport, Verb, VerbResult};
use clap::CommandFactory;
use clap_complete::Shell;

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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut ForgeArgs::command(), "forge", &mut script);
        Ok(RawReport(script))
    }
}
