//! Reports about a store's key, and about changes of it.

use crate::output::{Report, Screen, Tone};
use crate::text::count_text;
use forge_store::model::Timestamp;
use forge_store::store::{self, KeyState, SealStatus};
use serde::Serialize;
use std::path::Path;

/// The state of a store's key.
#[derive(Debug, Serialize)]
pub struct KeyShowReport {
    /// The path of the store; only for people.
    #[serde(skip)]
    pub path: String,
    pub id: String,
    /// `sealed`, `unsealed`, `no_key` or `no_witness`.
    pub seals: SealStatus,
    /// Whether the store is encrypted.
    pub encrypted: bool,
    /// The folder of keys and witnesses on this machine; only for people.
    #[serde(skip)]
    pub keyring: Option<String>,
    /// The journal position that the witness has seen, in bytes.
    pub witnessed: Option<u64>,
    /// When the store was adopted; null for one that was sealed from the start.
    pub adopted_at: Option<Timestamp>,
    /// The journal position at the adoption. What is before it cannot be verified.
    pub adopted_position: Option<u64>,
}

impl KeyShowReport {
    /// Creates the report for this store.
    pub fn new(path: &Path, keyring: Option<&Path>, state: KeyState) -> Self {
        Self {
            path: path.display().to_string(),
            id: state.id,
            seals: state.seal_status,
            encrypted: state.encrypted,
            keyring: keyring.map(|path| path.display().to_string()),
            witnessed: state.witnessed,
            adopted_at: state.adopted.map(|(_, time)| time),
            adopted_position: state.adopted.map(|(position, _)| position),
        }
    }
}

impl Report for KeyShowReport {
    const SCHEMA: Option<&'static str> = Some("forge.key/1");

    fn human(&self, screen: &mut Screen) {
        screen.plain(&format!("Store {} ({})", self.path, self.id));
        let (tone, line) = match self.seals {
            SealStatus::Sealed => (Tone::Good, "sealed; its key and its witness are here"),
            SealStatus::Unsealed => (Tone::Warning, "has no seals; 'forge adopt' adds them"),
            SealStatus::NoWitness => (Tone::Bad, "sealed; its witness is not here"),
            SealStatus::NoKey => (Tone::Bad, "sealed; its key is not here"),
        };
        screen.line(tone, &format!("  {line}"));
        if self.encrypted {
            screen.plain("  encrypted; without its key it cannot be read by anybody");
        }
        if let Some(keyring) = &self.keyring {
            screen.dim(&format!("  keys and witnesses are in {keyring}"));
        }
        if let Some(position) = self.witnessed {
            screen.dim(&format!("  the witness saw it reach position {position}"));
        }
        if let (Some(time), Some(position)) = (self.adopted_at, self.adopted_position) {
            let when = screen.ago(time);
            let line = format!(
                "  adopted {when} at position {position}: what came before cannot be verified"
            );
            screen.plain(&line);
        }
    }
}

/// A key that was exported to a file or imported from one.
#[derive(Debug, Serialize)]
pub struct KeyTransferReport {
    /// The store's id.
    pub id: String,
    /// The path of the file; only for people.
    #[serde(skip)]
    pub file: String,
    /// `exported` or `imported`.
    pub done: &'static str,
}

impl KeyTransferReport {
    pub fn new(id: String, file: &Path, done: &'static str) -> Self {
        Self { id, file: file.display().to_string(), done }
    }
}

impl Report for KeyTransferReport {
    const SCHEMA: Option<&'static str> = Some("forge.key.carried/1");

    fn human(&self, screen: &mut Screen) {
        if self.done == "imported" {
            return screen.good(&format!("The key of the store {} is here now.", self.id));
        }
        screen.plain(&format!("Wrote the key of the store to {}", self.file));
        screen.dim(
            "  carry it and the store over, run 'forge key import' there, and remove the file",
        );
    }
}

/// The result of an adoption.
#[derive(Debug, Serialize)]
pub struct StoreAdoptReport {
    /// The path of the store; only for people.
    #[serde(skip)]
    pub path: String,
    /// The state of its seals before the adoption.
    pub before: SealStatus,
    /// Whether the whole store was adopted, and not only spooled writes.
    pub whole: bool,
    /// The end of its journal, in bytes; if only spooled writes were adopted, the position that its
    /// witness has seen.
    pub position: u64,
    /// The number of spooled writes that had no seal of the store and have one now.
    pub waiting: u64,
}

impl StoreAdoptReport {
    pub fn new(path: &Path, done: &store::AdoptReport) -> Self {
        Self {
            path: path.display().to_string(),
            before: done.before,
            whole: done.resealed,
            position: done.position,
            waiting: done.waiting,
        }
    }
}

impl Report for StoreAdoptReport {
    fn human(&self, screen: &mut Screen) {
        match self.whole {
            true => {
                screen.good(&format!("Adopted the store {}.", self.path));
                screen.plain(
                    "  It has a new id and a new key. What came before is kept as it was, but \
                    cannot be verified.",
                );
            }
            false => screen.plain("The store's seals are right: nothing to adopt."),
        }
        if self.waiting > 0 {
            let writes = count_text(self.waiting, "write");
            screen.plain(&format!("  Accepted {writes} that waited without a seal."));
        }
    }
}
