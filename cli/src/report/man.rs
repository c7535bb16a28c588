//! Reports about manual pages.

use crate::output::{Report, Screen};
use serde::Serialize;

/// The manual pages that were written.
#[derive(Debug, Serialize)]
pub struct ManPagesReport {
    /// Their file names, with the page of forge first.
    pub pages: Vec<String>,
}

impl Report for ManPagesReport {
    fn human(&self, screen: &mut Screen) {
        screen.plain(&format!("Wrote {} manual pages.", self.pages.len()));
    }
}
