//! Reports of secrets in a text.

use crate::output::{Report, Screen, TextTable, cells};
use serde::Serialize;

/// A secret that was found, without the secret itself.
#[derive(Debug, Serialize)]
pub struct FoundSecret {
    /// Its kind: the word after `redacted:`.
    pub kind: &'static str,
    /// The line in which it begins, from 1.
    pub line: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The secrets in a text.
#[derive(Debug, Default, Serialize)]
pub struct RedactReport {
    /// The secrets, in order.
    pub found: Vec<FoundSecret>,
}

impl Report for RedactReport {
    fn human(&self, screen: &mut Screen) {
        if self.found.is_empty() {
            return screen.plain("No secrets were found.");
        }
        let mut table = TextTable::new(&["Line", "Kind", "Bytes"]).right(0).right(2);
        for found in &self.found {
            table.row(cells![found.line, found.kind, found.bytes]);
        }
        screen.table(&table);
    }
}
