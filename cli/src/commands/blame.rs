//! `forge blame` and `forge why`.

use crate::args::value::{EntityArg, MomentArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::blame::{BlameReport, BlamedField, FieldOrigin};
use crate::report::log::EntityId;
use crate::session_reader::{KnownEntity, SessionReader, find_entity_of_any_kind};
use crate::text::with_previews;
use crate::workspace;
use forge_store::model::Value;

/// Arguments of `forge blame`.
#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    /// Unique prefix of its id, with 'KIND:' before it if that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityArg,

    /// Moment at which to look at it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

/// Arguments of `forge why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Unique prefix of its id, with 'KIND:' before it if that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityArg,

    /// Moment at which to look at it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

/// Shows which change gave each field its value.
pub fn run(args: &BlameArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = SessionReader::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = find_entity_of_any_kind(&state, &args.entity)?;
    let fields = match &known {
        KnownEntity::Claim(key, entry) => {
            let history = reading.session.history(&point, key)?;
            let current = entry.value.as_map().into_iter().flatten();
            current
                .filter_map(|(name, value)| {
                    let field = |entry: &Option<forge_store::model::ClaimEntry>| {
                        entry.as_ref().and_then(|entry| entry.value.field(name)).cloned()
                    };
                    let made = history
                        .iter()
                        .find(|entry| field(&entry.change.old) != field(&entry.change.new))?;
                    let old = field(&made.change.old).unwrap_or_default();
                    let by = made.revision.clone();
                    Some(BlamedField {
                        field: name.clone(),
                        value: with_previews(value),
                        old: with_previews(&old),
                        by: FieldOrigin::Revision {
                            sequence: by.sequence,
                            id: by.id,
                            time: by.time,
                            branch: by.branch,
                            verb: by.verb,
                            author: by.author,
                            operation: by.operation,
                        },
                    })
                })
                .collect()
        }
        KnownEntity::Fact(known) => {
            let fact = &known.fact;
            let by = FieldOrigin::Fact {
                time: fact.at,
                origin: fact.origin,
                recorded_at: fact.recorded_at,
            };
            let fields = fact.value.as_map().into_iter().flatten();
            fields
                .map(|(name, value)| BlamedField {
                    field: name.clone(),
                    value: with_previews(value),
                    old: Value::Null,
                    by: by.clone(),
                })
                .collect()
        }
    };
    let report = BlameReport {
        session: state.info()?.name,
        entity: EntityId { kind: known.kind(), id: known.id().to_owned() },
        at: state.time()?,
        fields,
    };
    context.out.emit(&report)?;
    workspace::catch_up_index(&reading.store);
    Ok(())
}

/// Shows what an entity rests on, and what rests on it.
pub fn why(args: &WhyArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = SessionReader::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = find_entity_of_any_kind(&state, &args.entity)?;
    let report = super::dependency_graph::why(&reading, &state, &known)?;
    context.out.emit(&report)?;
    workspace::catch_up_index(&reading.store);
    Ok(())
}
