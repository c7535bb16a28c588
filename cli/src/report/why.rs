//! What an entity rests on and what rests on it.

use super::diff::print_change;
use super::entity::EntityJson;
use super::log::{EntityId, RevisionLine};
use crate::output::{Report, Screen, Tone};
use forge_store::model::{Kind, Timestamp};
use serde::Serialize;

/// What an entity rests on and what rests on it.
#[derive(Debug, Serialize)]
pub struct WhyReport {
    /// The session.
    pub session: String,
    /// The moment; null if nothing has happened.
    pub at: Option<Timestamp>,
    /// What is asked about.
    #[serde(flatten)]
    pub entity: EntityId,
    /// Its fields.
    pub fields: EntityJson,
    /// Why it is in doubt; null if it is not.
    pub doubt: Option<String>,
    /// Evidence that speaks for it, the strongest first.
    pub supporting: Vec<RelatedEntity>,
    /// Evidence that speaks against it, the strongest first.
    pub contradicting: Vec<RelatedEntity>,
    /// What it rests on, the nearest first.
    pub rests_on: Vec<RelatedEntity>,
    /// What rests on it, the nearest first.
    pub supports: Vec<RelatedEntity>,
    /// What cannot be true beside it.
    pub contradicts: Vec<RelatedEntity>,
    /// The changes that made it what it is, newest first; empty for a fact.
    pub history: Vec<RevisionLine>,
}

/// Another entity and how it bears on the one asked about.
#[derive(Clone, Debug, Serialize)]
pub struct RelatedEntity {
    /// Its kind.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// What it says.
    pub text: String,
    /// How it bears on the entity, or the entity on it: `requires`, `evidence`, `parent`, `blocks` and others.
    pub relation: String,
    /// How strongly; null if that was not said.
    pub strength: Option<f64>,
    /// What has become of it; null if it has no status.
    pub status: Option<String>,
    /// Whether it is in doubt itself.
    pub in_doubt: bool,
    /// How many steps away it is.
    pub distance: usize,
}

impl Report for WhyReport {
    const SCHEMA: &'static str = "forge.why/1";

    fn human(&self, screen: &mut Screen) {
        self.fields.print_fields(screen);
        if let Some(doubt) = &self.doubt {
            screen.put(Tone::Warning, "In doubt: ");
            screen.line(Tone::Plain, doubt);
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
            screen.line(
                Tone::Plain,
                "It rests on nothing that is recorded, and nothing rests on it.",
            );
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
