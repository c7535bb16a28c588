//! `list` and `show` of every kind.

use crate::args::select::{ClaimList, FactList, Show};
use crate::args::value::Moment;
use crate::context::Context;
use crate::error::CommandError;
use crate::reading::{Known, Reading, known_of, one_of};
use crate::report::entity::{Entities, Entity, Shown};
use crate::text::Length;
use crate::workplace;
use forge_store::model::claim::{Criticality, FieldValue};
use forge_store::model::{Kind, Timestamp, Value};

/// Lists the claims of a kind that match.
pub fn list_claims(
    kind: Kind,
    args: &ClaimList,
    context: &mut Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let point = match &args.branch {
        None => reading.point(context, args.at.as_ref())?,
        Some(name) => {
            let moment: Moment = format!("branch:{name}").parse().map_err(CommandError::invalid)?;
            workplace::point(context, &reading.session, &moment)?
        }
    };
    let state = reading.state(&point, false)?;
    let mut known = known_of(&state, kind)?;
    known.retain(|known| passes(known.value()));
    if kind == Kind::Gap {
        let criticality = |known: &Known| {
            let said = known.value().field("criticality").and_then(Criticality::read);
            std::cmp::Reverse(said.unwrap_or(Criticality::Medium))
        };
        known.sort_by_key(criticality);
    }
    known.truncate(args.limit.unwrap_or(usize::MAX));
    emit(&reading, kind, state.time()?, known, context)
}

/// Lists the facts of a kind that match.
pub fn list_facts(
    kind: Kind,
    args: &FactList,
    context: &mut Context,
    passes: impl Fn(&Value) -> bool,
) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let since = args.since.as_ref().map(|since| reading.time(context, since)).transpose()?;
    let until = args.until.as_ref().map(|until| reading.time(context, until)).transpose()?;
    let state = reading.state(&point, false)?;
    let mut known = known_of(&state, kind)?;
    known.retain(|known| {
        since.is_none_or(|since| since <= known.at())
            && until.is_none_or(|until| known.at() <= until)
            && passes(known.value())
    });
    if let Some(limit) = args.limit {
        known.drain(..known.len().saturating_sub(limit));
    }
    emit(&reading, kind, state.time()?, known, context)
}

fn emit(
    reading: &Reading,
    kind: Kind,
    at: Option<Timestamp>,
    known: Vec<Known>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let length = if context.global.json { Length::Cut } else { Length::Preview };
    let mut texts = reading.texts(length);
    let entities = known.into_iter().map(|known| Entity::new(known, &mut texts));
    let report = Entities {
        session: reading.session.summary()?.info.name,
        kind,
        at,
        entities: entities.collect::<Result<_, _>>()?,
    };
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
    Ok(())
}

/// Shows one entity of a kind.
pub fn show(kind: Kind, args: &Show, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = one_of(&state, kind, &args.id)?;
    let length = match (args.full, context.global.json) {
        (true, _) => Length::Whole,
        (false, true) => Length::Cut,
        (false, false) => Length::Preview,
    };
    let mut texts = reading.texts(length);
    let evidence = if kind == Kind::Hypothesis {
        let about = |evidence: &Known| {
            evidence.value().field("hypothesis").and_then(Value::as_text) == Some(known.id())
        };
        let evidence = known_of(&state, Kind::Evidence)?.into_iter().filter(about);
        let evidence = evidence.map(|evidence| Entity::new(evidence, &mut texts));
        Some(evidence.collect::<Result<_, _>>()?)
    } else {
        None
    };
    let report = Shown {
        session: reading.session.summary()?.info.name,
        at: state.time()?,
        entity: Entity::new(known, &mut texts)?,
        evidence,
    };
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
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
