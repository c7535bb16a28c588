//! `forge blame` and `forge why`.

use crate::args::value::{EntityName, Moment};
use crate::context::Context;
use crate::error::CommandError;
use crate::reading::{Known, Reading, entity};
use crate::report::blame::{Blame, Blamed, By};
use crate::report::log::EntityId;
use crate::text::previewed;
use crate::workplace;
use forge_store::model::Value;

/// Arguments of `forge blame`.
#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    /// Unique prefix of its id, with 'KIND:' before it if that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityName,

    /// Moment at which to look at it
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Unique prefix of its id, with 'KIND:' before it if that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityName,

    /// Moment at which to look at it
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Shows which change gave each field its value.
pub fn run(args: &BlameArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = entity(&state, &args.entity)?;
    let fields = match &known {
        Known::Claim(key, entry) => {
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
                    Some(Blamed {
                        field: name.clone(),
                        value: previewed(value),
                        old: previewed(&old),
                        by: By::Revision {
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
        Known::Fact(known) => {
            let fact = &known.fact;
            let by = By::Fact { time: fact.at, origin: fact.origin, recorded_at: fact.recorded_at };
            let fields = fact.value.as_map().into_iter().flatten();
            fields
                .map(|(name, value)| Blamed {
                    field: name.clone(),
                    value: previewed(value),
                    old: Value::Null,
                    by: by.clone(),
                })
                .collect()
        }
    };
    let report = Blame {
        session: state.info()?.name,
        entity: EntityId { kind: known.kind(), id: known.id().to_owned() },
        at: state.time()?,
        fields,
    };
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
    Ok(())
}

/// Shows what an entity rests on, and what rests on it.
pub fn why(args: &WhyArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let known = entity(&state, &args.entity)?;
    let report = super::why::why(&reading, &state, &known)?;
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
    Ok(())
}
