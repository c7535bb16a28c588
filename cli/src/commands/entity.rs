//! `list` and `show` of every kind.

use crate::args::field_option::{FieldArgs, FieldUse, Listed, ListedKind};
use crate::args::list_format::ListFormat;
use crate::args::select::{ClaimListArgs, EntityShowArgs, FactListArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity::{EntityJson, EntityListReport, EntityShowReport};
use crate::session_reader::{KnownEntity, SessionReader, entities_of_kind, find_entity};
use crate::text::TextLength;
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace;
use forge_store::model::claim::{Criticality, FieldValue};
use forge_store::model::{Kind, Timestamp, Value};
use forge_store::store::StateAt;

/// List or show facts of one kind.
#[derive(Debug, clap::Subcommand)]
pub enum FactCommand<K: ListedKind> {
    #[command(about = format!("List {}s, oldest first", K::NOUN))]
    List(FactListArgs<K>),
    #[command(about = format!("Show one {} with all its fields", K::NOUN))]
    Show(EntityShowArgs<K>),
}

commands!(FactCommand<K>: List, Show);

impl<K: ListedKind> Verb for ClaimListArgs<K> {
    const NAME: &'static str = K::LIST;
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        list_claims(self, reading, context, |_| true)
    }
}

impl<K: ListedKind> Verb for FactListArgs<K> {
    const NAME: &'static str = K::LIST;
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        list_facts(self, reading, context, |_| true)
    }
}

/// Lists the claims of a kind that match, gaps in the order of their criticality.
pub fn list_claims<K: ListedKind>(
    args: &ClaimListArgs<K>,
    reading: &SessionReader,
    context: &Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<EntityListReport, CommandError> {
    let moment = match &args.branch {
        None => reading.moment(context, args.at.as_ref())?,
        Some(name) => reading.head_of(context, name.as_str())?,
    };
    let state = reading.state(&moment, false)?;
    let mut known = entities_of_kind(&state, K::KIND)?;
    let total = known.len();
    let filter = with_whole_ids(&args.filter, &state);
    known.retain(|known| filter.match_value(known.value()) && passes(known.value()));
    let matching = known.len();
    if K::KIND == Kind::Gap {
        let criticality = |known: &KnownEntity| {
            let own = known.value().field("criticality").and_then(Criticality::read);
            std::cmp::Reverse(own.unwrap_or(Criticality::Medium))
        };
        known.sort_by_key(criticality);
        known.truncate(args.limit.unwrap_or(matching));
    } else {
        keep_latest(&mut known, args.limit);
    }
    let counts = ListCounts { total, more: matching - known.len() };
    list_report(reading, K::KIND, state.time()?, (known, counts), args.format.as_ref(), context)
}

/// Returns a filter in which ids are complete. An id that does not exist stays: nothing matches it.
fn with_whole_ids<K: ListedKind>(
    filter: &FieldArgs<K, Listed>,
    state: &StateAt,
) -> FieldArgs<K, Listed> {
    let mut filter = filter.clone();
    for option in Listed::options::<K>() {
        let Some(kind) = option.referenced_kind(K::KIND) else { continue };
        let Some(value) = filter.fields.get_mut(option.name) else { continue };
        let whole = value.as_text().and_then(|name| workspace::claim_id(state, kind, name).ok());
        *value = whole.map_or_else(|| value.clone(), Value::from);
    }
    filter
}

/// Lists the facts of a kind that match.
pub fn list_facts<K: ListedKind>(
    args: &FactListArgs<K>,
    reading: &SessionReader,
    context: &Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<EntityListReport, CommandError> {
    let moment = reading.moment(context, args.at.as_ref())?;
    let range = reading.time_range(context, args.since.as_ref(), args.until.as_ref())?;
    let state = reading.state(&moment, false)?;
    let mut known = entities_of_kind(&state, K::KIND)?;
    let total = known.len();
    known.retain(|known| {
        range.contains(known.at())
            && args.filter.match_value(known.value())
            && passes(known.value())
    });
    let matching = known.len();
    keep_latest(&mut known, args.limit);
    let counts = ListCounts { total, more: matching - known.len() };
    list_report(reading, K::KIND, state.time()?, (known, counts), args.format.as_ref(), context)
}

/// The counts of an [`EntityListReport`].
struct ListCounts {
    total: usize,
    more: usize,
}

/// Keeps the last ones up to the limit, if there is one.
fn keep_latest(known: &mut Vec<KnownEntity>, limit: Option<usize>) {
    known.drain(..known.len().saturating_sub(limit.unwrap_or(usize::MAX)));
}

fn list_report(
    reading: &SessionReader,
    kind: Kind,
    at: Option<Timestamp>,
    (known, counts): (Vec<KnownEntity>, ListCounts),
    format: Option<&ListFormat>,
    context: &Context,
) -> Result<EntityListReport, CommandError> {
    let length = if context.global.json { TextLength::Cut } else { TextLength::Preview };
    let mut texts = reading.texts(length);
    let entities = known.into_iter().map(|known| EntityJson::new(known, &mut texts));
    let entities: Vec<EntityJson> = entities.collect::<Result<_, _>>()?;
    if let (Some(format), Some(first)) = (format, entities.first()) {
        let unknown = |name: &&str| !entities.iter().any(|entity| entity.has_field(name));
        if let Some(name) = format.fields().find(unknown) {
            let known = first.fields.iter().map(|(name, _)| name.as_ref()).collect::<Vec<_>>();
            let known = known.join(", ");
            return Err(CommandError::invalid(format!("the rows have no field '{name}'"))
                .hinted(format!("they have {known}; 'says' is the title")));
        }
    }
    let lines = format.map(|format| {
        let line = |entity: &EntityJson| format.fill(|name| entity.template_text(name)) + "\n";
        entities.iter().map(line).collect()
    });
    let session = reading.session.summary()?.info.name;
    let ListCounts { total, more } = counts;
    Ok(EntityListReport { session, kind, at, entities, total, more, lines })
}

impl<K: ListedKind> Verb for EntityShowArgs<K> {
    const NAME: &'static str = K::SHOW;
    type Opened = SessionReader;
    type Report = EntityShowReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let moment = reading.moment(context, self.at.as_ref())?;
        let state = reading.state(&moment, false)?;
        let known = find_entity(&state, K::KIND, &self.id)?;
        show_entity(reading, &state, known, self.full, context)
    }
}

/// Returns a claim or a fact with all its fields, and a hypothesis also with the evidence about it.
pub fn show_entity(
    reading: &SessionReader,
    state: &StateAt,
    known: KnownEntity,
    full: bool,
    context: &Context,
) -> Result<EntityShowReport, CommandError> {
    let length = match (full, context.global.json) {
        (true, _) => TextLength::Whole,
        (false, true) => TextLength::Cut,
        (false, false) => TextLength::Preview,
    };
    let mut texts = reading.texts(length);
    let evidence = if known.kind() == Kind::Hypothesis {
        let about = |evidence: &KnownEntity| {
            evidence.value().field("hypothesis").and_then(Value::as_text) == Some(known.id())
        };
        let evidence = entities_of_kind(state, Kind::Evidence)?.into_iter().filter(about);
        let evidence = evidence.map(|evidence| EntityJson::new(evidence, &mut texts));
        Some(evidence.collect::<Result<_, _>>()?)
    } else {
        None
    };
    Ok(EntityShowReport {
        session: reading.session.summary()?.info.name,
        at: state.time()?,
        entity: EntityJson::new(known, &mut texts)?,
        evidence,
    })
}
