//! Reports of searches.

use crate::output::{Report, Screen, Tone};
use crate::text::count_text;
use forge_store::store::SearchPage;

impl Report for SearchPage {
    fn human(&self, screen: &mut Screen) {
        if self.hits.is_empty() {
            let texts = count_text(self.texts, "text");
            return screen.plain(&format!("Nothing was found in {texts}."));
        }
        let several = self.hits.iter().any(|hit| hit.session != self.hits[0].session);
        for hit in &self.hits {
            screen.put(Tone::Dim, &format!("{}  ", screen.time(hit.at)));
            screen.put(Tone::Plain, &format!("{} ", hit.kind_word()));
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
            for range in &hit.found {
                screen.put(Tone::Plain, hit.snippet.get(at..range.start).unwrap_or_default());
                screen.put(Tone::Heading, hit.snippet.get(range.clone()).unwrap_or_default());
                at = range.end;
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
