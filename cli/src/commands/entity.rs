//! `list` and `show` of every kind.

use crate::args::select::{ClaimListArgs, EntityShowArgs, FactListArgs};
use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity::{EntityJson, EntityListReport, EntityShowReport};
use crate::session_reader::{KnownEntity, SessionReader, entities_of_kind, find_entity};
use crate::text::TextLength;
use crate::workspace;
use forge_store::model::claim::{Criticality, FieldValue};
use forge_store::model::{Kind, Timestamp, Value};

/// Lists the claims of a kind that match.
pub fn list_claims(
    kind: Kind,
    args: &ClaimListArgs,
    context: &mut Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<(), CommandError> {
    let reading = SessionReader::begin(context)?;
    let point = match &args.branch {
        None => reading.point(context, args.at.as_ref())?,
        Some(name) => {
            let moment: MomentArg =
                format!("branch:{name}").parse().map_err(CommandError::invalid)?;
            workspace::point(context, &reading.session, &moment)?
        }
    };
    let state = reading.state(&point, false)?;
    let mut known = entities_of_kind(&state, kind)?;
    known.retain(|known| passes(known.value()));
    if kind == Kind::Gap {
        let criticality = |known: &KnownEntity| {
            let said = known.value().field("criticality").and_then(Criticality::read);
            std::cmp::Reverse(said.unwrap_or(Criticality::Medium))
        };
        known.sort_by_key(criticality);
    }
    known.truncate(args.limit.unwrap_or(usize::MAX));
    emit_list(&reading, kind, state.time()?, known, context)
}

/// Lists the facts of a kind that match.
pub fn list_facts(
    kind: Kind,
    args: &FactListArgs,
    context: &mut Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<(), CommandError> {
    let reading = SessionReader::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let since = args.since.as_ref().map(|since| reading.time(context, since)).transpose()?;
    let until = args.until.as_ref().map(|until| reading.time(context, until)).transpose()?;
    let state = reading.state(&point, false)?;
    let mut known = entities_of_kind(&state, kind)?;
    known.retain(|known| {
        since.is_none_or(|since| since <= known.at())
            && until.is_none_or(|until| known.at() <= until)
            && passes(known.value())
    });
    if let Some(limit) = args.limit {
        known.drain(..known.len().saturating_sub(limit));
    }
    emit_list(&reading, kind, state.time()?, known, context)
}

fn emit_list(
    reading: &SessionReader,
    kind: Kind,
    at: Option<Timestamp>,
    known: Vec<KnownEntity>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let length = if context.global.json { TextLength::Cut } else { TextLength::Preview };
    let mut texts = reading.texts(length);
    let entities = known.into_iter().map(|known| EntityJson::new(known, &mut texts));
    let report = EntityListReport {
        session: reading.session.summary()?.info.name,
        kind,
        at,
        entities: entities.collect::<Result<_, _>>()?,
    };
    context.out.emit(&report)?;
    workspace::catch_up_index(&reading.store);
    Ok(())
}

/// Shows one entity of a kind.
pub fn show(kind: Kind, args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = SessionReader::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = find_entity(&state, kind, &args.id)?;
    let length = match (args.full, context.global.json) {
        (true, _) => TextLength::Whole,
        (false, true) => TextLength::Cut,
        (false, false) => TextLength::Preview,
    };
    let mut texts = reading.texts(length);
    let evidence = if kind == Kind::Hypothesis {
        let about = |evidence: &KnownEntity| {
            evidence.value().field("hypothesis").and_then(Value::as_text) == Some(known.id())
        };
        let evidence = entities_of_kind(&state, Kind::Evidence)?.into_iter().filter(about);
        let evidence = evidence.map(|evidence| EntityJson::new(evidence, &mut texts));
        Some(evidence.collect::<Result<_, _>>()?)
    } else {
        None
    };
    let report = EntityShowReport {
        session: reading.session.summary()?.info.name,
        at: state.time()?,
        entity: EntityJson::new(known, &mut texts)?,
        evidence,
    };
    context.out.emit(&report)?;
    workspace::catch_up_index(&reading.store);
    Ok(())
}

/// Whether a field has the wanted word, if one is wanted; `default` is the word of an absent field.
pub fn has_word(value: &Value, field: &str, wanted: Option<&str>, default: &str) -> bool {
    wanted.is_none_or(|wanted| {
        value.field(field).and_then(Value::as_text).unwrap_or(default) == wanted
    })
}

/// Whether the entity has the wanted tag, if one is wanted.
pub fn has_tag(value: &Value, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| {
        let tags = value.field("tags").and_then(Value::as_list).unwrap_or_default();
        tags.iter().any(|tag| tag.as_text() == Some(wanted))
    })
}
