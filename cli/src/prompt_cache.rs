//! The last answer of `forge prompt-segment`, kept outside the store. A shell asks before each
//! prompt, and between two prompts the store has seldom changed.

use crate::context::Context;
use crate::hook::agent_process::ancestor_agent;
use crate::private_files;
use forge_store::store::Store;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the answer for a store is kept, and the state of the store that the answer is about.
pub struct PromptCache {
    file: PathBuf,
    state: String,
}

impl PromptCache {
    /// Looks at the files of the store; `None` if they cannot be read, or if there is no directory
    /// for the answer.
    pub fn of(store: &Path, context: &Context) -> Option<Self> {
        // The answer is about the session that was named, or else about that of the agent around.
        let agent = || Some(format!("\n{}", ancestor_agent(store)?.session));
        let session = context.session().map(str::to_owned).or_else(agent).unwrap_or_default();
        let name = blake3::hash(format!("{}\n{session}", store.display()).as_bytes());
        let folder = context.environment.state_directory()?.join("forge/prompt");
        let file = folder.join(&name.to_hex().as_str()[..32]);
        Some(Self { file, state: state_of(store)? })
    }

    /// Returns the answer, if the store has not changed since.
    pub fn line(&self) -> Option<String> {
        let kept = fs::read_to_string(&self.file).ok()?;
        let (state, line) = kept.split_once('\n')?;
        (state == self.state).then(|| line.to_owned())
    }

    /// Keeps an answer. Nothing about an encrypted store is kept.
    pub fn keep(&self, line: &str, store: &Store) {
        if store.is_encrypted() {
            return;
        }
        // If the answer cannot be kept, the next prompt reads the store again.
        let _ = self.file.parent().map(private_files::create_directories);
        let _ =
            private_files::replace_file(&self.file, format!("{}\n{line}", self.state).as_bytes());
    }
}

/// Returns a hash that changes with every write: of the names, sizes and times of the files that
/// writers append to or add, and of forge's version. `None` if there is no journal here, as in a
/// store in a database: then no file changes with every write.
fn state_of(store: &Path) -> Option<String> {
    let journal = fs::read_dir(store.join("journal")).ok()?;
    // The first spooled write creates the spool.
    let spool = fs::read_dir(store.join("spool")).into_iter().flatten();
    let mut files = Vec::new();
    for entry in journal.chain(spool) {
        let entry = entry.ok()?;
        let about = entry.metadata().ok()?;
        let place = (about.ino(), about.len(), about.mtime(), about.mtime_nsec());
        files.push(format!("{} {place:?}", entry.path().display()));
    }
    files.sort();
    files.push(env!("CARGO_PKG_VERSION").to_owned());
    Some(blake3::hash(files.join("\n").as_bytes()).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While a write waited in the spool, the state of a store in a database did not change.
    #[test]
    fn no_prompt_is_cached_for_a_store_in_a_database() {
        let store = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = store.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("spool/0.damaged", "x");
        assert_eq!(state_of(store.path()), None);
        write("journal/0", "x");
        let before = state_of(store.path());
        assert!(before.is_some());
        write("journal/0", "xy");
        assert_ne!(state_of(store.path()), before);
    }
}
