//! The facade: the API for library users and for all front ends.
//!
//! A [`Store`] contains [`Session`]s. Writes go through a [`SessionWrite`]: one record, one sync,
//! all or nothing. Reads return a [`StateAt`] a moment, a diff between two moments, or a history.

mod adopt;
mod agent_join;
mod amend_checkpoint;
mod backup;
mod begin;
mod branch;
mod brief;
mod bundle;
mod check_results;
mod claim_graph;
mod claims_over_time;
mod connected_system;
pub mod database;
mod digest_check;
mod disk_reserve;
mod drop;
mod event_stream;
mod fact_pages;
mod folder;
mod format_marker;
mod history;
mod history_page;
mod import_precondition;
mod imported_source;
mod in_database;
mod keyring;
mod maintenance;
mod merge;
mod new_checkpoint;
mod new_session;
mod open_gap;
mod parent_cycle;
mod prune;
mod purge;
mod recover;
mod redaction_gate;
pub mod remote;
mod repair;
mod resolve_moment;
mod restore;
mod search;
mod session;
mod session_list;
mod session_retention;
mod snapshot_diff;
mod source_import;
mod spool_entry;
mod spooled_write;
mod state;
#[cfg(test)]
mod tests;
mod undo;
mod validate;
mod verify;
mod write;
mod write_context;
mod write_report;

pub use crate::engine::checkpoint::CheckpointFilter;
pub use crate::engine::commit::{Options, SealStatus};

pub use crate::engine::fact::{FactClock, SourcedFact};
pub use crate::engine::journal_follower::{APPLY_BYTES, IDLE_TAIL_BYTES};
pub use crate::engine::rebuild::RebuildCounts;
pub use crate::engine::request::StoreRequest;
pub use crate::engine::revision_plan::{ClaimChange, ClaimPrecondition};
pub use crate::engine::state::{DifferenceBytes, RevisionState, StateDifferences};
pub use crate::engine::stored_claim::StoredClaim;
pub use crate::engine::verify::{VerifyCounts, VerifyDepth, VerifyFinding};
pub use adopt::{AdoptReport, KeyState};
pub use backup::BackupReport;
pub use branch::BranchSummary;
pub use brief::{BriefLine, HypothesisLines, SessionBrief, entity_title};
pub use bundle::{
    BundleExportReport, BundleImportReport, BundleRange, BundleSource, ExportMark, JoinedWork,
    SplitBranch, SplitReason,
};
pub use check_results::{CheckResults, LastCheckResult};
pub(crate) use check_results::{CheckTracker, CheckTurn, check_label};
pub use claim_graph::{ClaimEdge, ClaimGraph, GraphDirection};
pub use connected_system::{
    ConnectedSystem, RecoveryPoint, RecoveryReport, RecoveryStep, SystemError, SystemRecorder,
    TemporalQuery,
};
pub use event_stream::{
    StreamImportReport, StreamImportRequest, StreamOpener, TextResolver, UnfinishedImport,
};
pub use history::{HistoryEntry, LogEntry, LogItem, LostRevision};
pub use history_page::{
    ACTIVITY_LIMIT, ActivityHistogram, BranchTimeline, HistoryPage, HistoryPosition, HistoryRank,
    PageDirection, PageItem, PageItemContent, PageKinds, SHOWN_CHANGES,
};
pub use imported_source::{BLOCK_BYTES, SourceBookmark, SourceChange};
pub use maintenance::MaintenanceThread;
pub use merge::{MergeConflict, MergeReport, MergeRequest, MergeResult};
pub use new_checkpoint::NewCheckpoint;
pub use new_session::NewSession;
pub use prune::{
    CheckpointVerdict, FoldAtMoment, FoldSummary, PruneReport, SweepReport, UNDO_MICROS,
};
pub use purge::{FileScanReport, PurgeFinding, PurgeKind, PurgeReport};
pub use recover::RecoverySummary;
pub use redaction_gate::RedactedSource;
pub use repair::{RepairLosses, RepairReport};
pub use resolve_moment::ResolvedMoment;
pub use search::{MAX_HITS, MAX_QUERY_BYTES, MAX_WORDS, SearchHit, SearchPage, SearchQuery};
pub use session::{Session, SessionListEntry, SessionSummary};
pub use session_retention::{DroppedSession, DroppedSource};
pub use source_import::SourceChunk;
pub use spooled_write::{SpoolStatus, SpooledWrite};
pub use state::{RevisionSummary, StateAt, StateComparison};
pub use undo::{OperationSummary, UndoReport};
pub use verify::{VerifyOutcome, VerifyReport};
pub use write::{CheckpointTriggers, HeadClaims, SIGNIFICANT_MICROS, SessionWrite, new_fact_id};
pub use write_context::WriteContext;
pub use write_report::WriteReport;

use crate::backend::database::Database;
use crate::backend::files::{self, LockedFile};
use crate::backend::journal::{Journal, SyncMark};
use crate::backend::memory::{MemoryIndex, MemoryLog};
use crate::backend::{self, Cipher, Index, SealMode, Spool, WriteAheadLog, plain_file};
use crate::engine::checkpoint;
use crate::engine::commit::{CommitDurability, Engine};
use crate::engine::journal_follower::JournalFollower;
use crate::engine::random::{operation_id, random};
use crate::engine::refs;
use crate::engine::refs::StoreRefs;
use crate::engine::session_rows::{MIN_PREFIX, SessionLookup};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatMarker, KeyFile, Record, RecordChange};
use crate::model::{Checkpoint, OperationId, SessionKind, SessionNumber};
use folder::{
    FORMAT_FILE, JOURNAL_FOLDER, check_notes, check_unfinished, clear, holds_records, marker_of,
    open_index, private, read_marker, write_first_record, write_marker,
};
use keyring::{Keyring, StoreTrust};
use remote::Tracks;
use repair::KnownKeys;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A store: sessions with their claims and facts.
///
/// It is cheap to clone, and clones share caches. Any number of threads and processes may use one
/// store at once.
///
/// ```
/// use forge_store::{Hypothesis, NewSession, Store, Timestamp, WriteContext};
///
/// let store = Store::in_memory()?;
/// let now = Timestamp::parse_rfc3339("2026-01-01T10:00:00Z").unwrap();
/// let context = WriteContext::asked("hypothesis add", now);
/// let session = store.create_session(&context, NewSession::named("broken build"))?;
/// session.add(&context, Hypothesis::default().description("the cache is stale"))?;
/// let state = session.state(&session.head()?)?;
/// assert_eq!(state.claims().len(), 1);
/// # Ok::<(), forge_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) engine: Arc<Engine>,
    path: Option<PathBuf>,
    database: Option<Arc<dyn Database>>,
    /// What is known of remotes, if the store has no folder.
    tracks: Arc<Mutex<Tracks>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Store")
            .field("path", &self.path)
            .field("database", &self.database.as_ref().map(|database| database.place()))
            .field("encrypted", &self.is_encrypted())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Creates a store in a folder that does not exist or is empty. The folder may also have what
    /// an interrupted call left.
    ///
    /// # Errors
    /// [`Error::StoreExists`] if there is a store, or another call is creating one;
    /// [`Error::Invalid`] if the folder has other files, or if the store is to be encrypted and the
    /// options name no keyring; [`Error::Backend`] if the folder cannot be created.
    pub fn create(path: &Path, options: Options) -> Result<Self> {
        Self::create_within(path, options, Duration::ZERO)
    }

    /// Creates a store like [`Store::create`], but waits up to `timeout` for another call that is
    /// creating one in the same folder.
    fn create_within(path: &Path, options: Options, timeout: Duration) -> Result<Self> {
        check_key_place(&options)?;
        let io = |action| backend::Error::io(action, path);
        files::make_private_folders(path)?;
        // The lock is held to the end, so that only one of several concurrent calls creates the
        // store.
        let folder = fs::File::open(path).map_err(io("open"))?;
        let folder = LockedFile::exclusive_within(folder, timeout).map_err(io("lock"))?;
        if folder.is_err() || path.join(FORMAT_FILE).exists() {
            return Err(Error::StoreExists { path: path.to_owned() });
        }
        check_unfinished(path)?;
        clear(path).map_err(io("remove what was left unfinished in"))?;
        private(path, 0o700)?;
        let marker = new_marker(&options)?;
        if let Some(keyring) = Keyring::of(&options) {
            keyring.note_place(path, &marker.id);
        }
        let trust = StoreTrust::for_store(path, &marker, &options)?;
        // Write the journal first: FORMAT makes the folder a store, so it comes last.
        let journal = Journal::create(&path.join(JOURNAL_FOLDER))?
            .with_seals(trust.seals.clone(), trust.witness)
            .with_cipher(trust.cipher.clone());
        write_first_record(&journal)?;
        write_marker(path, marker.encode().as_bytes())?;
        let index = open_index(path, &trust.seals, trust.cipher.clone(), trust.checked);
        let about = (trust.seal_status, trust.seals, trust.cipher);
        Ok(Self::assemble(Arc::new(journal), index, marker, options, about, Some(path)))
    }

    /// Opens a store.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Corrupt`] if its `FORMAT` is missing, [`Error::Marker`] if the
    /// folder is not a store or needs another version, [`Error::Encrypted`] if its key is not in
    /// the keyring, [`Error::Backend`].
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Self::open_with(path, options, StoreTrust::for_store)
    }

    /// Opens the store in a folder, or creates it if there is none.
    pub fn open_or_create(path: &Path, options: Options) -> Result<Self> {
        match Self::open(path, options.clone()) {
            Err(Error::NoStore { .. }) if !options.read_only => {}
            opened => return opened,
        }
        match Self::create_within(path, options.clone(), options.lock_timeout) {
            // Another process created it first.
            Err(Error::StoreExists { .. }) => Self::open(path, options),
            created => created,
        }
    }

    /// Opens a store without checking its seals. Writes stay in its spool until the store is
    /// adopted. This is for a store that cannot be opened otherwise, if a write must not be lost.
    pub fn open_unverified(path: &Path, options: Options) -> Result<Self> {
        Self::open_with(path, options, StoreTrust::unverified)
    }

    fn open_with(
        path: &Path,
        options: Options,
        trust: fn(&Path, &FormatMarker, &Options) -> Result<StoreTrust>,
    ) -> Result<Self> {
        let marker = marker_of(path)?;
        if let Some(place) = marker.database.clone() {
            return Self::open_by_place(path, marker, &place, options);
        }
        let trust = trust(path, &marker, &options)?;
        let folder = path.join(JOURNAL_FOLDER);
        let journal = if options.read_only {
            Journal::open_read_only(&folder)?
        } else {
            Journal::open(&folder)?
        };
        let journal = journal
            .with_seals(trust.seals.clone(), trust.witness)
            .with_cipher(trust.cipher.clone());
        let index = open_index(path, &trust.seals, trust.cipher.clone(), trust.checked);
        let about = (trust.seal_status, trust.seals, trust.cipher);
        Ok(Self::assemble(Arc::new(journal), index, marker, options, about, Some(path)))
    }

    /// Creates a store in memory, for tests and temporary work. It is dropped with its last clone.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(Options::default())
    }

    /// Creates a store in memory with these options.
    pub fn in_memory_with(options: Options) -> Result<Self> {
        let log = MemoryLog::default();
        write_first_record(&log)?;
        let marker = FormatMarker::new(random()?, random()?);
        let index = MemoryIndex::default();
        let about = (SealStatus::Unsealed, SealMode::Absent, None);
        Ok(Self::assemble(Arc::new(log), Arc::new(index), marker, options, about, None))
    }

    fn assemble(
        log: Arc<dyn WriteAheadLog>,
        index: Arc<dyn Index>,
        marker: FormatMarker,
        options: Options,
        (seal_status, seals, cipher): (SealStatus, SealMode, Option<Cipher>),
        path: Option<&Path>,
    ) -> Self {
        let spool = path.map(|path| {
            let (cipher, keyring) = (cipher.as_ref(), options.keyring.as_deref());
            let known = KnownKeys { seals: &seals, cipher, keyring, store: marker.id };
            Arc::new(known.spool(path)) as Arc<dyn Spool>
        });
        let about = (seal_status, seals, cipher);
        let engine = Engine::new(JournalFollower::new(log, index, spool), marker, options, about);
        let (engine, path) = (Arc::new(engine), path.map(Path::to_owned));
        Self { engine, path, database: None, tracks: Arc::default() }
    }

    /// Returns the folder of this store; `None` if it has none, such as a store in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the folder for notes about this store. It is the folder of the store, or one next to
    /// its key if it is encrypted, because then the folder of the store must show nothing. `None`
    /// if there is no such folder.
    #[must_use]
    pub fn notes(&self) -> Option<PathBuf> {
        match self.engine.cipher {
            None => self.path.clone(),
            Some(_) => Some(Keyring::of(&self.engine.options)?.folder_of(&self.engine.marker.id)),
        }
    }

    /// Records in a keyring that this store, which has no seals, may be at its path. Without this,
    /// it is refused if the keyring knows of a sealed store that was at the path before. If the
    /// keyring knows of none, nothing is recorded. Returns whether it knew of one.
    pub fn take_place(&self, keyring: &Path) -> bool {
        let Some(path) = &self.path else { return false };
        Keyring::new(keyring).replace_place(path, &self.engine.marker.id)
    }

    /// Reads the id of the store in this folder, without opening the store.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Corrupt`], [`Error::Marker`], [`Error::Backend`].
    pub fn id_in(path: &Path) -> Result<[u8; 16]> {
        read_marker(path).map(|marker| marker.id)
    }

    /// Returns whether the folder of this store still contains it. It does not after the folder was
    /// deleted, moved or replaced, although what is open of it can still be read. True for a store
    /// without files, and if the folder cannot be read.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let path = self.path.as_deref().filter(|_| self.database.is_none());
        match path.map(Self::id_in) {
            Some(Ok(id)) => id == self.engine.marker.id,
            Some(Err(Error::NoStore { .. })) => false,
            Some(Err(_)) | None => true,
        }
    }

    /// Returns the folder for notes like [`Store::notes`] for the store in this folder, even if it
    /// cannot be opened. `None` if the store is encrypted and no keyring is given, if it may be
    /// encrypted and cannot be read, or if a link in it would lead elsewhere.
    #[must_use]
    pub fn notes_of(path: &Path, keyring: Option<&Path>) -> Option<PathBuf> {
        check_notes(path).ok()?;
        match read_marker(path) {
            Ok(marker) if marker.is_encrypted() => {
                Some(Keyring::new(keyring?).folder_of(&marker.id))
            }
            Ok(_) => Some(path.to_owned()),
            // If the store may be encrypted, no notes are better than readable ones.
            Err(_) => {
                let may_be_encrypted =
                    match plain_file::read(&path.join(FORMAT_FILE), folder::MAX_MARKER_BYTES) {
                        Ok(text) => String::from_utf8_lossy(&text).contains("encrypted"),
                        Err(_) => holds_records(path),
                    };
                (!may_be_encrypted).then(|| path.to_owned())
            }
        }
    }

    /// Returns the seal status of this store.
    #[must_use]
    pub fn seal_status(&self) -> SealStatus {
        self.engine.seal_status
    }

    /// Returns the error of a damaged key file, if the key file is damaged. The store is then read
    /// as if it had no key.
    #[must_use]
    pub fn damaged_key(&self) -> Option<Error> {
        let keyring = Keyring::of(&self.engine.options)?;
        let key = keyring.read_key(&self.engine.marker.id);
        key.err().filter(|error| matches!(error, Error::DamagedKey { .. }))
    }

    /// Returns whether the store is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.engine.cipher.is_some()
    }

    /// Returns the key for stored hashes of bytes from elsewhere, such as imported sources.
    #[must_use]
    pub fn hash_key(&self) -> &[u8; 32] {
        &self.engine.marker.key
    }

    /// Returns the session with exactly this kind and name.
    pub fn session_by_kind(&self, kind: SessionKind, name: &str) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        Ok(refs::of_kind(&refs, kind, name)?.map(|number| self.session_at(number)))
    }

    /// Returns the current session, which commands use if they name none: the pinned one, or else
    /// the one that was used last.
    pub fn current_session(&self) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        Ok(current_number(&refs).map(|number| self.session_at(number)))
    }

    /// Returns the debugging session with exactly this name. If there is none, returns a session of
    /// another kind with this name.
    fn session_named(&self, name: &str) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        let named = refs.sessions.find(SessionLookup::Name(name))?;
        let debug = named.iter().find(|(_, session)| session.info.kind == SessionKind::Debug);
        Ok(debug.or(named.first()).map(|(number, _)| self.session_at(*number)))
    }

    fn session_at(&self, number: SessionNumber) -> Session {
        Session { store: self.clone(), number }
    }

    /// Pins a session, so that it is the current one; `None` makes the last used one current again.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not a debugging session; also if the store cannot be written.
    pub fn pin_session(&self, act: &WriteContext, session: Option<&Session>) -> Result<()> {
        if let Some(session) = session {
            let info = session.summary()?.info;
            if info.kind != SessionKind::Debug {
                return Err(Error::invalid(format!(
                    "'{}' is not a debugging session, so it is never current: name one, or pass \
                    this one with '--session'",
                    info.name
                )));
            }
        }
        let operation = act.operation()?;
        let session = session.map(|session| session.number);
        self.engine.commit(CommitDurability::Now, &mut |context| {
            let changes = vec![RecordChange::Pinned { session }];
            let record = Record { operation: operation.clone(), changes };
            Ok(((context.refs.pinned != session).then_some(record), ()))
        })
    }

    /// Returns the newest checkpoints that a filter selects, of all sessions that were not dropped,
    /// each with the name of its session.
    pub fn checkpoints(&self, filter: &CheckpointFilter) -> Result<Vec<(String, Checkpoint)>> {
        let view = self.engine.follower.view()?;
        checkpoint::list_all(&view, filter)?
            .into_iter()
            .map(|(number, checkpoint)| {
                let session = refs::session(&view.refs, number)?;
                Ok((session.info.name.clone(), checkpoint))
            })
            .collect()
    }

    /// Publishes a new generation of the index if reading the journal's tail costs more than
    /// reading `tail_cost` bytes and no other process is building one; see [`APPLY_BYTES`]. Returns
    /// whether it did. Call it after a request is answered.
    ///
    /// # Errors
    /// Fails if the store cannot be written; a failure loses nothing.
    pub fn maintain(&self, tail_cost: u64) -> Result<bool> {
        self.engine.apply_if_long(tail_cost)
    }

    /// Keeps the snapshot of the first read for all later reads, so that they agree, whatever other
    /// processes write, prune or purge meanwhile. This is for a store that is opened for one
    /// request.
    pub fn hold(&self) {
        self.engine.follower.hold();
    }

    /// Begins a request of this thread. Until the result is dropped, all reads and writes of this
    /// thread together look for new records only once, which saves queries to a database. A write
    /// still notices what others wrote meanwhile. Do not wait for the writes of others during a
    /// request.
    pub fn request(&self) -> StoreRequest {
        self.engine.follower.begin_request(false)
    }

    /// Does a write that appends a record whenever it succeeds. In a database, the write is first
    /// tried with what this process knows of the store. The database appends the record only if
    /// nothing else was written since. Otherwise the write is done again in a [`Store::request`].
    ///
    /// # Errors
    /// The error of the write.
    pub fn write_from_known<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        if self.database.is_some() {
            let _request = self.engine.follower.begin_request(true);
            match write() {
                // Nothing was written. What this process knows may be old.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::NotFound
                            | ErrorKind::Invalid
                            | ErrorKind::Conflict
                            | ErrorKind::Locked
                    ) => {}
                done => return done,
            }
        }
        let _request = self.request();
        write()
    }

    /// Leaves open files and memory to the system instead of releasing them. This is for a process
    /// that is about to end. If the store is used after this, it is read again.
    pub fn skip_cleanup(&self) {
        self.engine.follower.leave();
    }

    /// Returns a new operation id, for writes that belong together.
    pub fn new_operation(&self) -> Result<OperationId> {
        operation_id()
    }

    /// Compacts the index to its smallest size. This takes seconds per gigabyte. Returns whether it
    /// did; `false` if another process writes the index, or if there is nothing to compact.
    ///
    /// # Errors
    /// Fails if the store cannot be written; a failure loses nothing.
    pub fn compact(&self) -> Result<bool> {
        self.engine.check_writable()?;
        // Otherwise files that this process still reads would not be removed.
        self.engine.follower.forget();
        let compacted = self.engine.follower.index.compact()?;
        self.engine.follower.forget();
        self.engine.follower.tidy();
        Ok(compacted)
    }

    /// Makes all writes durable, also those that did not wait for that, such as imports.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// Returns how many times this handle and its clones have synced the journal.
    #[must_use]
    pub fn journal_syncs(&self) -> u64 {
        self.engine.follower.log.syncs()
    }

    /// Returns the length of the journal's tail, in bytes.
    pub fn tail_bytes(&self) -> Result<u64> {
        self.engine.follower.refs()?;
        Ok(self.engine.follower.tail_bytes())
    }
}

/// Checks that options for an encrypted store name a keyring.
fn check_key_place(options: &Options) -> Result<()> {
    match options.encrypted && options.keyring.is_none() {
        true => Err(Error::invalid("an encrypted store needs a folder for its key")),
        false => Ok(()),
    }
}

/// Returns the marker of a new store. If the options name a keyring, adds a key for the store to
/// it.
fn new_marker(options: &Options) -> Result<FormatMarker> {
    check_key_place(options)?;
    let marker = FormatMarker::new(random()?, random()?);
    let Some(keyring) = Keyring::of(options) else { return Ok(marker) };
    let cipher = options.encrypted.then(random).transpose()?;
    let (store, secret) = (marker.id, random()?);
    let file = KeyFile { store, secret, cipher, adopted: None, witness: None };
    keyring.add(&file, &SyncMark { position: 0, hash: [0; 32] })?;
    Ok(if options.encrypted { marker.encrypted() } else { marker.sealed() })
}

pub(crate) fn current_number(refs: &StoreRefs) -> Option<SessionNumber> {
    refs.pinned.or(refs.last_used)
}

fn find_session(refs: &StoreRefs, name: &str) -> Result<SessionNumber> {
    let mut found = refs.sessions.find(SessionLookup::Name(name))?;
    let mut named = found.iter().copied();
    if let Some((number, _)) = named.find(|(_, one)| one.info.kind == SessionKind::Debug) {
        return Ok(number);
    }
    if found.is_empty()
        && let Some(number) = refs::agent_session(refs, name)?
    {
        return Ok(number);
    }
    if found.is_empty() && name.len() >= MIN_PREFIX {
        let name = name.to_ascii_lowercase();
        found = refs.sessions.find(SessionLookup::AgentPrefix(&name))?;
        if name.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            found.extend(refs.sessions.find(SessionLookup::IdPrefix(&name))?);
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        found.dedup_by_key(|(number, _)| *number);
    }
    match found.as_slice() {
        [] => Err(Error::not_found("session", name)),
        [(number, _)] => Ok(*number),
        several => Err(Error::Ambiguous {
            prefix: name.to_owned(),
            matches: several
                .iter()
                .map(|(_, session)| format!("{} ({})", session.info.name, session.info.id.short()))
                .collect(),
        }),
    }
}
