//! Templates and texts: filling, refusing and searching.

use super::query::RunItemArgs;
use super::{find_run, named_run};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind, EXIT_NO};
use crate::report::run::{AuditFinding, RunAuditReport, RunRenderReport};
use crate::text_arg::{self, TextArg};
use crate::workspace::{self, StoreAccess};
use forge_systems::run::{self, FindingKind, WorkflowRun, placeholders};
use std::path::PathBuf;

/// Arguments of `forge run render`.
#[derive(Debug, clap::Args)]
pub struct RunRenderArgs {
    /// Template: a text, '@FILE', or '-' for standard input
    #[arg(value_name = "TEMPLATE")]
    pub template: TextArg,

    /// Which item.
    #[command(flatten)]
    pub item: RunItemArgs,
}

/// Arguments of `forge run audit`.
#[derive(Debug, clap::Args)]
pub struct RunAuditArgs {
    /// Files to search instead of the outputs of all runs
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Run whose outputs to search
    #[arg(long, value_name = "RUN")]
    pub run: Option<NameArg>,

    /// Only this kind of finding
    #[arg(long, value_name = "KIND", value_parser = value::word_parser::<FindingKind>())]
    pub only: Option<FindingKind>,
}

pub(super) fn render(args: &RunRenderArgs, context: &mut Context) -> Result<(), CommandError> {
    let template = args.template.read(context)?;
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let run = find_run(&store, args.item.run.as_ref(), &args.item.item)?;
    let item = args.item.item.as_str();
    let text = run.render(&template, item)?.map_err(|refusal| {
        let kind = if refusal.missing.is_empty() {
            CommandErrorKind::Invalid
        } else {
            CommandErrorKind::NotFound
        };
        CommandError::new(kind, format!("the template is not filled: {refusal}")).hinted(format!(
            "'forge run path --run {} --item {item}' shows the steps that are finished",
            run.key()
        ))
    })?;
    if context.out.is_json() {
        let filled = placeholders(&template);
        let (run, item) = (run.key().to_owned(), item.to_owned());
        return context.out.emit(&RunRenderReport { run, item, text, filled });
    }
    context.out.text(&text)
}

pub(super) fn audit(args: &RunAuditArgs, context: &mut Context) -> Result<(), CommandError> {
    let mut report = RunAuditReport { looked_at: 0, findings: Vec::new() };
    let only = |kind: FindingKind| args.only.is_none_or(|only| only == kind);
    for path in &args.files {
        let text = text_arg::read_file(&context.cwd.join(path))?;
        report.looked_at += 1;
        let found = run::audit(&text).into_iter().filter(|finding| only(finding.kind));
        let file = path.display().to_string();
        report.findings.extend(found.map(|finding| AuditFinding::in_file(&file, finding)));
    }
    if args.files.is_empty() || args.run.is_some() {
        let store = workspace::open_store(context, StoreAccess::Read)?;
        let runs = match &args.run {
            Some(name) => vec![named_run(&store, name)?],
            None => WorkflowRun::all(&store)?,
        };
        for run in runs {
            for output in run.all_outputs()? {
                report.looked_at += 1;
                for finding in run::audit(&output.content) {
                    if only(finding.kind) {
                        report.findings.push(AuditFinding::in_output(run.key(), &output, finding));
                    }
                }
            }
        }
    }
    if !report.findings.is_empty() {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&report)
}
