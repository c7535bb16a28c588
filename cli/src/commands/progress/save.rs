//! Saving: one document, or a stream of them in one long process.

use super::named;
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::given;
use crate::report::progress::{Reported, Saved};
use crate::workplace::{self, Access};
use forge_store::model::claim::VocabularyWord;
use forge_store::model::{Timestamp, Value};
use forge_store::store::{Store, WriteContext};
use forge_systems::progress::{
    FailureClass, ItemReport, PipelineExecution, ProgressDocument, validate,
};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// Arguments of `forge progress save`.
#[derive(Debug, clap::Args)]
pub struct SaveArgs {
    /// Name the review
    #[arg(long, value_name = "REVIEW")]
    pub review: Name,

    /// Name the execution; it is made where there is none
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Name,

    /// Name the stage, if the document does not
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<Name>,

    /// Save this document; of '-' each JSON document on standard input, as it comes
    #[arg(value_name = "FILE|-", required_unless_present_any = ["item_done", "item_failed"])]
    pub file: Option<PathBuf>,

    /// Report that an item is done, as often as there are
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    pub item_done: Vec<Name>,

    /// Report that an item failed once more, as often as there are
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    pub item_failed: Vec<Name>,

    /// Say of what class the failure is
    #[arg(long, value_name = "CLASS", requires = "item_failed", value_parser = value::words::<FailureClass>())]
    pub class: Option<FailureClass>,

    /// Say what went wrong
    #[arg(long, value_name = "TEXT", requires = "item_failed", value_parser = value::said)]
    pub error: Option<String>,
}

/// Does it.
pub(super) fn run(args: &SaveArgs, context: &mut Context) -> Result<(), CommandError> {
    match args.file.as_deref() {
        Some(path) if path == Path::new("-") => stream(args, context),
        Some(path) => {
            let text = given::file(&context.cwd.join(path))?;
            let shown = path.display();
            let value = serde_json::from_str(&text).map_err(|error| {
                CommandError::invalid(format!("'{shown}' is no JSON document")).caused_by(error)
            })?;
            // What cannot be saved makes nothing.
            let news = News::read(value, args.stage.as_ref())?;
            let store = workplace::open(context, Access::Write)?;
            take(args, context, &store, context.now, news)?;
            workplace::finish(&store);
            Ok(())
        }
        None => items(args, context),
    }
}

/// One thing that is said on standard input.
enum News {
    Document(Box<ProgressDocument>),
    Item(String, ItemReport),
}

impl News {
    fn read(value: Value, stage: Option<&Name>) -> Result<Self, CommandError> {
        let text = |name: &str| value.field(name).and_then(Value::as_text).map(str::to_owned);
        if let Some(id) = text("item_done") {
            return Ok(Self::Item(id, ItemReport::Done));
        }
        if let Some(id) = text("item_failed") {
            let class = text("class").map(|class| class.parse::<FailureClass>()).transpose();
            let class = class.map_err(|error| CommandError::invalid(error.to_string()))?;
            return Ok(Self::Item(id, ItemReport::Failed { class, error: text("error") }));
        }
        let document = ProgressDocument::read(value, stage.map(Name::as_str));
        document
            .map(|document| Self::Document(Box::new(document)))
            .map_err(|shape| CommandError::invalid(shape.to_string()))
    }
}

/// Serves one long process: each document is durable before its line is answered.
fn stream(args: &SaveArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let maintainer = store.maintainer();
    let input = BufReader::new(io::stdin().lock());
    let documents = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
    for (number, value) in (1_u64..).zip(documents) {
        let within = |error: CommandError| {
            error
                .within(format!("cannot save document {number} of standard input"))
                .hinted("those before it are saved")
        };
        let value = value
            .map_err(|error| within(CommandError::invalid("it is no JSON").caused_by(error)))?;
        let news = News::read(value, args.stage.as_ref()).map_err(within)?;
        let now = context.later()?;
        take(args, context, &store, now, news).map_err(within)?;
    }
    drop(maintainer);
    workplace::finish(&store);
    Ok(())
}

/// Takes one piece of news, which makes the execution where there is none. Without a stage an item makes nothing:
/// something has to be saved already that says which.
fn take(
    args: &SaveArgs,
    context: &mut Context,
    store: &Store,
    now: Timestamp,
    news: News,
) -> Result<(), CommandError> {
    let act = WriteContext { now, ..workplace::act(context, "progress save") };
    let execution = match (&news, &args.stage) {
        (News::Item(..), None) => named(store, &args.review, &args.execution)?,
        _ => PipelineExecution::open_or_create(
            store,
            &act,
            args.review.as_str(),
            args.execution.as_str(),
        )?,
    };
    match news {
        News::Item(id, news) => report(args, context, &act, &execution, &id, &news),
        News::Document(document) => {
            let done = execution.save(&act, &document)?;
            let saved = execution.document()?.unwrap_or(*document);
            let found = validate(&saved, now);
            let faults = found.refusals.into_iter().chain(found.warnings);
            let warnings: Vec<String> = faults.map(|fault| fault.message).collect();
            context.out.emit(&Saved::new(&execution, &saved, &done, warnings))
        }
    }
}

/// Takes the items named in the arguments.
fn items(args: &SaveArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let failed = ItemReport::Failed { class: args.class, error: args.error.clone() };
    let done = args.item_done.iter().map(|id| (id, &ItemReport::Done));
    for (id, news) in done.chain(args.item_failed.iter().map(|id| (id, &failed))) {
        let news = News::Item(id.as_str().to_owned(), news.clone());
        take(args, context, &store, context.now, news)?;
    }
    workplace::finish(&store);
    Ok(())
}

fn report(
    args: &SaveArgs,
    context: &mut Context,
    act: &WriteContext,
    execution: &PipelineExecution,
    id: &str,
    news: &ItemReport,
) -> Result<(), CommandError> {
    let stage = match &args.stage {
        Some(stage) => stage.as_str().to_owned(),
        None => {
            let document = execution.document()?;
            let stage = document.as_ref().and_then(ProgressDocument::stage).map(str::to_owned);
            stage.ok_or_else(|| {
                CommandError::invalid("it is not known of which stage: say '--stage'")
            })?
        }
    };
    let done = execution.report(act, &stage, id, news)?;
    let (status, class) = match news {
        ItemReport::Done => ("done", None),
        ItemReport::Failed { class, error } => {
            let guessed = error.as_deref().and_then(FailureClass::of_message);
            ("failed", class.or(guessed).map(VocabularyWord::word))
        }
    };
    context.out.emit(&Reported::new(execution, stage, id, (status, class), &done))
}
