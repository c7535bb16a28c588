//! Commits: each appends a record and syncs the journal. A record is planned before the append lock
//! is taken, and planned again under the lock if another writer appended in between.

use super::delta_parts::{check_size, compressed};
use super::head_cache::HeadCache;
use super::index::PositionedRecord;
use super::journal_follower::{APPLY_BYTES, JournalFollower};
use super::parallel::CpuCore;
use super::plan_context::{PlanContext, RecordPlanner};
use super::refs::{StoreRefs, check_record};
use crate::backend::database::DatabaseConnector;
use crate::backend::{
    self, AppendedRecord, CIPHER_BYTES, Cipher, LogPosition, LogTail, SealMode, ThreadTurn, locked,
};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{DeltaPart, FormatMarker, Record, RecordBytes, RecordChange, object_id};
use crate::model::Operation;
use crate::redact::Redactor;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Options with which a process opens a store.
///
/// ```
/// use forge_store::Options;
/// use std::time::Duration;
///
/// let options = Options::default().read_only(true).lock_timeout(Duration::from_secs(1));
/// assert!(options.read_only);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long to wait for another writer.
    pub lock_timeout: Duration,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Removes secrets from everything that is written. `None`: everything is stored unchanged.
    pub redaction: Option<Arc<Redactor>>,
    /// The keyring: a folder outside all stores that holds their keys and witnesses, by store id.
    /// If it is set, new stores are sealed and existing seals are checked. See `docs/integrity.md`.
    pub keyring: Option<PathBuf>,
    /// Whether a new store is encrypted, with a key in the keyring. See `docs/encryption.md`.
    pub encrypted: bool,
    /// Maximum number of bytes in memory for the claims of one branch head (a claim of 400 bytes
    /// takes about 600). A change of a cached head need not look up the entries that it replaces;
    /// the claims of a larger head are looked up one by one. The cached heads of all other branches
    /// take at most 32 MiB together, and are evicted first.
    pub head_bytes: usize,
    /// Connects to the database of a store in a database. `None`: such a store cannot be opened.
    pub connector: Option<Arc<dyn DatabaseConnector>>,
}

impl Options {
    /// Sets how long to wait for another writer.
    #[must_use]
    pub const fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets whether writes are refused.
    #[must_use]
    pub const fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets what removes secrets from everything that is written; `None` stores it unchanged.
    #[must_use]
    pub fn redaction(mut self, redactor: impl Into<Option<Arc<Redactor>>>) -> Self {
        self.redaction = redactor.into();
        self
    }

    /// Sets the keyring, a folder outside all stores. With `None` new stores have no seals.
    #[must_use]
    pub fn keyring(mut self, folder: impl Into<Option<PathBuf>>) -> Self {
        self.keyring = folder.into();
        self
    }

    /// Sets whether a new store is encrypted, with a key in the keyring.
    #[must_use]
    pub const fn encrypted(mut self, encrypted: bool) -> Self {
        self.encrypted = encrypted;
        self
    }

    /// Sets the maximum number of bytes in memory for the claims of one branch head.
    #[must_use]
    pub const fn head_bytes(mut self, bytes: usize) -> Self {
        self.head_bytes = bytes;
        self
    }

    /// Sets what connects to the database of a store in a database.
    #[must_use]
    pub fn connector(mut self, connector: impl Into<Option<Arc<dyn DatabaseConnector>>>) -> Self {
        self.connector = connector.into();
        self
    }
}

/// The seal status of an open store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SealStatus {
    /// The store has no seal.
    Unsealed,
    /// Key and witness are present: each read checks that the data was written with the key and
    /// that none of it is missing.
    Sealed,
    /// The key is missing: the store can be read, unverified, but not written.
    NoKey,
    /// The key is present, the witness is missing: it is unknown whether the newest data is
    /// missing. The store cannot be written.
    NoWitness,
}

impl Default for Options {
    /// Lock timeout of 5 seconds, writable, no redaction, no seals, no encryption, 1 GiB for a
    /// branch head, no databases.
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_secs(5),
            read_only: false,
            redaction: None,
            keyring: None,
            encrypted: false,
            head_bytes: 1 << 30,
            connector: None,
        }
    }
}

/// Whether a commit is durable when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitDurability {
    /// The record is synced before the commit returns.
    Now,
    /// A later commit syncs it. Nothing may be acknowledged before that.
    Later,
}

/// The engine of one open store.
pub(crate) struct Engine {
    pub(crate) follower: JournalFollower,
    pub(crate) marker: FormatMarker,
    pub(crate) options: Options,
    pub(crate) seal_status: SealStatus,
    pub(crate) seals: SealMode,
    /// The cipher of an encrypted store.
    pub(crate) cipher: Option<Cipher>,
    pub(crate) heads: HeadCache,
    pub(crate) blobs: super::blob::BlobCache,
    /// The threads of this process append one after another: then each finds the records of the
    /// others in memory, and need not read them from the journal.
    append_turn: ThreadTurn,
    /// Number of records committed by this process.
    commits: AtomicU64,
    /// Number of bytes in these records.
    committed_bytes: AtomicU64,
    /// Wakes the maintenance thread. The message is the core that the sender runs on.
    maintainer_bell: Mutex<Option<SyncSender<CpuCore>>>,
    /// Whether the last write timed out waiting for the append lock.
    pub(crate) lock_timed_out: AtomicBool,
}

/// After this many commits a process counts as a frequent writer.
const MANY_COMMITS: u64 = 8;
/// After this many committed bytes it also does, for example if a session begins with a large
/// state.
const MANY_BYTES: u64 = 256 << 10;

/// Larger records are split, so that the lock is held only for one write of about this size.
const MAX_INLINE_BYTES: usize = 768 << 10;

impl Engine {
    pub(crate) fn new(
        follower: JournalFollower,
        marker: FormatMarker,
        options: Options,
        (seal_status, seals, cipher): (SealStatus, SealMode, Option<Cipher>),
    ) -> Self {
        let heads = HeadCache::new(options.head_bytes);
        Self {
            follower,
            marker,
            options,
            seal_status,
            seals,
            cipher,
            heads,
            blobs: super::blob::BlobCache::default(),
            append_turn: ThreadTurn::default(),
            commits: AtomicU64::new(0),
            committed_bytes: AtomicU64::new(0),
            maintainer_bell: Mutex::default(),
            lock_timed_out: AtomicBool::new(false),
        }
    }

    /// Sets the channel that is notified when the tail has grown long, or this process has become a
    /// frequent writer.
    pub(crate) fn set_maintainer(&self, bell: Option<SyncSender<CpuCore>>) {
        *locked(&self.maintainer_bell) = bell;
    }

    /// Returns whether a maintenance thread runs in this process.
    pub(crate) fn has_maintainer(&self) -> bool {
        locked(&self.maintainer_bell).is_some()
    }

    /// Returns whether this process writes enough to make preallocated room in the journal
    /// worthwhile.
    pub(crate) fn writes_much(&self) -> bool {
        self.commits.load(Ordering::Relaxed) >= MANY_COMMITS
            || self.committed_bytes.load(Ordering::Relaxed) >= MANY_BYTES
    }

    /// Counts a committed record of `bytes` bytes, and wakes the maintenance thread if necessary.
    fn committed(&self, bytes: u64) {
        let wrote_much = self.writes_much();
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.committed_bytes.fetch_add(bytes, Ordering::Relaxed);
        if (wrote_much != self.writes_much() || self.follower.tail_cost() >= APPLY_BYTES)
            && let Some(bell) = &*locked(&self.maintainer_bell)
        {
            // If the channel is full, the thread has been notified already.
            let _ = bell.try_send(CpuCore::current());
        }
    }

    /// Checks that this process may write to the journal and the index.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_permitted()?;
        match self.seal_status {
            SealStatus::Unsealed | SealStatus::Sealed => Ok(()),
            SealStatus::NoKey => Err(Error::Unkeyed { missing: "key" }),
            SealStatus::NoWitness => Err(Error::Unkeyed { missing: "witness" }),
        }
    }

    /// Checks that this process may write at all, even if only to the spool.
    pub(crate) fn check_permitted(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly { reason: "it was opened for reading only".to_owned() });
        }
        check_version(&self.marker)
    }

    /// Commits the record that `plan` returns, if any, and returns the other result of `plan`. The
    /// writes in the spool are committed first.
    pub(crate) fn commit<T>(
        &self,
        durability: CommitDurability,
        plan: RecordPlanner<'_, T>,
    ) -> Result<T> {
        self.check_writable()?;
        let done = self.drain_before_write().and_then(|()| {
            if self.follower.has_promised() {
                self.follower.check_promised(&self.follower.written_refs()?.0)?;
            }
            self.commit_written(durability, plan)
        });
        let locked = done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Locked);
        self.lock_timed_out.store(locked, Ordering::Relaxed);
        done
    }

    /// Moves the spooled writes to the journal. A write that cannot be moved stays in the spool.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] if another process holds the append lock.
    pub(crate) fn drain_before_write(&self) -> Result<()> {
        match self.drain() {
            Err(error) if error.kind() == ErrorKind::Locked => return Err(error),
            Err(error) => tracing::warn!(%error, "a write stays in the spool"),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Commits like [`Engine::commit`], but ignores the spool.
    pub(crate) fn commit_written<T>(
        &self,
        durability: CommitDurability,
        plan: RecordPlanner<'_, T>,
    ) -> Result<T> {
        const MAX_ATTEMPTS: usize = 100;
        for _ in 0..MAX_ATTEMPTS {
            let (refs, mut from) = self.follower.written_refs()?;
            let context = self.plan_context(Arc::clone(&refs), false);
            let (record, value) = plan(&context)?;
            drop(context);
            let Some(mut record) = record else { return Ok(value) };
            check_record(&refs, &record)?;
            if record.inline_bytes() > MAX_INLINE_BYTES {
                let operation = record.operation.id;
                record = match self.split(record) {
                    // The segment is gone (see the end of the loop): the pre-written objects are
                    // written again.
                    Err(Error::Backend(backend::Error::Gone { .. })) => {
                        self.follower.forget();
                        continue;
                    }
                    split => split?,
                };
                // The journal now has the pre-written objects. They do not change the input of the
                // plan, so it need not run again because of them.
                let (_, end) = self.follower.written_refs()?;
                let own = |placed: &Arc<PositionedRecord>| placed.record.operation.id == operation;
                if self.follower.records_since(from).is_some_and(|since| since.iter().all(own)) {
                    from = end;
                }
            }
            // If nothing else owns the refs, the append can advance them in place.
            drop(refs);
            match self.append(from, record, value, plan) {
                Ok((value, None)) => return Ok(value),
                Ok((value, Some(appended))) => {
                    if durability == CommitDurability::Now {
                        self.follower.log.sync(appended.end)?;
                    }
                    self.committed(appended.end - appended.position);
                    return Ok(value);
                }
                // The segment at this process's position was removed: a newer generation contains
                // it. Even a request that has looked at the journal must look again.
                Err(Error::Backend(backend::Error::Gone { .. })) => self.follower.forget(),
                Err(other) => return Err(other),
            }
        }
        Err(Error::Internal(format!(
            "the index overtook the journal position of this process in each of {MAX_ATTEMPTS} \
            attempts"
        )))
    }

    fn plan_context(&self, refs: Arc<StoreRefs>, locked: bool) -> PlanContext<'_> {
        PlanContext { follower: &self.follower, heads: &self.heads, refs, locked }
    }

    fn append<T>(
        &self,
        from: LogPosition,
        record: Record,
        value: T,
        plan: RecordPlanner<'_, T>,
    ) -> Result<(T, Option<AppendedRecord>)> {
        let since = Instant::now();
        // Without the turn, the thread finds out who holds the lock.
        let _turn = self.append_turn.wait(self.options.lock_timeout);
        let timeout = self.options.lock_timeout.saturating_sub(since.elapsed());
        let known = self.follower.end();
        let mut prepared = (known <= from).then_some((Some(record), value));
        let mut planned = |tail: &LogTail| -> Result<(Option<Record>, T)> {
            let early = prepared.take().filter(|_| tail.frames.is_empty());
            let (record, value) = if let Some(early) = early {
                early
            } else {
                let context = self.plan_context(self.follower.take_in(tail)?, true);
                let (record, value) = plan(&context)?;
                if let Some(record) = &record {
                    check_record(&context.refs, record)?;
                }
                (record, value)
            };
            Ok((record.map(|record| self.as_appended(record)).transpose()?, value))
        };
        let mut written = None;
        let appended = self.follower.log.append(from.max(known), timeout, &mut |tail| {
            let made = planned(tail);
            let record = made.as_ref().ok().and_then(|(record, _)| record.as_ref());
            let bytes = record.map(Record::encode);
            // The journal refuses it too, but cannot say that the request is what is wrong.
            let length = bytes.as_ref().map_or(0, |bytes| bytes.len() + CIPHER_BYTES);
            let made = check_size(length).and(made);
            let bytes = bytes.filter(|_| made.is_ok());
            written = Some(made);
            bytes
        })?;
        let written = written.transpose()?;
        let (record, value) = written.or(prepared).expect("the log called the closure");
        if let (Some(appended), Some(record)) = (&appended, record) {
            let placed =
                PositionedRecord { position: appended.position, hash: appended.hash, record };
            self.follower.note_written(placed, appended.end)?;
        }
        Ok((value, appended))
    }

    /// Returns a record as it is appended: with compressed deltas if it is sent over a network. On
    /// a disk, deltas are compressed when the record is applied to the index.
    fn as_appended(&self, record: Record) -> Result<Record> {
        if !self.follower.log.is_remote() {
            return Ok(record);
        }
        Ok(compressed(&record)?.unwrap_or(record))
    }

    /// Appends records that were planned on a copy of this store, when the journal ended at `from`.
    /// They are not durable yet. Returns `false`, and appends nothing, if the journal has grown.
    pub(crate) fn append_planned(
        &self,
        from: LogPosition,
        records: Vec<PositionedRecord>,
        payloads: Vec<Vec<u8>>,
    ) -> Result<bool> {
        if records.len() != payloads.len() {
            return Err(Error::Internal("a copy has lost records".to_owned()));
        }
        self.follower.written_refs()?;
        let log = &self.follower.log;
        let appended = match log.append_all(from, self.options.lock_timeout, &payloads) {
            // The segment was removed: a newer generation contains it.
            Err(backend::Error::Gone { .. }) => return Ok(false),
            appended => appended?,
        };
        drop(payloads);
        let Some(appended) = appended else { return Ok(false) };
        for (placed, appended) in records.into_iter().zip(appended) {
            let AppendedRecord { position, end, hash } = appended;
            self.follower.note_written(PositionedRecord { position, hash, ..placed }, end)?;
            self.committed(end - position);
        }
        Ok(true)
    }

    /// Pre-writes the objects of a large record, each in a record of its own. Returns the rest of
    /// the record, which names them.
    fn split(&self, mut record: Record) -> Result<Record> {
        let operation = record.operation.clone();
        for change in &mut record.changes {
            match change {
                RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. } => {
                    delta.iter_mut().try_for_each(|part| self.prewrite(&operation, part))?;
                }
                RecordChange::Facts { page, .. } => self.prewrite(&operation, page)?,
                _ => {}
            }
        }
        let mut small = Vec::with_capacity(record.changes.len());
        for change in record.changes {
            if matches!(change, RecordChange::Object { .. }) {
                self.append_alone(&operation, change)?;
            } else {
                small.push(change);
            }
        }
        Ok(Record { operation, changes: small })
    }

    /// Pre-writes the object of an inline part, and replaces the part by the object's id.
    fn prewrite(&self, operation: &Operation, part: &mut DeltaPart) -> Result<()> {
        if let DeltaPart::Inline(bytes) = part {
            let id = object_id(&bytes.0).map_err(Error::corrupt("an object just made"))?;
            let object = RecordBytes(std::mem::take(&mut bytes.0));
            self.append_alone(operation, RecordChange::Object { object })?;
            *part = DeltaPart::Named(id);
        }
        Ok(())
    }

    /// Appends a change in a record of its own, without syncing.
    fn append_alone(&self, operation: &Operation, change: RecordChange) -> Result<()> {
        let record = Record { operation: operation.clone(), changes: vec![change] };
        let mut plan = |_: &PlanContext<'_>| Ok((Some(record.clone()), ()));
        self.append(self.follower.end(), record.clone(), (), &mut plan).map(|_| ())
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.follower.log.sync(self.follower.end())?)
    }
}

/// Checks that this version of forge may write to the store with this marker.
pub(crate) fn check_version(marker: &FormatMarker) -> Result<()> {
    if marker.is_writable() {
        return Ok(());
    }
    let reason = "a later version of forge wrote it; this one only reads it".to_owned();
    Err(Error::ReadOnly { reason })
}
