//! What was purged, and what is left.

use super::import::{bytes, count};
use crate::output::{Report, Screen, Tone};
use forge_store::redact::MIN_SECRET_BYTES;
use forge_store::store::{self, PurgeKind};
use serde::Serialize;
use std::path::Path;

/// A place.
#[derive(Debug, Serialize)]
pub struct PlaceJson {
    /// The session; null if no session names it.
    pub session: Option<String>,
    /// What it is.
    pub kind: &'static str,
    /// Which one.
    pub name: String,
    /// How many secrets, parts of one at an end of a text too.
    pub count: u64,
}

/// A process.
#[derive(Debug, Serialize)]
pub struct HolderJson {
    /// Its id.
    pub pid: u32,
    /// The first words of its command line.
    pub command: String,
}

/// A file with secrets.
#[derive(Debug, Serialize)]
pub struct FileJson {
    /// The file, below the store.
    pub file: String,
    /// How many.
    pub count: u64,
}

/// A purge.
#[derive(Debug, Serialize)]
pub struct Purged {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// How many secrets were looked for.
    pub secrets: u64,
    /// How many secrets the rules found that are too short to be purged: they stay.
    pub too_short: u64,
    /// Where they stood; where nothing was changed, where they stand.
    pub places: Vec<PlaceJson>,
    /// Files that were removed, or would be: copies for searching, and writes that could not be read.
    pub removed: Vec<String>,
    /// Files that were written over in place.
    pub overwritten: Vec<String>,
    /// What stands in the store's folder and is not forge's: it is left as it is.
    pub foreign: Vec<String>,
    /// Whether nothing is left within reach.
    pub done: bool,
    /// Writes in the spool without the store's seal, which wait until it is taken over.
    pub unsealed: Vec<String>,
    /// Older states of the index that are still read.
    pub held: Vec<String>,
    /// The processes that hold files of before.
    pub holders: Vec<HolderJson>,
    /// Whether others went on writing what they had read before.
    pub comes_back: bool,
    /// How many files of the store were looked through.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The files that hold secrets as they are.
    pub found: Vec<FileJson>,
}

impl Purged {
    /// What is told of it.
    #[must_use]
    pub fn of(
        purged: store::PurgeReport,
        store: &Path,
        (dry_run, secrets, too_short): (bool, u64, u64),
    ) -> Self {
        let below = |path: &Path| path.strip_prefix(store).unwrap_or(path).display().to_string();
        let done = purged.is_done();
        let place = |one: store::PurgeFinding| PlaceJson {
            session: one.session,
            kind: word(one.kind),
            name: one.name,
            count: one.count,
        };
        Self {
            dry_run,
            secrets,
            too_short,
            places: purged.places.into_iter().map(place).collect(),
            removed: purged.removed.iter().map(|path| below(path)).collect(),
            foreign: purged.foreign.iter().map(|path| below(path)).collect(),
            overwritten: purged.overwritten.iter().map(|path| below(path)).collect(),
            done,
            unsealed: purged.unsealed.iter().map(|path| below(path)).collect(),
            held: purged.held.iter().map(|path| below(path)).collect(),
            holders: purged
                .holders
                .into_iter()
                .map(|one| HolderJson { pid: one.pid, command: one.command })
                .collect(),
            comes_back: purged.comes_back,
            files: purged.searched.files,
            bytes: purged.searched.bytes,
            found: purged
                .searched
                .found
                .iter()
                .map(|(path, count)| FileJson { file: below(path), count: *count })
                .collect(),
        }
    }

    /// What is to be done about a file that forge does not change.
    fn whose(&self, file: &str) -> &'static str {
        let is_below = |one: &String| Path::new(file).starts_with(one);
        match file {
            "config.toml" => ": it is your file, remove it there",
            _ if self.foreign.iter().any(is_below) => ": it is not forge's, remove it",
            _ => "",
        }
    }

    fn left(&self, screen: &mut Screen) {
        for one in &self.found {
            let times = count(one.count, "time");
            let text = format!("{} holds it {times}{}", one.file, self.whose(&one.file));
            screen.line(Tone::Warning, &text);
        }
        for one in &self.unsealed {
            let text = format!(
                "{one} does not have the store's seal: accept it with 'forge adopt', or remove it"
            );
            screen.line(Tone::Warning, &text);
        }
        for one in &self.held {
            screen.line(Tone::Warning, &format!("{one} is still read"));
        }
        for one in &self.holders {
            let text = format!("process {} still has old files open: {}", one.pid, one.command);
            screen.line(Tone::Warning, &text);
        }
        if self.comes_back {
            screen.line(
                Tone::Warning,
                "Other processes continued to write what they had read before.",
            );
        }
    }
}

const fn word(kind: PurgeKind) -> &'static str {
    match kind {
        PurgeKind::Session => "session",
        PurgeKind::Branch => "branch",
        PurgeKind::Source => "source",
        PurgeKind::Revision => "revision",
        PurgeKind::Body => "verb",
        PurgeKind::Checkpoint => "checkpoint",
        PurgeKind::Operation => "operation",
        PurgeKind::Facts => "facts",
        PurgeKind::Text => "text",
        PurgeKind::Bytes => "bytes",
    }
}

impl Report for Purged {
    const SCHEMA: &'static str = "forge.purge/1";

    fn human(&self, screen: &mut Screen) {
        let total: u64 = self.places.iter().map(|place| place.count).sum();
        let said = match (self.places.is_empty(), self.dry_run) {
            (true, true) => "Nothing would be replaced".to_owned(),
            (true, false) => "Nothing was left to replace".to_owned(),
            (false, dry_run) => {
                let verb = if dry_run { "Would replace" } else { "Replaced" };
                format!(
                    "{verb} {} in {}",
                    count(total, "secret"),
                    count(self.places.len() as u64, "place")
                )
            }
        };
        screen.line(Tone::Plain, &said);
        for place in &self.places {
            screen.put(Tone::Id, &format!("  {} {}", place.kind, place.name));
            let session = place
                .session
                .as_ref()
                .map_or_else(String::new, |name| format!(" (session {name})"));
            screen.line(Tone::Dim, &format!(": {}{session}", place.count));
        }
        for file in &self.removed {
            let verb = if self.dry_run { "Would remove" } else { "Removed" };
            screen.line(Tone::Plain, &format!("{verb} {file}"));
        }
        for file in &self.overwritten {
            screen.line(Tone::Plain, &format!("Written over in {file}"));
        }
        for file in &self.foreign {
            let text = format!("Left {file} as it is: it is not forge's");
            screen.line(Tone::Warning, &text);
        }
        if self.too_short > 0 {
            let secrets = count(self.too_short, "secret");
            let text = format!(
                "Left {secrets} shorter than {MIN_SECRET_BYTES} bytes: '--pattern' can purge one \
                together with the text around it"
            );
            screen.line(Tone::Warning, &text);
        }
        if self.dry_run {
            return;
        }
        self.left(screen);
        if self.done {
            let files = count(self.files, "file");
            // Of little the bytes depend on chance.
            let size = if self.bytes < 1_000_000 {
                String::new()
            } else {
                format!(" ({})", bytes(self.bytes))
            };
            let what = if self.too_short > 0 { "What was looked for" } else { "It" };
            screen.line(Tone::Good, &format!("{what} is in none of the store's {files}{size}"));
            screen.line(
                Tone::Dim,
                "Freed blocks of the disk, backups, bundles and other files are out of reach: revoke it too",
            );
        } else {
            screen.line(Tone::Warning, "Not yet gone: end what holds it, and purge again");
        }
    }
}
