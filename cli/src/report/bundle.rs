//! Reports about bundles and backups.

use crate::output::{Report, Screen};
use crate::text::{count_text, name_list};
use forge_store::store;
use serde::Serialize;
use std::path::Path;

/// A bundle that was written.
#[derive(Debug, Serialize)]
pub struct ExportedBundleReport {
    /// The path of the file.
    pub file: String,
    /// The names of the sessions in it.
    pub sessions: Vec<String>,
    /// The number of objects in it that are separate items, outside of records.
    pub objects: u64,
    pub records: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl ExportedBundleReport {
    pub fn new(file: &Path, written: store::BundleExportReport) -> Self {
        let store::BundleExportReport { sessions, objects, records, bytes, .. } = written;
        Self { file: file.display().to_string(), sessions, objects, records, bytes }
    }
}

fn session_names(names: &[String]) -> String {
    if names.is_empty() { "no session".to_owned() } else { name_list(names) }
}

impl Report for ExportedBundleReport {
    const SCHEMA: Option<&'static str> = Some("forge.bundle/1");

    fn human(&self, screen: &mut Screen) {
        let (records, objects) =
            (count_text(self.records, "record"), count_text(self.objects, "object"));
        let sessions = session_names(&self.sessions);
        screen.plain(&format!("Wrote {sessions} to {}: {records}, {objects}", self.file));
    }
}

impl Report for store::BundleImportReport {
    const SCHEMA: Option<&'static str> = Some("forge.import-bundle/1");

    fn human(&self, screen: &mut Screen) {
        let sessions = session_names(&self.sessions);
        let known = match self.known {
            0 => String::new(),
            1 => ", 1 was here already".to_owned(),
            known => format!(", {known} were here already"),
        };
        let line = format!("Imported {} of {sessions}{known}", count_text(self.records, "record"));
        screen.plain(&line);
    }
}

/// A backup that was made.
#[derive(Debug, Serialize)]
pub struct StoreBackupReport {
    /// The path of the store.
    pub from: String,
    /// The path of its copy.
    pub to: String,
    #[serde(flatten)]
    pub done: store::BackupReport,
}

impl StoreBackupReport {
    /// Creates the report for these two stores.
    pub fn new(from: &Path, to: &Path, done: store::BackupReport) -> Self {
        Self { from: from.display().to_string(), to: to.display().to_string(), done }
    }
}

impl Report for StoreBackupReport {
    fn human(&self, screen: &mut Screen) {
        let revisions = count_text(self.done.revisions, "revision");
        screen.plain(&format!("Copied {} to {}: {revisions}, verified", self.from, self.to));
        match self.done.waiting {
            0 => {}
            1 => screen.plain("1 write waits in its spool"),
            many => screen.plain(&format!("{many} writes wait in its spool")),
        }
    }
}
