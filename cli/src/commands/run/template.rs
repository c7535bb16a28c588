//! `forge run render` and `forge run audit`.

use super::query::RunItemArgs;
use super::{find_run, named_run};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::run::{AuditFinding, RunAuditReport, RunRenderReport};
use crate::text_arg::{self, TextArg};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_systems::run::{self, FindingKind, WorkflowRun, placeholders};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct RunRenderArgs {
    /// Template: a text, '@FILE', or '-' for standard input
    #[arg(value_name = "TEMPLATE")]
    pub template: TextArg,

    #[command(flatten)]
    pub item: RunItemArgs,
}

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

impl Verb for RunRenderArgs {
    const NAME: &'static str = "run render";
    type Opened = OpenedStore;
    type Report = RunRenderReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let template = self.template.read(context)?;
        let run = find_run(store, self.item.run.as_ref(), &self.item.item)?;
        let item = self.item.item.as_str();
        let text = run.render(&template, item)?.map_err(|refusal| {
            let kind = if refusal.missing.is_empty() {
                CommandErrorKind::Invalid
            } else {
                CommandErrorKind::NotFound
            };
            CommandError::new(kind, format!("the template is not filled: {refusal}")).hinted(
                format!(
                    "'forge run path --run {} --item {item}' shows the steps that are finished",
                    run.key()
                ),
            )
        })?;
        let filled = placeholders(&template);
        Ok(RunRenderReport { run: run.key().to_owned(), item: item.to_owned(), text, filled })
    }
}

impl Verb for RunAuditArgs {
    const NAME: &'static str = "run audit";
    type Opened = ();
    type Report = RunAuditReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let mut report = RunAuditReport { looked_at: 0, findings: Vec::new() };
        let only = |kind: FindingKind| self.only.is_none_or(|only| only == kind);
        for path in &self.files {
            let text = text_arg::read_file(&context.cwd.join(path))?;
            report.looked_at += 1;
            let found = run::audit(&text).into_iter().filter(|finding| only(finding.kind));
            let file = path.display().to_string();
            report.findings.extend(found.map(|finding| AuditFinding::in_file(&file, finding)));
        }
        if self.files.is_empty() || self.run.is_some() {
            let store = &workspace::open_store(context, StoreAccess::Read)?;
            let runs = match &self.run {
                Some(name) => vec![named_run(store, name)?],
                None => WorkflowRun::all(store)?,
            };
            for run in runs {
                for output in run.all_outputs()? {
                    report.looked_at += 1;
                    for finding in run::audit(&output.content) {
                        if only(finding.kind) {
                            report.findings.push(AuditFinding::in_output(
                                run.key(),
                                &output,
                                finding,
                            ));
                        }
                    }
                }
            }
        }
        Ok(report)
    }
}
