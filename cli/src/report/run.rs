//! Reports of workflow runs.

use crate::error::{EXIT_NO, EXIT_OK};
use crate::output::{Report, ReportForm, Screen, TableCell, TextTable, Tone, cells};
use forge_store::model::claim::VocabularyWord as _;
use forge_store::model::{Timestamp, Value};
use forge_systems::run::{
    self, LoadedItem, PromptFinding, RunHistoryEntry, RunSummary, StepOutput,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// An item of a run: its steps and its data.
#[derive(Debug, Serialize)]
pub struct ItemJson {
    /// Its name.
    pub item: String,
    /// Its status: `active` or `terminal`.
    pub status: &'static str,
    /// Whether it has finished.
    pub is_terminal: bool,
    /// Its current step: the next one if it is known, else the one recorded last.
    pub at: Option<String>,
    /// The step that was recorded last.
    pub step: Option<String>,
    /// The display name of that step.
    pub name: Option<String>,
    /// The next step, if it is known.
    pub next: Option<String>,
    /// The position in the workflow of the step that was recorded last.
    pub order: Option<i64>,
    /// The finished steps in the order in which they were done.
    pub path: Vec<String>,
    /// The caller's data about it.
    pub data: Option<Value>,
    /// When something about it was last recorded.
    pub recorded_at: Option<Timestamp>,
}

impl From<run::RunItem> for ItemJson {
    fn from(item: run::RunItem) -> Self {
        Self {
            status: item.status.word(),
            is_terminal: !item.is_active(),
            at: item.current_step().map(str::to_owned),
            item: item.item,
            step: item.step,
            name: item.name,
            next: item.next,
            order: item.order,
            path: item.path,
            data: item.data,
            recorded_at: item.recorded_at,
        }
    }
}

impl ItemJson {
    fn cells(&self) -> Vec<TableCell> {
        cells![
            Id: &self.item, self.status, self.at.as_deref().unwrap_or("-"),
            self.order.map(|order| order.to_string()).unwrap_or_default(), self.path.join(" > "),
        ]
    }
}

const ITEM_TITLES: [&str; 5] = ["Item", "Status", "At", "Order", "Done"];

#[derive(Debug, Serialize)]
pub struct RunOutputReport {
    /// The run; null if nothing was found.
    pub run: Option<String>,
    pub item: String,
    pub step: String,
    /// The output; null if there is none and that was allowed.
    pub output: Option<StepOutput>,
}

impl Report for RunOutputReport {
    fn form(&self) -> ReportForm<'_> {
        ReportForm::Text(self.output.as_ref().map_or("", |output| &output.content))
    }
}

/// Several outputs of an item.
#[derive(Debug, Serialize)]
pub struct RunOutputsReport {
    pub run: String,
    pub item: String,
    /// The outputs, by step.
    pub outputs: BTreeMap<String, String>,
    /// The requested steps without an output.
    pub missing: Vec<String>,
}

impl Report for RunOutputsReport {
    fn human(&self, screen: &mut Screen) {
        for (step, content) in &self.outputs {
            screen.heading(step);
            screen.paragraph(Tone::Plain, 2, content);
        }
        if !self.missing.is_empty() {
            screen.gap();
            screen.warning(&format!("No output: {}", self.missing.join(", ")));
        }
    }
}

/// The answer whether a step is finished.
#[derive(Debug, Serialize)]
pub struct RunExistsReport {
    /// The run; null if no run has the item.
    pub run: Option<String>,
    pub item: String,
    pub step: String,
    /// Whether it has an output.
    pub exists: bool,
}

impl Report for RunExistsReport {
    fn exit_code(&self) -> u8 {
        if self.exists { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        screen.plain(if self.exists { "yes" } else { "no" });
    }
}

/// The path of an item through the steps.
#[derive(Debug, Serialize)]
pub struct RunPathReport {
    pub run: String,
    pub item: String,
    /// Its current step.
    pub at: Option<String>,
    /// The finished steps in the order in which they were done.
    pub path: Vec<String>,
}

impl Report for RunPathReport {
    fn human(&self, screen: &mut Screen) {
        screen.plain(&self.path.join(" > "));
    }
}

/// The whole state of an item.
#[derive(Debug, Serialize)]
pub struct RunItemReport {
    pub run: String,
    #[serde(flatten)]
    pub item: ItemJson,
    /// Its outputs in the order of its path.
    pub outputs: Vec<StepOutput>,
}

impl Report for RunItemReport {
    fn human(&self, screen: &mut Screen) {
        let item = &self.item;
        screen.put(Tone::Id, &item.item);
        screen.plain(&format!(" of the run {}: {}", self.run, item.status));
        if let Some(next) = &item.next {
            screen.plain(&format!("  next {next}"));
        }
        if !item.path.is_empty() {
            screen.plain(&format!("  done {}", item.path.join(" > ")));
        }
        if let Some(data) = &item.data {
            screen.paragraph(Tone::Dim, 2, &serde_json::to_string(data).unwrap_or_default());
        }
        for output in &self.outputs {
            let name = output.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            screen.heading(&format!("{}{name}", output.step));
            screen.paragraph(Tone::Plain, 2, &output.content);
        }
    }
}

#[derive(Debug, Serialize)]
pub struct RunJson {
    /// Its name.
    pub run: String,
    /// Its status: `running`, `finished` or `failed`.
    pub status: &'static str,
    /// When it began.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The error that made it fail.
    pub error: Option<String>,
    /// How many items it has.
    pub items: i64,
    /// How many of them have finished.
    pub terminal: i64,
    /// When something about it was last recorded.
    pub last_event: Timestamp,
}

impl From<RunSummary> for RunJson {
    fn from(one: RunSummary) -> Self {
        let run::RunState { status, started_at, ended_at, error, items, terminal, .. } = one.state;
        let (run, last_event) = (one.key, one.last_event);
        let status = status.word();
        Self { run, status, started_at, ended_at, error, items, terminal, last_event }
    }
}

/// How many items are at a step.
#[derive(Debug, Serialize)]
pub struct StepItemCount {
    /// The current step; empty for items that have none yet.
    pub step: String,
    pub items: usize,
}

/// A run as a whole.
#[derive(Debug, Serialize)]
pub struct RunShowReport {
    #[serde(flatten)]
    pub run: RunJson,
    pub input: Option<Value>,
    pub steps: Vec<StepItemCount>,
}

impl Report for RunShowReport {
    const SCHEMA: Option<&'static str> = Some("forge.run.show-run/1");

    fn human(&self, screen: &mut Screen) {
        let run = &self.run;
        screen.put(Tone::Id, &run.run);
        screen.plain(&format!(
            " is {}: {} of {} items have finished",
            run.status, run.terminal, run.items
        ));
        if let Some(error) = &run.error {
            screen.paragraph(Tone::Bad, 2, error);
        }
        for step in &self.steps {
            let at = if step.step.is_empty() { "not begun" } else { &step.step };
            screen.plain(&format!("  {at}: {}", step.items));
        }
    }
}

/// Several runs.
#[derive(Debug, Serialize)]
pub struct RunListReport {
    pub runs: Vec<RunJson>,
}

impl Report for RunListReport {
    fn human(&self, screen: &mut Screen) {
        if self.runs.is_empty() {
            return screen.dim("No runs");
        }
        let mut table =
            TextTable::new(&["Run", "Status", "Items ended", "Items", "Began"]).right(2).right(3);
        for run in &self.runs {
            let began = run.started_at.map(|time| screen.ago(time)).unwrap_or_default();
            table.row(cells![Id: &run.run, run.status, run.terminal, run.items, Dim: began]);
        }
        screen.table(&table);
    }
}

/// The history of an item, or of one of its outputs.
#[derive(Debug, Serialize)]
pub struct RunHistoryReport {
    pub run: String,
    pub item: String,
    /// The step, if its outputs were requested.
    pub step: Option<String>,
    /// The states of the item, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<RunHistoryEntry<ItemJson>>>,
    /// The outputs of the step, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<RunHistoryEntry<StepOutput>>>,
}

impl Report for RunHistoryReport {
    fn human(&self, screen: &mut Screen) {
        for one in self.states.iter().flatten() {
            let at = screen.ago(one.time);
            let text = one.value.as_ref().map_or("cleared".to_owned(), |item| {
                let step = item.step.as_deref().unwrap_or("-");
                let next = item.next.as_ref().map(|next| format!(", next {next}"));
                format!("{step}{} ({})", next.unwrap_or_default(), item.status)
            });
            screen.plain(&format!("#{} {text}, {}, {at}", one.sequence, one.verb));
        }
        for one in self.outputs.iter().flatten() {
            let at = screen.ago(one.time);
            screen.line(Tone::Heading, &format!("#{} {}, {at}", one.sequence, one.verb));
            match &one.value {
                Some(output) => screen.paragraph(Tone::Plain, 2, &output.content),
                None => screen.dim("  cleared"),
            }
        }
    }
}

/// The items at a step.
#[derive(Debug, Serialize)]
pub struct RunAtStepReport {
    pub run: String,
    /// The step whose items were requested; null if a position was named.
    pub step: Option<String>,
    /// The position in the workflow whose items were requested; null if a step was named.
    pub order: Option<i64>,
    pub items: Vec<ItemJson>,
}

impl Report for RunAtStepReport {
    fn human(&self, screen: &mut Screen) {
        items(screen, self.items.iter().map(ItemJson::cells).collect());
    }
}

fn items(screen: &mut Screen, rows: Vec<Vec<TableCell>>) {
    if rows.is_empty() {
        return screen.dim("No items");
    }
    let mut table = TextTable::new(&ITEM_TITLES).right(3);
    rows.into_iter().for_each(|row| table.row(row));
    screen.table(&table);
}

#[derive(Debug, Serialize)]
pub struct ResumedItem {
    #[serde(flatten)]
    pub item: ItemJson,
    /// The output of each finished step, which must not be repeated.
    pub outputs: BTreeMap<String, String>,
}

/// How to resume a run.
#[derive(Debug, Serialize)]
pub struct RunResumeReport {
    pub run: String,
    pub status: &'static str,
    /// How many items it has.
    pub total: usize,
    /// How many of them have steps left.
    pub active: usize,
    pub items: Vec<ResumedItem>,
}

impl RunResumeReport {
    pub fn new(run: &str, resume: run::ResumedRun, only_active: bool) -> Self {
        let (total, active) = (resume.items.len(), resume.active().count());
        let wanted = |one: &LoadedItem| !only_active || one.item.is_active();
        let resumed_item = |one: LoadedItem| ResumedItem {
            outputs: one.outputs.into_iter().map(|output| (output.step, output.content)).collect(),
            item: one.item.into(),
        };
        Self {
            run: run.to_owned(),
            status: resume.run.status.word(),
            total,
            active,
            items: resume.items.into_iter().filter(wanted).map(resumed_item).collect(),
        }
    }
}

impl Report for RunResumeReport {
    fn human(&self, screen: &mut Screen) {
        let (active, total) = (self.active, self.total);
        screen.put(Tone::Id, &self.run);
        screen.plain(&format!(" is {}: {active} of {total} items are active", self.status));
        items(screen, self.items.iter().map(|one| one.item.cells()).collect());
    }
}

/// A template that was filled.
#[derive(Debug, Serialize)]
pub struct RunRenderReport {
    pub run: String,
    pub item: String,
    pub text: String,
    /// The placeholders that were filled.
    pub filled: Vec<String>,
}

impl Report for RunRenderReport {
    fn form(&self) -> ReportForm<'_> {
        ReportForm::Text(&self.text)
    }
}

/// A finding in an output or a file.
#[derive(Debug, Serialize)]
pub struct AuditFinding {
    /// The run; null for a file.
    pub run: Option<String>,
    /// The item; null for a file.
    pub item: Option<String>,
    /// The step; null for a file.
    pub step: Option<String>,
    /// The file; null for an output.
    pub file: Option<String>,
    #[serde(flatten)]
    pub finding: PromptFinding,
}

impl AuditFinding {
    pub fn in_file(file: &str, finding: PromptFinding) -> Self {
        Self { run: None, item: None, step: None, file: Some(file.to_owned()), finding }
    }

    pub fn in_output(run: &str, output: &StepOutput, finding: PromptFinding) -> Self {
        let (item, step) = (Some(output.item.clone()), Some(output.step.clone()));
        Self { run: Some(run.to_owned()), item, step, file: None, finding }
    }

    fn place(&self) -> String {
        match (&self.file, &self.run, &self.item, &self.step) {
            (Some(file), ..) => format!("{file}:{}", self.finding.line),
            (None, Some(run), Some(item), Some(step)) => format!("{run} {item} {step}"),
            _ => String::new(),
        }
    }
}

/// The result of an audit of outputs and files.
#[derive(Debug, Serialize)]
pub struct RunAuditReport {
    /// How many outputs and files were examined.
    pub looked_at: usize,
    pub findings: Vec<AuditFinding>,
}

impl Report for RunAuditReport {
    fn exit_code(&self) -> u8 {
        if self.findings.is_empty() { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        if self.findings.is_empty() {
            return screen.plain(&format!("Nothing found in {} texts", self.looked_at));
        }
        let mut table = TextTable::new(&["Where", "What", "Found"]);
        for finding in &self.findings {
            table.row(cells![
                Id: finding.place(), finding.finding.kind.word(), &finding.finding.found,
            ]);
        }
        screen.table(&table);
    }
}
