//! The expected content of a store, kept outside of it.

use super::work::{Claims, LINE, claims_at, hash_of, source};
use super::{SHARED, act, keyring, open};
use forge_store::error::Error;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{
    CheckpointFilter, ClaimChange, Session, Store, VerifyDepth, VerifyOutcome,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A state that was acknowledged.
#[derive(Clone, Debug)]
struct AcknowledgedState {
    hash: String,
    /// Whether it must be visible; otherwise a pruning may have folded it.
    seen: bool,
}

/// The acknowledgements of one session.
#[derive(Clone, Default)]
struct SessionAcknowledgements {
    states: BTreeMap<u64, AcknowledgedState>,
    /// What was visible before the last pruning began.
    before: Option<BTreeMap<u64, AcknowledgedState>>,
    checkpoints: BTreeMap<u64, String>,
    pruned: bool,
    /// The number of lines taken from the source.
    lines: u64,
    /// The greatest acknowledged number.
    last: u64,
}

/// All acknowledgements.
#[derive(Clone, Default)]
pub(super) struct Oracle {
    sessions: BTreeMap<String, SessionAcknowledgements>,
    notes: BTreeSet<String>,
    /// The number of acknowledgements.
    pub(super) heard: u64,
}

impl Oracle {
    /// Reads a line. Returns whether it was an acknowledgement.
    ///
    /// # Panics
    /// If a process reports that it failed.
    pub(super) fn hear(&mut self, line: &str) -> bool {
        assert!(!line.starts_with("failed"), "{line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["note", id] = words[..] {
            self.notes.insert(id.to_owned());
            self.heard += 1;
            return true;
        }
        let [what, session, rest @ ..] = &words[..] else { return false };
        let heard = self.sessions.entry((*session).to_owned()).or_default();
        let number = |at: usize| rest[at].parse::<u64>().unwrap();
        match *what {
            "state" => {
                let state = AcknowledgedState { hash: rest[1].to_owned(), seen: true };
                heard.states.insert(number(0), state);
                heard.last = heard.last.max(number(0));
            }
            "checkpoint" => {
                heard.checkpoints.insert(number(0), rest[1].to_owned());
                heard.last = heard.last.max(number(0));
            }
            "source" => heard.lines = heard.lines.max(number(0)),
            "pruning" => {
                heard.before = Some(heard.states.clone());
                heard.states.values_mut().for_each(|state| state.seen = false);
                heard.pruned = true;
                return false;
            }
            "kept" => {
                if let Some(state) = heard.states.get_mut(&number(0)) {
                    state.seen = true;
                }
            }
            "unpruned" => {
                let made = std::mem::take(&mut heard.states);
                heard.states = heard.before.take().unwrap_or_default();
                for (number, state) in made {
                    heard.states.entry(number).or_insert(state);
                }
            }
            _ => return false,
        }
        self.heard += 1;
        true
    }

    /// Opens the store and returns what is wrong with it. Then writes something, which must be
    /// there afterwards. `in_doubt`: how many numbers a session may have beyond the acknowledged
    /// ones.
    pub(super) fn audit(
        &mut self,
        path: &Path,
        in_doubt: u64,
        depth: VerifyDepth,
    ) -> Result<(), String> {
        let error_text = |error: Error| error.to_string();
        let store = open(path).map_err(|error| format!("it does not open: {error}"))?;
        for (name, heard) in &mut self.sessions {
            let session = match store.session(name) {
                Err(Error::NotFound { .. }) if heard.is_empty() => continue,
                found => found.map_err(|error| format!("{name}: {error}"))?,
            };
            heard.audit(&session, in_doubt).map_err(|error| format!("{name}: {error}"))?;
        }
        let shared = store.session(SHARED).map_err(error_text)?;
        let head = shared.head().map_err(error_text)?;
        let claims = claims_at(&shared, &head).map_err(error_text)?;
        let missing: Vec<_> = self.notes.iter().filter(|id| !claims.contains_key(*id)).collect();
        if !missing.is_empty() {
            return Err(format!("notes are missing: {missing:?}"));
        }
        let id = format!("audit-{:016x}", getrandom::u64().unwrap());
        let change =
            ClaimChange::add(Key::new(Kind::Note, id.as_str()), Value::from([("a", "b".into())]));
        shared
            .write(&act(1))
            .change(change)
            .commit()
            .map_err(|error| format!("it takes nothing: {error}"))?;
        self.notes.insert(id);
        drop((shared, store));
        let verified = Store::verify(path, depth, act(1).now, keyring(path).as_deref());
        let verified = verified.map_err(error_text)?;
        match verified.outcome {
            VerifyOutcome::Clean => Ok(()),
            outcome => Err(format!("{outcome:?}: {:?}", verified.findings)),
        }
    }
}

impl SessionAcknowledgements {
    fn is_empty(&self) -> bool {
        self.states.is_empty() && self.checkpoints.is_empty() && self.lines == 0
    }

    fn audit(&mut self, session: &Session, in_doubt: u64) -> Result<(), String> {
        let error_text = |error: Error| error.to_string();
        let summary = session.summary().map_err(error_text)?;
        let last = summary.last_sequence;
        if last < self.last || last > self.last.saturating_add(in_doubt) {
            return Err(format!(
                "the last number is #{last}, the last acknowledged one #{}",
                self.last
            ));
        }
        // Unacknowledged data that was found stays from now on, and the next process may be killed
        // before it prints anything.
        self.last = last;
        for (number, state) in &self.states {
            let claims = match session.at_sequence(*number) {
                Err(Error::Folded { .. }) if !state.seen => continue,
                Err(error) => return Err(format!("#{number}: {error}")),
                Ok(moment) => {
                    session.check_digest(&moment).map_err(|error| format!("#{number}: {error}"))?;
                    claims_at(session, &moment)
                }
            };
            let claims: Claims = claims.map_err(|error| format!("#{number}: {error}"))?;
            if hash_of(&claims) != state.hash {
                return Err(format!("#{number} is another state"));
            }
        }
        let made = session.checkpoints(&CheckpointFilter::default()).map_err(error_text)?;
        let made: BTreeMap<u64, String> =
            made.into_iter().map(|one| (one.sequence, one.id.to_string())).collect();
        for (number, id) in &self.checkpoints {
            match made.get(number) {
                Some(found) if found == id => {}
                None if self.pruned => {}
                found => return Err(format!("the checkpoint #{number} is {found:?}")),
            }
        }
        if self.lines > 0 {
            let bytes = session.source_bytes("log", 0, self.lines * LINE).map_err(error_text)?;
            if bytes != source(0, self.lines) {
                return Err("the source is another one".to_owned());
            }
        }
        Ok(())
    }
}
