//! `forge man`.

use crate::args::ForgeArgs;
use crate::args::example::with_examples;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::man::ManPagesReport;
use crate::verb::{EitherReport, RawReport, Verb, VerbResult};
use clap::CommandFactory;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Directory for the pages of all commands; without it the page of forge goes to standard
    /// output
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

impl Verb for ManArgs {
    const NAME: &'static str = "man";
    type Opened = ();
    type Report = EitherReport<RawReport, ManPagesReport>;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let tree = with_examples(ForgeArgs::command());
        let Some(directory) = &self.directory else {
            return Ok(EitherReport::First(RawReport(render_page(&tree)?)));
        };
        let directory = context.cwd.join(directory);
        fs::create_dir_all(&directory)
            .map_err(|error| CommandError::io_at("cannot make", &directory, error))?;
        let mut pages = Vec::new();
        write_pages(&tree, "forge", &directory, &mut pages)?;
        Ok(EitherReport::Second(ManPagesReport { pages }))
    }
}

/// Writes the page of a command and the pages of all commands below it that are not hidden, and
/// adds their names.
fn write_pages(
    command: &clap::Command,
    name: &str,
    directory: &Path,
    pages: &mut Vec<String>,
) -> Result<(), CommandError> {
    let file = format!("{name}.1");
    let path = directory.join(&file);
    fs::write(&path, render_page(&command.clone().name(name.to_owned()))?)
        .map_err(|error| CommandError::io_at("cannot write", &path, error))?;
    pages.push(file);
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(sub, &format!("{name}-{}", sub.get_name()), directory, pages)?;
    }
    Ok(())
}

fn render_page(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut text = Vec::new();
    // The short help leaves the global options out; a manual page describes all options.
    let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|error| CommandError::io("cannot render the manual", error))?;
    Ok(text)
}
