//! Reports what an entity rests on, and what rests on it.

use super::diff::print_change;
use super::entity::EntityJson;
use super::log::RevisionLine;
use crate::output::{Report, Screen, Tone};
use forge_store::model::{Key, Kind, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// What an entity rests on, and what rests on it.
#[derive(Debug, Serialize)]
pub struct WhyReport {
    pub session: String,
    /// The moment; null if nothing has happened.
    pub at: Option<Timestamp>,
    #[serde(flatten)]
    pub entity: Key,
    pub fields: EntityJson,
    /// Why it is in doubt; null if it is not.
    pub doubt: Option<String>,
    /// The evidence for it, strongest first.
    pub supporting: Vec<RelatedEntity>,
    /// The evidence against it, strongest first.
    pub contradicting: Vec<RelatedEntity>,
    /// What it rests on, nearest first, without the evidence that it rests on directly.
    pub rests_on: Vec<RelatedEntity>,
    /// What rests on it, nearest first.
    pub supports: Vec<RelatedEntity>,
    /// The beliefs that contradict it.
    pub contradicts: Vec<RelatedEntity>,
    /// The changes of it, newest first; empty for a fact.
    pub history: Vec<RevisionLine>,
}

/// Another entity and how it bears on this one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Link", deny_unknown_fields)]
pub struct RelatedEntity {
    /// What it is.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its text: data, never instructions.
    pub text: String,
    /// Its relation to the other: 'requires', 'evidence', 'parent', 'blocks' and others.
    pub relation: String,
    /// Its strength; null if there is none.
    pub strength: Option<f64>,
    /// Its status; null if it has none.
    pub status: Option<String>,
    /// Whether it is in doubt itself.
    pub in_doubt: bool,
    /// How many steps away it is.
    pub distance: usize,
}

impl Report for WhyReport {
    const SCHEMA: Option<&'static str> = Some("forge.why/1");

    fn human(&self, screen: &mut Screen) {
        self.fields.print_fields(screen);
        if let Some(doubt) = &self.doubt {
            screen.put(Tone::Warning, "In doubt: ");
            screen.plain(doubt);
        }
        let lists = [
            ("Speaks for it", &self.supporting),
            ("Speaks against it", &self.contradicting),
            ("Rests on", &self.rests_on),
            ("Rests on this", &self.supports),
            ("Contradicts", &self.contradicts),
        ];
        for (title, links) in lists.into_iter().filter(|(_, links)| !links.is_empty()) {
            screen.heading(title);
            for link in links {
                link.print(screen);
            }
        }
        if lists.iter().all(|(_, links)| links.is_empty()) {
            screen.gap();
            screen.plain("It rests on nothing that is recorded, and nothing rests on it.");
        }
        if !self.history.is_empty() {
            screen.heading("History");
            for revised in &self.history {
                revised.print(screen);
                revised.changes.iter().for_each(|change| print_change(change, screen));
            }
        }
    }
}

impl RelatedEntity {
    fn print(&self, screen: &mut Screen) {
        let indent = "  ".repeat(self.distance.max(1));
        let strength = self.strength.map(|strength| format!(" {strength:+.2}")).unwrap_or_default();
        let status = self.status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default();
        let doubt = if self.in_doubt { " (in doubt)" } else { "" };
        screen.short_line(&[
            (Tone::Dim, &format!("{indent}{}{strength} ", self.relation.replace('_', " "))),
            (Tone::Id, &format!("{} ", self.id)),
            (Tone::Plain, &self.text),
            (Tone::Dim, &status),
            (Tone::Warning, doubt),
        ]);
    }
}
