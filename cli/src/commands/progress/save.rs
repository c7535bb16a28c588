//! `forge progress save`: saves a document, a stream of documents in one long-running process, or
//! reports about items.

use super::named_execution;
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::progress::{ProgressItemReport, ProgressSaveReport};
use crate::text_arg;
use crate::verb::{Opened, OpenedStore, PrintedReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::model::claim::VocabularyWord;
use forge_store::model::{Timestamp, Value};
use forge_store::store::{Store, WriteContext};
use forge_systems::progress::{
    FailureClass, ItemReport, PipelineExecution, ProgressDocument, validate,
};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct ProgressSaveArgs {
    /// Review
    #[arg(long, value_name = "REVIEW")]
    pub review: NameArg,

    /// Execution; created if it does not exist
    #[arg(long, value_name = "EXECUTION")]
    pub execution: NameArg,

    /// Stage, if the document does not name it
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<NameArg>,

    /// Document to save; '-' saves each JSON document on standard input as it comes
    #[arg(value_name = "FILE|-", required_unless_present_any = ["item_done", "item_failed"])]
    pub file: Option<PathBuf>,

    /// Item that is done; can be repeated
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    pub item_done: Vec<NameArg>,

    /// Item that failed; can be repeated
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    pub item_failed: Vec<NameArg>,

    /// Class of the failure
    #[arg(long, value_name = "CLASS", requires = "item_failed", value_parser = value::word_parser::<FailureClass>())]
    pub class: Option<FailureClass>,

    /// What went wrong
    #[arg(
        long,
        value_name = "TEXT",
        requires = "item_failed",
        allow_hyphen_values = true,
        value_parser = value::non_empty_text
    )]
    pub error: Option<String>,
}

impl Verb for ProgressSaveArgs {
    const NAME: &'static str = "progress save";
    type Opened = ();
    type Report = PrintedReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let opened = match self.file.as_deref() {
            Some(path) if path == Path::new("-") => stream(self, context)?,
            Some(path) => {
                let text = text_arg::read_file(&context.cwd.join(path))?;
                let shown = path.display();
                let value = serde_json::from_str(&text).map_err(|error| {
                    CommandError::invalid(format!("'{shown}' is not a JSON document"))
                        .caused_by(error)
                })?;
                // The document is read before the store is opened: a bad one must create nothing.
                let input = ProgressInput::read(value, self.stage.as_ref())?;
                let opened = OpenedStore::open(self, context)?;
                save_input(self, context, &opened.store, context.now, input)?;
                opened
            }
            None => report_items(self, context)?,
        };
        opened.finish(context);
        Ok(PrintedReport)
    }
}

/// A document to save, or a report about one item.
enum ProgressInput {
    Document(Box<ProgressDocument>),
    Item(ItemInput),
}

/// A report about one item.
struct ItemInput {
    id: String,
    /// The stage of the item; `None` for the stage of the saved document.
    stage: Option<String>,
    report: ItemReport,
}

impl ProgressInput {
    fn read(value: Value, stage: Option<&NameArg>) -> Result<Self, CommandError> {
        let stage = stage.map(NameArg::as_str);
        let text = |name: &str| match value.field(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(CommandError::invalid(format!("'{name}' must be a text"))),
        };
        let (id, report) = match (text("item_done")?, text("item_failed")?) {
            (None, None) => {
                let document = ProgressDocument::read(value, stage);
                return document
                    .map(|document| Self::Document(Box::new(document)))
                    .map_err(|shape| CommandError::invalid(shape.to_string()));
            }
            (Some(_), Some(_)) => {
                return Err(CommandError::invalid(
                    "a report is about one item: report 'item_done' and 'item_failed' in two \
                    documents",
                ));
            }
            (Some(id), None) => (id, ItemReport::Done),
            (None, Some(id)) => {
                let class = text("class")?.map(|class| class.parse::<FailureClass>()).transpose();
                let class = class.map_err(|error| CommandError::invalid(error.to_string()))?;
                (id, ItemReport::Failed { class, error: text("error")? })
            }
        };
        let own = text("stage")?;
        if let (Some(own), Some(said)) = (own.as_deref(), stage)
            && own != said
        {
            return Err(CommandError::invalid(format!("its stage is '{own}', not '{said}'")));
        }
        let stage = own.or_else(|| stage.map(str::to_owned));
        Ok(Self::Item(ItemInput { id, stage, report }))
    }
}

/// Saves each document on standard input as it comes. It is durable before its report is printed.
fn stream(args: &ProgressSaveArgs, context: &mut Context) -> Result<OpenedStore, CommandError> {
    let opened = OpenedStore::open(args, context)?;
    let maintainer = opened.store.maintainer();
    let input = BufReader::new(io::stdin().lock());
    let documents = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
    for (number, value) in (1_u64..).zip(documents) {
        let within = |error: CommandError| {
            error
                .with_context(format!("cannot save document {number} of standard input"))
                .hinted("those before it are saved")
        };
        let value = value
            .map_err(|error| within(CommandError::invalid("it is not JSON").caused_by(error)))?;
        let input = ProgressInput::read(value, args.stage.as_ref()).map_err(within)?;
        let now = context.current_time()?;
        save_input(args, context, &opened.store, now, input).map_err(within)?;
    }
    drop(maintainer);
    Ok(opened)
}

/// Saves one document or report, and creates the execution if there is none. A report without a
/// stage creates nothing: an earlier document must have named the stage.
fn save_input(
    args: &ProgressSaveArgs,
    context: &mut Context,
    store: &Store,
    now: Timestamp,
    input: ProgressInput,
) -> Result<(), CommandError> {
    let write_context =
        WriteContext { now, ..workspace::write_context(context, ProgressSaveArgs::NAME) };
    let execution = match &input {
        ProgressInput::Item(ItemInput { stage: None, .. }) => {
            named_execution(store, &args.review, &args.execution)
                .map_err(|error| error.hinted("'--stage STAGE' begins it with this item"))?
        }
        _ => PipelineExecution::open_or_create(
            store,
            &write_context,
            args.review.as_str(),
            args.execution.as_str(),
        )?,
    };
    match input {
        ProgressInput::Item(item) => report(context, &write_context, &execution, item),
        ProgressInput::Document(document) => {
            let done = execution.save(&write_context, &document)?;
            let saved = execution.document()?.unwrap_or(*document);
            let found = validate(&saved, now);
            let faults = found.refusals.into_iter().chain(found.warnings);
            let warnings: Vec<String> = faults.map(|fault| fault.message).collect();
            context.out.emit(
                ProgressSaveArgs::NAME,
                &ProgressSaveReport::new(&execution, &saved, &done, warnings),
            )
        }
    }
}

/// Saves the reports about items that the arguments contain.
fn report_items(
    args: &ProgressSaveArgs,
    context: &mut Context,
) -> Result<OpenedStore, CommandError> {
    let opened = OpenedStore::open(args, context)?;
    let failed = ItemReport::Failed { class: args.class, error: args.error.clone() };
    let done = args.item_done.iter().map(|id| (id, &ItemReport::Done));
    for (id, report) in done.chain(args.item_failed.iter().map(|id| (id, &failed))) {
        let item = ItemInput {
            id: id.as_str().to_owned(),
            stage: args.stage.as_ref().map(|stage| stage.as_str().to_owned()),
            report: report.clone(),
        };
        save_input(args, context, &opened.store, context.now, ProgressInput::Item(item))?;
    }
    Ok(opened)
}

fn report(
    context: &mut Context,
    write_context: &WriteContext,
    execution: &PipelineExecution,
    item: ItemInput,
) -> Result<(), CommandError> {
    let ItemInput { id, stage, report } = item;
    let stage = match stage {
        Some(stage) => stage,
        None => {
            let document = execution.document()?;
            let stage = document.as_ref().and_then(ProgressDocument::stage).map(str::to_owned);
            stage.ok_or_else(|| {
                CommandError::invalid("the stage is unknown: give it with '--stage'")
            })?
        }
    };
    let done = execution.report(write_context, &stage, &id, &report)?;
    let (status, class) = match &report {
        ItemReport::Done => ("done", None),
        ItemReport::Failed { class, error } => {
            let guessed = error.as_deref().and_then(FailureClass::of_message);
            ("failed", class.or(guessed).map(VocabularyWord::word))
        }
    };
    context.out.emit(
        ProgressSaveArgs::NAME,
        &ProgressItemReport::new(execution, stage, &id, (status, class), &done),
    )
}
