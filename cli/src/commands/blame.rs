//! `forge blame` and `forge why`.

use crate::args::value::{EntityArg, MomentArg};
use crate::context::Context;
use crate::report::blame::{BlameReport, BlamedField, FieldOrigin};
use crate::report::why::WhyReport;
use crate::session_reader::{KnownEntity, SessionReader, find_entity_of_any_kind};
use crate::text::with_previews;
use crate::verb::{Verb, VerbResult};
use forge_store::model::{Key, Value};

#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    #[command(flatten)]
    pub of: EntityMomentArgs,
}

#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    #[command(flatten)]
    pub of: EntityMomentArgs,
}

/// Which entity to explain, and at which moment.
#[derive(Debug, clap::Args)]
pub struct EntityMomentArgs {
    /// Unique prefix of its id, with 'KIND:' before it if that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityArg,

    /// Moment at which to look at it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

impl Verb for BlameArgs {
    const NAME: &'static str = "blame";
    type Opened = SessionReader;
    type Report = BlameReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let moment = reading.moment(context, self.of.at.as_ref())?;
        let state = reading.state(&moment, false)?;
        let known = find_entity_of_any_kind(&state, &self.of.entity)?;
        let fields = match &known {
            KnownEntity::Claim(key, entry) => {
                let history = reading.session.history(&moment, key)?;
                let current = entry.value.as_map().into_iter().flatten();
                current
                    .filter_map(|(name, value)| {
                        let field = |entry: &Option<forge_store::model::ClaimEntry>| {
                            entry.as_ref().and_then(|entry| entry.value.field(name)).cloned()
                        };
                        // The history begins with the newest change.
                        let origin = history
                            .iter()
                            .find(|entry| field(&entry.change.old) != field(&entry.change.new))?;
                        let old = field(&origin.change.old).unwrap_or_default();
                        let by = origin.revision.clone();
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
            KnownEntity::Fact(sourced) => {
                let fact = &sourced.fact;
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
        Ok(BlameReport {
            session: state.info()?.name,
            entity: Key::new(known.kind(), known.id()),
            at: state.time()?,
            fields,
        })
    }
}

impl Verb for WhyArgs {
    const NAME: &'static str = "why";
    type Opened = SessionReader;
    type Report = WhyReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let moment = reading.moment(context, self.of.at.as_ref())?;
        let state = reading.state(&moment, false)?;
        let known = find_entity_of_any_kind(&state, &self.of.entity)?;
        super::why::why(reading, &state, &known)
    }
}
