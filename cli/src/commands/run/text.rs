//! Templates and texts: what is filled, refused and found.

use super::look::ItemArgs;
use super::{found, named};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO, ErrorKind};
use crate::given::{self, Given};
use crate::report::run::{Audit, AuditFinding, Render};
use crate::workplace::{self, Access};
use forge_systems::run::{self, FindingKind, WorkflowRun, placeholders};
use std::path::PathBuf;

/// Arguments of `forge run render`.
#[derive(Debug, clap::Args)]
pub struct RenderArgs {
    /// Give the template: a text, '@FILE', or '-' for standard input
    #[arg(value_name = "TEMPLATE")]
    pub template: Given,

    /// Which item.
    #[command(flatten)]
    pub item: ItemArgs,
}

/// Arguments of `forge run audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Look through these files instead of the outputs of all runs
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Look through the outputs of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<Name>,

    /// Look for this alone
    #[arg(long, value_name = "KIND", value_parser = value::words::<FindingKind>())]
    pub only: Option<FindingKind>,
}

pub(super) fn render(args: &RenderArgs, context: &mut Context) -> Result<(), CommandError> {
    let template = args.template.read(context)?;
    let store = workplace::open(context, Access::Read)?;
    let run = found(&store, args.item.run.as_ref(), &args.item.item)?;
    let item = args.item.item.as_str();
    let text = run.render(&template, item)?.map_err(|refusal| {
        let kind =
            if refusal.missing.is_empty() { ErrorKind::Invalid } else { ErrorKind::NotFound };
        CommandError::new(kind, format!("the template is not filled: {refusal}")).hinted(format!(
            "'forge run path --run {} --item {item}' shows the steps that are finished",
            run.key()
        ))
    })?;
    if context.out.is_json() {
        let filled = placeholders(&template);
        let (run, item) = (run.key().to_owned(), item.to_owned());
        return context.out.emit(&Render { run, item, text, filled });
    }
    context.out.text(&text)
}

pub(super) fn audit(args: &AuditArgs, context: &mut Context) -> Result<(), CommandError> {
    let mut report = Audit { looked_at: 0, findings: Vec::new() };
    let only = |kind: FindingKind| args.only.is_none_or(|only| only == kind);
    for path in &args.files {
        let text = given::file(&context.cwd.join(path))?;
        report.looked_at += 1;
        let found = run::audit(&text).into_iter().filter(|finding| only(finding.kind));
        let file = path.display().to_string();
        report.findings.extend(found.map(|finding| AuditFinding::in_file(&file, finding)));
    }
    if args.files.is_empty() || args.run.is_some() {
        let store = workplace::open(context, Access::Read)?;
        let runs = match &args.run {
            Some(name) => vec![named(&store, name)?],
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
