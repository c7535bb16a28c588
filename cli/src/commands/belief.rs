//! `forge belief`.

use super::blame::{EntityMomentArgs, WhyArgs};
use super::claim::{
    ClaimAddArgs, ClaimRetractArgs, ClaimUpdateArgs, RecordedClaim, RetractedClaim,
};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::args::value;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::report::why::WhyReport;
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::{Belief, Dependency, DependencyType, Strength};
use forge_store::model::rule::{self, ClaimLookup, RuleError, RuleOutcome};
use forge_store::model::{FieldMap, Key, Kind, Value};
use forge_store::store::{HeadClaims, WriteReport};

/// The types of dependency that `depend` records. `contradict` records contradictions.
const DEPENDENCY_TYPES: &[DependencyType] = &[
    DependencyType::Requires,
    DependencyType::DerivesFrom,
    DependencyType::Assumes,
    DependencyType::Supports,
];

/// Record what is believed to be true, and what it rests on.
#[derive(Debug, clap::Subcommand)]
pub enum BeliefCommand {
    /// Add a belief
    Add(Timed<ClaimAddArgs<Belief>>),
    /// Change fields of a belief
    Update(Timed<ClaimUpdateArgs<Belief>>),
    /// Retract a belief; what rests on it is in doubt
    Retract(Timed<ClaimRetractArgs<Belief>>),
    /// Record that one belief rests on another
    Depend(Timed<BeliefDependArgs>),
    /// Record that two beliefs cannot both be true
    Contradict(Timed<BeliefContradictArgs>),
    /// Show what a belief rests on and what rests on it
    Why(BeliefWhyArgs),
    /// List beliefs
    List(ClaimListArgs<Belief>),
    /// Show one belief
    Show(EntityShowArgs<Belief>),
}

#[derive(Debug, clap::Args)]
pub struct BeliefDependArgs {
    /// Belief that rests on another
    #[arg(value_name = "ID")]
    pub id: String,

    /// Belief that it rests on
    #[arg(value_name = "ON")]
    pub on: String,

    /// Kind of dependency
    #[arg(long = "type", value_name = "TYPE", value_parser = value::word_subset_parser(DEPENDENCY_TYPES))]
    pub dependency_type: Option<DependencyType>,

    /// Strength, -1 to 1
    #[arg(
        short,
        long,
        value_name = "STRENGTH",
        value_parser = value::parse_strength,
        allow_hyphen_values = true
    )]
    pub strength: Option<f64>,
}

#[derive(Debug, clap::Args)]
pub struct BeliefContradictArgs {
    /// One belief
    #[arg(value_name = "ID")]
    pub id: String,

    /// The other belief
    #[arg(value_name = "OTHER")]
    pub other: String,

    /// Why they cannot both be true
    #[arg(short = 'm', long, value_name = "TEXT", value_parser = value::non_empty_text)]
    pub reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct BeliefWhyArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,
}

commands!(BeliefCommand: Add, Update, Retract, Depend, Contradict, Why, List, Show);

impl RetractedClaim for Belief {
    fn retract(claims: &HeadClaims, id: &str) -> Result<RuleOutcome, RuleError> {
        rule::retract_belief(claims, id)
    }
}

impl RecordedClaim for Belief {
    fn add(
        writing: &SessionWriter,
        id: Option<&str>,
        mut fields: FieldMap,
    ) -> Result<(String, WriteReport), CommandError> {
        let on = fields.remove("on").unwrap_or_default();
        let grounds: Vec<&str> =
            on.as_list().unwrap_or_default().iter().filter_map(Value::as_text).collect();
        let value = Value::Map(fields);
        writing.add_by_rule(Kind::Belief, id, |claims, id| {
            let key = Key::new(Kind::Belief, id);
            if claims.claim(&key).is_some() {
                return Err(RuleError::AlreadyExists(key));
            }
            let mut outcome = RuleOutcome::of_change(key, None, value.clone());
            // Nothing rests on a new belief yet, so these dependencies cannot make a cycle.
            outcome.changes.extend(grounds.iter().map(|ground| {
                let dependency = Dependency {
                    from: Some(id.to_owned()),
                    to: Some((*ground).to_owned()),
                    dependency_type: Some(DependencyType::Requires),
                    ..Dependency::default()
                };
                (Key::new(Kind::Dependency, Dependency::id(id, ground)), dependency.to_value())
            }));
            Ok(outcome)
        })
    }
}

impl Verb for BeliefDependArgs {
    const NAME: &'static str = "belief depend";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let from = writing.claim_id(Kind::Belief, &self.id)?;
        let to = writing.claim_id(Kind::Belief, &self.on)?;
        let id = Dependency::id(&from, &to);
        let dependency = Dependency {
            from: Some(from),
            to: Some(to),
            dependency_type: Some(self.dependency_type.unwrap_or(DependencyType::Requires)),
            strength: self.strength.and_then(Strength::new),
            ..Dependency::default()
        };
        let done = writing.write_rule(|claims| rule::add_dependency(claims, &dependency))?;
        Ok(EntityWriteReport::new("Added", done).about_claim(Kind::Dependency, id))
    }
}

impl Verb for BeliefContradictArgs {
    const NAME: &'static str = "belief contradict";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let (one, other) = (
            writing.claim_id(Kind::Belief, &self.id)?,
            writing.claim_id(Kind::Belief, &self.other)?,
        );
        let done = writing.write_rule(|claims| {
            rule::contradict_beliefs(claims, &one, &other, self.reason.as_deref())
        })?;
        let report = EntityWriteReport::new("Noted a contradiction:", done);
        Ok(report.about_claim(Kind::Dependency, Dependency::id(&one, &other)))
    }
}

impl Verb for BeliefWhyArgs {
    const NAME: &'static str = "belief why";
    type Opened = SessionReader;
    type Report = WhyReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let entity = value::EntityArg { kind: Some(Kind::Belief), id: self.id.clone() };
        WhyArgs { of: EntityMomentArgs { entity, at: None } }.run(reading, context)
    }
}
