//! What is known of a store's key, and what was done with it.

use crate::output::{Report, Screen, Tone};
use forge_store::model::Timestamp;
use forge_store::store::{self, KeyState, SealStatus};
use serde::Serialize;
use std::path::Path;

/// The word for what is known of a store's seals.
#[must_use]
pub const fn seal_word(standing: SealStatus) -> &'static str {
    match standing {
        SealStatus::Unsealed => "unsealed",
        SealStatus::Sealed => "sealed",
        SealStatus::NoKey => "no_key",
        SealStatus::NoWitness => "no_witness",
    }
}

/// What is known of a store's key.
#[derive(Debug, Serialize)]
pub struct KeyShowReport {
    /// The store: for people only.
    #[serde(skip)]
    pub path: String,
    /// Its id.
    pub id: String,
    /// `sealed`, `unsealed`, `no_key` or `no_witness`.
    pub seals: &'static str,
    /// Whether the store is encrypted.
    pub encrypted: bool,
    /// Where keys and witnesses lie on this machine: for people only.
    #[serde(skip)]
    pub keyring: Option<String>,
    /// How far the witness has seen the store, in bytes of its journal.
    pub witnessed: Option<u64>,
    /// When the store was taken over; null for one that was sealed from its beginning.
    pub adopted_at: Option<Timestamp>,
    /// Where it ended then: nobody vouches for what stands before.
    pub adopted_position: Option<u64>,
}

impl KeyShowReport {
    /// Of this store.
    #[must_use]
    pub fn new(path: &Path, keyring: Option<&Path>, state: KeyState) -> Self {
        Self {
            path: path.display().to_string(),
            id: state.id,
            seals: seal_word(state.standing),
            encrypted: state.encrypted,
            keyring: keyring.map(|path| path.display().to_string()),
            witnessed: state.witnessed,
            adopted_at: state.adopted.map(|(_, time)| time),
            adopted_position: state.adopted.map(|(position, _)| position),
        }
    }
}

impl Report for KeyShowReport {
    const SCHEMA: &'static str = "forge.key/1";

    fn human(&self, screen: &mut Screen) {
        screen.line(Tone::Plain, &format!("Store {} ({})", self.path, self.id));
        let (tone, line) = match self.seals {
            "sealed" => (Tone::Good, "sealed; its key and its witness are here"),
            "unsealed" => (Tone::Warning, "bears no seals; 'forge adopt' gives it some"),
            "no_witness" => (Tone::Bad, "sealed; its witness is not here"),
            _ => (Tone::Bad, "sealed; its key is not here"),
        };
        screen.line(tone, &format!("  {line}"));
        if self.encrypted {
            screen.line(Tone::Plain, "  encrypted; without its key it cannot be read by anybody");
        }
        if let Some(keyring) = &self.keyring {
            screen.line(Tone::Dim, &format!("  keys and witnesses lie in {keyring}"));
        }
        if let Some(position) = self.witnessed {
            screen.line(Tone::Dim, &format!("  the witness saw it reach position {position}"));
        }
        if let (Some(time), Some(position)) = (self.adopted_at, self.adopted_position) {
            let when = screen.ago(time);
            let line = format!(
                "  taken over {when} at position {position}: nobody vouches for what came before"
            );
            screen.line(Tone::Plain, &line);
        }
    }
}

/// A key that went to a file or came from one.
#[derive(Debug, Serialize)]
pub struct KeyTransferReport {
    /// The store's id.
    pub id: String,
    /// The file: for people only.
    #[serde(skip)]
    pub file: String,
    /// `exported` or `imported`.
    pub done: &'static str,
}

impl KeyTransferReport {
    /// To this file.
    #[must_use]
    pub fn exported(id: String, file: &Path) -> Self {
        Self { id, file: file.display().to_string(), done: "exported" }
    }

    /// From this file.
    #[must_use]
    pub fn imported(id: String, file: &Path) -> Self {
        Self { id, file: file.display().to_string(), done: "imported" }
    }
}

impl Report for KeyTransferReport {
    const SCHEMA: &'static str = "forge.key.carried/1";

    fn human(&self, screen: &mut Screen) {
        if self.done == "imported" {
            screen.line(Tone::Good, &format!("The key of the store {} is here now.", self.id));
            return;
        }
        screen.line(Tone::Plain, &format!("Wrote the key of the store to {}", self.file));
        screen.line(
            Tone::Dim,
            "  carry it and the store over, run 'forge key import' there, and remove the file",
        );
    }
}

/// What was taken over.
#[derive(Debug, Serialize)]
pub struct StoreAdoptReport {
    /// The store: for people only.
    #[serde(skip)]
    pub path: String,
    /// What was known of its seals before.
    pub before: &'static str,
    /// Whether the whole store was taken over, and not only what waited.
    pub whole: bool,
    /// Where its journal ended.
    pub position: u64,
    /// Writes that waited without the store's seal and bear it now.
    pub waiting: u64,
}

impl StoreAdoptReport {
    /// Of this store.
    #[must_use]
    pub fn new(path: &Path, done: &store::AdoptReport) -> Self {
        Self {
            path: path.display().to_string(),
            before: seal_word(done.before),
            whole: done.resealed,
            position: done.position,
            waiting: done.waiting,
        }
    }
}

impl Report for StoreAdoptReport {
    const SCHEMA: &'static str = "forge.adopt/1";

    fn human(&self, screen: &mut Screen) {
        match self.whole {
            true => {
                screen.line(Tone::Good, &format!("Took the store {} over.", self.path));
                screen.line(
                    Tone::Plain,
                    "  It has a new id and a new key. What came before is kept as it was; nobody vouches for it.",
                );
            }
            false => screen.line(Tone::Plain, "The store's seals are right: nothing to take over."),
        }
        if self.waiting > 0 {
            let line =
                format!("  {} writes that waited without a seal were taken in.", self.waiting);
            screen.line(Tone::Plain, &line);
        }
    }
}
