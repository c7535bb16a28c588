//! Reports of searches.

use crate::output::{Report, Screen, Tone};
use forge_store::model::Timestamp;
use forge_store::store::SearchHit;
use serde::Serialize;

/// A page of hits, latest first.
#[derive(Debug, Serialize)]
pub struct SearchReport {
    pub hits: Vec<HitLine>,
    /// The number of hits on all pages; null if the search stopped before it had counted them.
    pub total: Option<u64>,
    /// The number of texts in the searched sessions.
    pub texts: u64,
    /// The '--cursor' of the next page; null if there is none.
    pub cursor: Option<String>,
}

/// A hit: an entity or checkpoint that contains all words.
#[derive(Debug, Serialize)]
pub struct HitLine {
    pub session: String,
    /// Its kind, or `checkpoint`.
    pub kind: &'static str,
    pub id: String,
    /// When it first contained the words.
    pub at: Timestamp,
    /// The number of the revision or checkpoint that first contained them; for a fact, the number
    /// of the last revision at its time, or null if there was none.
    pub revision: Option<u64>,
    /// The number of its versions that contain all words.
    pub versions: u64,
    /// The text around the first of the words, on one line.
    pub snippet: String,
    /// The ranges of words in the snippet, in bytes: where each begins, and where it ends.
    pub found: Vec<[usize; 2]>,
}

impl From<SearchHit> for HitLine {
    fn from(hit: SearchHit) -> Self {
        Self {
            session: hit.session,
            kind: hit.kind.map_or("checkpoint", |kind| kind.name()),
            id: hit.id,
            at: hit.at,
            revision: hit.revision,
            versions: hit.versions,
            snippet: hit.snippet,
            found: hit.found.into_iter().map(|range| [range.start, range.end]).collect(),
        }
    }
}

impl Report for SearchReport {
    fn human(&self, screen: &mut Screen) {
        if self.hits.is_empty() {
            screen.plain(&format!("Nothing was found in {} texts.", self.texts));
            return;
        }
        let several = self.hits.iter().any(|hit| hit.session != self.hits[0].session);
        for hit in &self.hits {
            screen.put(Tone::Dim, &format!("{}  ", screen.time(hit.at)));
            screen.put(Tone::Plain, &format!("{} ", hit.kind));
            screen.put(Tone::Id, &hit.id);
            if let Some(revision) = hit.revision {
                screen.put(Tone::Dim, &format!("  #{revision}"));
            }
            if hit.versions > 1 {
                screen.put(Tone::Dim, &format!("  in {} versions", hit.versions));
            }
            if several {
                screen.put(Tone::Dim, &format!("  in {}", hit.session));
            }
            screen.end_line();
            screen.put(Tone::Plain, "  ");
            let mut at = 0;
            for [from, to] in &hit.found {
                screen.put(Tone::Plain, hit.snippet.get(at..*from).unwrap_or_default());
                screen.put(Tone::Heading, hit.snippet.get(*from..*to).unwrap_or_default());
                at = *to;
            }
            screen.plain(hit.snippet.get(at..).unwrap_or_default());
        }
        let shown = self.hits.len() as u64;
        if let Some(cursor) = &self.cursor {
            screen.gap();
            let count = match self.total {
                Some(total) => format!("{shown} of {total}"),
                None => format!("{shown} of many"),
            };
            screen.dim(&format!("{count}; next page: --cursor '{cursor}'"));
        }
    }
}
