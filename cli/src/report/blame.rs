//! Reports which change gave each field of an entity its value.

use super::entity::field_text;
use crate::output::{Report, Screen, TextTable, Tone, cells};
use crate::text::json_word;
use forge_store::model::{
    FactOrigin, Key, OperationAuthor, OperationId, RevisionId, Timestamp, Value,
};
use serde::Serialize;

/// The changes that gave the fields of an entity their values.
#[derive(Debug, Serialize)]
pub struct BlameReport {
    pub session: String,
    pub entity: Key,
    /// The time of the moment that is shown; null if nothing has happened yet.
    pub at: Option<Timestamp>,
    /// The fields that are not null.
    pub fields: Vec<BlamedField>,
}

/// A field with the change that gave it its value.
#[derive(Debug, Serialize)]
pub struct BlamedField {
    /// Its name.
    pub field: String,
    pub value: Value,
    /// Its value before that change; null if it had none.
    pub old: Value,
    /// The change: a revision for a claim, the newest version for a fact.
    #[serde(flatten)]
    pub by: FieldOrigin,
}

/// The change that gave a field its value.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum FieldOrigin {
    Revision {
        /// Its number.
        sequence: u64,
        id: RevisionId,
        /// Its effective time.
        time: Timestamp,
        branch: String,
        /// The verb that made it.
        verb: String,
        author: OperationAuthor,
        operation: OperationId,
    },
    Fact {
        /// When it happened.
        time: Timestamp,
        origin: FactOrigin,
        recorded_at: Timestamp,
    },
}

impl Report for BlameReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Heading, &format!("{} ", self.entity.kind));
        screen.line(Tone::Id, &self.entity.id);
        let mut table = TextTable::new(&["Field", "Value", "By", "Ago", "Before"]).flexible(1);
        for blamed in &self.fields {
            let (by, time) = match &blamed.by {
                FieldOrigin::Revision { sequence, verb, branch, time, .. } => {
                    (format!("#{sequence} {verb} on {branch}"), *time)
                }
                FieldOrigin::Fact { time, origin, .. } => (json_word(origin), *time),
            };
            let old = match &blamed.old {
                Value::Null => String::new(),
                old => field_text(&blamed.field, old),
            };
            table.row(cells![
                blamed.field.replace('_', " "), field_text(&blamed.field, &blamed.value), Id: by,
                Dim: screen.ago(time), Dim: old,
            ]);
        }
        screen.table(&table);
    }
}
