//! Reports that the page of a session was written to a file.

use crate::output::{Report, Screen};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct PageReport {
    pub session: String,
    pub file: WrittenFile,
    /// `html` or `markdown`.
    pub format: &'static str,
    /// What was left out so that the page is not larger than allowed.
    pub left_out: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct WrittenFile {
    /// Its path, as it was given.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Report for PageReport {
    fn human(&self, screen: &mut Screen) {
        let size = self.file.bytes.div_ceil(1000);
        screen.plain(&format!("Wrote {} ({size} kB).", self.file.path));
        if !self.left_out.is_empty() {
            let left_out = self.left_out.join(", ");
            screen.dim(&format!("Left out to keep it small: {left_out}."));
        }
    }
}
