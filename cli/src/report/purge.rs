//! Reports of purges: what was purged, and what remains.

use super::import::size_text;
use super::remote::UnpushedLine;
use crate::error::{EXIT_NOT_YET, EXIT_OK};
use crate::output::{Report, Screen, Tone};
use crate::text::{count_text, json_word};
use forge_store::redact::MIN_SECRET_BYTES;
use forge_store::store;
use serde::Serialize;
use std::path::Path;

#[derive(Debug, Serialize)]
pub struct SecretFileJson {
    /// The path of the file, relative to the store.
    pub file: String,
    /// The number of secrets in it.
    pub count: u64,
}

/// The result of a purge.
#[derive(Debug, Serialize)]
pub struct SecretPurgeReport {
    pub dry_run: bool,
    /// The number of secrets that were searched for.
    pub secrets: u64,
    /// The number of secrets found by the rules that are too short to be purged: they stay.
    pub too_short: u64,
    /// Where the secrets were; in a dry run, where they are.
    pub places: Vec<store::PurgeFinding>,
    /// What was removed, or would be: the folder of the search copy, and unreadable writes.
    pub removed: Vec<String>,
    /// Files that were overwritten in place.
    pub overwritten: Vec<String>,
    /// Files in the store's folder that do not belong to forge: they stay unchanged.
    pub foreign: Vec<String>,
    /// Whether no secret is left in what forge can change.
    pub done: bool,
    /// Spooled writes without the store's seal, which stay until the store is adopted.
    pub unsealed: Vec<String>,
    /// Older generations of the index that are still being read.
    pub held: Vec<String>,
    /// The processes that have old files open.
    pub holders: Vec<forge_store::error::LockHolder>,
    /// Whether other processes continued to write old data.
    pub comes_back: bool,
    /// Whether the files of the store's database may still contain secrets; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unvacuumed: bool,
    /// The number of files of the store that were searched.
    pub files: u64,
    /// The size of these files, in bytes.
    pub bytes: u64,
    /// The files that contain secrets literally.
    pub found: Vec<SecretFileJson>,
    /// What is not on remotes, for those that a purge has not reached; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpushed: Vec<UnpushedLine>,
}

impl SecretPurgeReport {
    pub fn new(
        purged: store::PurgeReport,
        store: &Path,
        (dry_run, secrets, too_short): (bool, u64, u64),
        unpushed: Vec<UnpushedLine>,
    ) -> Self {
        let below = |path: &Path| path.strip_prefix(store).unwrap_or(path).display().to_string();
        let done = purged.is_done();
        Self {
            dry_run,
            secrets,
            too_short,
            places: purged.places,
            removed: purged.removed.iter().map(|path| below(path)).collect(),
            foreign: purged.foreign.iter().map(|path| below(path)).collect(),
            overwritten: purged.overwritten.iter().map(|path| below(path)).collect(),
            done,
            unsealed: purged.unsealed.iter().map(|path| below(path)).collect(),
            held: purged.held.iter().map(|path| below(path)).collect(),
            holders: purged.holders,
            comes_back: purged.comes_back,
            unvacuumed: purged.unvacuumed,
            files: purged.searched.files,
            bytes: purged.searched.bytes,
            found: purged
                .searched
                .found
                .iter()
                .map(|(path, count)| SecretFileJson { file: below(path), count: *count })
                .collect(),
            unpushed,
        }
    }

    /// What to do about a file that forge does not change.
    fn advice_for(&self, file: &str) -> &'static str {
        let is_below = |one: &String| Path::new(file).starts_with(one);
        match file {
            "config.toml" => ": it is your file, remove it there",
            _ if self.foreign.iter().any(is_below) => ": it is not forge's, remove it",
            _ => "",
        }
    }

    fn print_rest(&self, screen: &mut Screen) {
        for one in &self.found {
            let times = count_text(one.count, "time");
            screen.warning(&format!("{} holds it {times}{}", one.file, self.advice_for(&one.file)));
        }
        for one in &self.unsealed {
            let text = format!(
                "{one} does not have the store's seal: accept it with 'forge adopt', or remove it"
            );
            screen.warning(&text);
        }
        for one in &self.held {
            screen.warning(&format!("{one} is still being read: end its readers"));
        }
        for one in &self.holders {
            let text = format!("Process {} has old files open: end it ({})", one.pid, one.command);
            screen.warning(&text);
        }
        if self.unvacuumed {
            screen.warning(
                "The files of the database still hold replaced rows: '--vacuum' rewrites them, if \
                 the user owns the tables. Its write-ahead log, standbys and backups keep what \
                 they have until they expire",
            );
        }
        if self.comes_back {
            screen.warning(
                "Other processes wrote secrets again that they had read before: end them.",
            );
        }
    }
}

impl Report for SecretPurgeReport {
    fn exit_code(&self) -> u8 {
        if !self.dry_run && !self.done { EXIT_NOT_YET } else { EXIT_OK }
    }

    fn human(&self, screen: &mut Screen) {
        let total: u64 = self.places.iter().map(|place| place.count).sum();
        let sentence = match (self.places.is_empty(), self.dry_run) {
            (true, true) => "Nothing would be replaced".to_owned(),
            (true, false) => "Nothing was left to replace".to_owned(),
            (false, dry_run) => {
                let verb = if dry_run { "Would replace" } else { "Replaced" };
                format!(
                    "{verb} {} in {}",
                    count_text(total, "secret"),
                    count_text(self.places.len() as u64, "place")
                )
            }
        };
        screen.plain(&sentence);
        for place in &self.places {
            screen.put(Tone::Id, &format!("  {} {}", json_word(place.kind), place.name));
            let session = place
                .session
                .as_ref()
                .map_or_else(String::new, |name| format!(" (session {name})"));
            screen.dim(&format!(": {}{session}", place.count));
        }
        for file in &self.removed {
            let verb = if self.dry_run { "Would remove" } else { "Removed" };
            screen.plain(&format!("{verb} {file}"));
        }
        for file in &self.overwritten {
            screen.plain(&format!("Written over in {file}"));
        }
        for file in &self.foreign {
            screen.warning(&format!("Left {file} as it is: it is not forge's"));
        }
        if self.too_short > 0 {
            let secrets = count_text(self.too_short, "secret");
            let text = format!(
                "Left {secrets} shorter than {MIN_SECRET_BYTES} bytes: '--pattern' can purge one \
                together with the text around it"
            );
            screen.warning(&text);
        }
        if self.dry_run {
            return;
        }
        self.print_rest(screen);
        if self.done {
            let files = count_text(self.files, "file");
            // Sizes this small depend on random data.
            let size = if self.bytes < 1_000_000 {
                String::new()
            } else {
                format!(" ({})", size_text(self.bytes))
            };
            let what = if self.too_short > 0 { "What was looked for" } else { "It" };
            screen.good(&format!("{what} is in none of the store's {files}{size}"));
            screen.dim(
                "Freed blocks of the disk, backups, bundles and other files are out of reach: \
                 revoke it too",
            );
        } else {
            screen.warning("Not yet gone: follow the advice above, and purge again");
        }
        for line in &self.unpushed {
            if let Some(text) = line.describe_purges() {
                screen.warning(&text);
                screen.dim(&format!("  {}", line.purge_remedy()));
            }
        }
    }
}
