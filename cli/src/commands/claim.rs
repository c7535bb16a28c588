//! `add`, `update` and `retract` of every kind of claim that has them.

use crate::args::field_option::{Added, Changed, FieldArgs, FieldUse, ListedKind};
use crate::args::select::{DescriptionArgs, Timed};
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult};
use crate::workspace::SessionNeed;
use forge_store::model::rule::{self, RuleError, RuleOutcome};
use forge_store::model::{FieldMap, Value};
use forge_store::store::{HeadClaims, WriteReport};
use std::marker::PhantomData;

/// A kind of claim that people and agents record. Its methods do what is special about the kind.
pub trait RecordedClaim: ListedKind {
    /// Writes a new claim with these fields, in which ids are complete. Returns its id and what was
    /// written.
    fn add(
        writing: &SessionWriter,
        id: Option<&str>,
        fields: FieldMap,
    ) -> Result<(String, WriteReport), CommandError> {
        writing.add_value(Self::KIND, id, &Value::Map(fields), |_| None)
    }

    /// Checks fields of an existing claim before they are changed.
    fn check_change(_: &SessionWriter, _id: &str, _: &FieldMap) -> Result<(), CommandError> {
        Ok(())
    }

    /// Writes changed fields of a claim, in which ids are complete.
    fn update(
        writing: &SessionWriter,
        id: &str,
        changed: &FieldMap,
    ) -> Result<WriteReport, CommandError> {
        writing.update(Self::KIND, id, |fields| Self::change(fields, changed))
    }

    /// Puts changed fields into the fields of a claim.
    fn change(fields: &mut FieldMap, changed: &FieldMap) {
        rule::change_fields(Self::KIND, fields, changed.clone());
    }

    /// Returns the value of a field of ids for a word that is not an id, such as `all`.
    fn word_for_ids(_text: &str) -> Option<Value> {
        None
    }
}

/// A kind of claim that can be retracted.
pub trait RetractedClaim: RecordedClaim {
    /// Returns what a retraction changes.
    fn retract(claims: &HeadClaims, id: &str) -> Result<RuleOutcome, RuleError>;
}

#[derive(Debug, clap::Args)]
pub struct ClaimAddArgs<K: RecordedClaim> {
    #[command(flatten)]
    pub text: DescriptionArgs<K>,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,

    #[command(flatten)]
    pub fields: FieldArgs<K, Added>,
}

#[derive(Debug, clap::Args)]
pub struct ClaimUpdateArgs<K: RecordedClaim> {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    #[command(flatten)]
    pub fields: FieldArgs<K, Changed>,
}

#[derive(Debug, clap::Args)]
pub struct ClaimRetractArgs<K: RetractedClaim> {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    #[arg(skip)]
    pub kind: PhantomData<K>,
}

impl<K: RecordedClaim> ClaimAddArgs<K> {
    pub fn new(description: String, fields: FieldMap) -> Self {
        Self { text: description.into(), id: None, fields: fields.into() }
    }
}

impl<K: RecordedClaim> ClaimUpdateArgs<K> {
    pub fn new(id: String, fields: FieldMap) -> Self {
        Self { id, fields: fields.into() }
    }
}

impl<K: RecordedClaim, U: FieldUse> FieldArgs<K, U> {
    /// Whether a field names another claim, which must exist.
    fn names_claims(&self) -> bool {
        let mut options = U::options::<K>().iter();
        options.any(|option| {
            let text = |value: &Value| value.as_text().map(str::to_owned);
            let holds_ids = option.referenced_kind(K::KIND).is_some();
            let given = self.fields.get(option.name).filter(|_| holds_ids);
            given.is_some_and(|value| match value.as_list() {
                Some([one]) => text(one).is_some_and(|text| K::word_for_ids(&text).is_none()),
                _ => true,
            })
        })
    }

    /// Returns the fields with complete ids.
    fn with_ids(&self, writing: &SessionWriter) -> Result<FieldMap, CommandError> {
        let mut fields = self.fields.clone();
        for option in U::options::<K>() {
            let Some(kind) = option.referenced_kind(K::KIND) else { continue };
            let Some(value) = fields.get_mut(option.name) else { continue };
            *value = match &*value {
                Value::Text(name) => writing.claim_id(kind, name)?.into(),
                Value::List(names) => {
                    let names: Vec<&str> = names.iter().filter_map(Value::as_text).collect();
                    let word = match names.as_slice() {
                        [word] => K::word_for_ids(word),
                        _ => None,
                    };
                    let ids = names.iter().map(|name| writing.claim_id(kind, name));
                    match word {
                        Some(word) => word,
                        None => ids.collect::<Result<Vec<_>, _>>()?.into(),
                    }
                }
                other => other.clone(),
            };
        }
        Ok(fields)
    }
}

impl<V: Verb<Opened = SessionWriter> + clap::Args> Verb for Timed<V> {
    const NAME: &'static str = V::NAME;
    type Opened = SessionWriter;
    type Report = V::Report;
    const SESSION: SessionNeed = V::SESSION;

    fn session_need(&self) -> SessionNeed {
        self.verb.session_need()
    }

    fn check(&self, context: &Context) -> Result<(), CommandError> {
        context.check_moment(self.at.as_ref())?;
        self.verb.check(context)
    }

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let writing = writing.clone().changing_at(context, self.at.as_ref())?;
        self.verb.run(&writing, context)
    }

    fn after_report(&self, report: V::Report, context: &mut Context) -> Result<(), CommandError> {
        self.verb.after_report(report, context)
    }
}

impl<K: RecordedClaim> Verb for ClaimAddArgs<K> {
    const NAME: &'static str = K::ADD;
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn session_need(&self) -> SessionNeed {
        if self.fields.names_claims() { SessionNeed::Existing } else { SessionNeed::OrNew }
    }

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let mut fields = self.fields.with_ids(writing)?;
        fields.insert("description".to_owned(), self.text.text().into());
        if let Some(status) = K::DEFAULT_STATUS {
            fields.entry("status".to_owned()).or_insert_with(|| status.into());
        }
        let (id, done) = K::add(writing, self.id.as_ref().map(NameArg::as_str), fields)?;
        Ok(EntityWriteReport::new("Added", done).about_claim(K::KIND, id))
    }
}

impl<K: RecordedClaim> Verb for ClaimUpdateArgs<K> {
    const NAME: &'static str = K::UPDATE;
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(K::KIND, &self.id)?;
        let changed = self.fields.with_ids(writing)?;
        K::check_change(writing, &id, &changed)?;
        let done = K::update(writing, &id, &changed)?;
        Ok(EntityWriteReport::new("Updated", done).about_claim(K::KIND, id))
    }
}

impl<K: RetractedClaim> Verb for ClaimRetractArgs<K> {
    const NAME: &'static str = K::RETRACT;
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(K::KIND, &self.id)?;
        let done = writing.write_rule(|claims| K::retract(claims, &id))?;
        Ok(EntityWriteReport::new("Retracted", done).about_claim(K::KIND, id))
    }
}
