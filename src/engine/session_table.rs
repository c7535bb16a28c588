//! The sessions of a store. The sessions used last, and those that changed after the newest
//! generation of the index, are in memory. The others are read from the generation when needed.

use super::session_rows::{self, LookupKey, SessionLookup, missing_session};
use crate::backend::{Snapshot, locked};
use crate::error::Result;
use crate::format::{
    RecentSession, RecordBytes, SessionRefs, StoreHead, decode_session, encode_session,
    session_hash,
};
use crate::model::{SessionKind, SessionNumber, StateDigest, Timestamp};
use memchr::memmem;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The source of sessions that are not in memory.
pub(crate) trait SessionSource: Send + Sync {
    /// Returns the generation, which may be opened by the first call.
    ///
    /// # Errors
    /// [`Gone`](crate::backend::Error::Gone) if a newer generation has replaced it.
    fn generation(&self) -> Result<&dyn Snapshot>;
}

/// A generation that is already open.
pub(crate) struct OpenGeneration(pub(crate) Arc<dyn Snapshot>);

impl SessionSource for OpenGeneration {
    fn generation(&self) -> Result<&dyn Snapshot> {
        Ok(&*self.0)
    }
}

/// Maximum size in bytes of the encoded sessions with which a segment begins.
const RECENT_BYTES: usize = 32 << 10;
/// Number of sessions per block of the cache, and per read of [`AllSessions`].
const BLOCK_SESSIONS: usize = 256;
/// Maximum number of sessions that are kept in memory when a new generation is used.
const KEPT_SESSIONS: usize = 4096;

/// The sessions of a store by number.
#[derive(Clone, Default)]
pub(crate) struct SessionTable {
    /// The number of sessions, including removed ones.
    count: SessionNumber,
    /// The number of sessions of each kind that were not removed.
    visible: [u64; SessionKind::ALL.len()],
    /// The digest of all sessions in the generation.
    stored: StateDigest,
    /// The sessions in memory.
    known: HashMap<SessionNumber, KnownSession>,
    /// The sessions in the generation; `None` if all sessions are in memory.
    base: Option<Arc<BaseSessions>>,
    /// Number of changes so far.
    clock: u64,
    index: KnownIndex,
}

/// An index of the sessions in memory. It is made after several lookups: for a few, it takes less
/// time to look at each session.
#[derive(Default)]
struct KnownIndex {
    lookups: AtomicUsize,
    /// For the hash of each key: all sessions that have the key, and perhaps others.
    made: OnceLock<HashMap<u64, Vec<SessionNumber>>>,
}

impl Clone for KnownIndex {
    fn clone(&self) -> Self {
        Self { lookups: self.lookups.load(Ordering::Relaxed).into(), made: self.made.clone() }
    }
}

impl KnownIndex {
    /// Adds the keys of a new or changed session, if the index was made.
    fn add(&mut self, number: SessionNumber, session: &SessionRefs) {
        if let Some(made) = self.made.get_mut() {
            add_to(made, number, session);
        }
    }
}

fn add_to(
    made: &mut HashMap<u64, Vec<SessionNumber>>,
    number: SessionNumber,
    session: &SessionRefs,
) {
    session_rows::each_lookup(session, |lookup| {
        let found = made.entry(lookup.hash_in_memory().unwrap_or_default()).or_default();
        if !found.contains(&number) {
            found.push(number);
        }
    });
}

/// Returns a hash of the keys of a session that are not sources. A purge changes them.
fn hash_of_names(session: &SessionRefs) -> u64 {
    let mut hasher = DefaultHasher::new();
    (session.info.id, &session.info.name, &session.info.agent_session).hash(&mut hasher);
    hasher.finish()
}

/// A session in memory. At least one of `encoded` and `session` is set.
#[derive(Clone)]
struct KnownSession {
    /// The encoded session from the head of the store; empty if it was not there.
    encoded: RecordBytes,
    /// The decoded session; decoded when it is first needed.
    session: OnceLock<Arc<SessionRefs>>,
    /// The hash of the session in the digest of the generation. `None` if the session began later,
    /// or has not changed.
    stored: Option<[u8; 32]>,
    /// Whether the session changed after the generation.
    changed: bool,
    /// The table's clock when the session was last changed, for the order of the sessions used
    /// last.
    used: u64,
}

impl KnownSession {
    fn get(&self) -> &Arc<SessionRefs> {
        self.session.get_or_init(|| {
            Arc::new(decode_session(&self.encoded.0).expect("it was checked with its record"))
        })
    }

    /// Whether the session has the key of the lookup. Most sessions do not have it, and their
    /// encoded bytes show this without decoding.
    fn matches(&self, lookup: &SessionLookup<'_>) -> bool {
        if self.session.get().is_none()
            && lookup.bytes().is_some_and(|bytes| memmem::find(&self.encoded.0, bytes).is_none())
        {
            return false;
        }
        lookup.matches(self.get())
    }

    fn of(session: SessionRefs, used: u64) -> Self {
        let session = OnceLock::from(Arc::new(session));
        Self { encoded: RecordBytes::default(), session, stored: None, changed: false, used }
    }
}

/// The sessions of a generation, with a cache of those that were read.
struct BaseSessions {
    source: Arc<dyn SessionSource>,
    count: SessionNumber,
    blocks: OnceLock<Vec<OnceLock<CacheBlock>>>,
    last_lookup: Mutex<Option<LastLookup>>,
}

/// The last lookup in a generation and its result. A program that looks for a session before it
/// begins one causes the same lookup twice.
struct LastLookup {
    key: LookupKey,
    found: Vec<SessionNumber>,
}

type CacheBlock = Box<[OnceLock<Arc<SessionRefs>>]>;

impl BaseSessions {
    fn cached(&self, number: SessionNumber) -> Option<&OnceLock<Arc<SessionRefs>>> {
        let count = self.count as usize;
        let blocks = self
            .blocks
            .get_or_init(|| (0..count.div_ceil(BLOCK_SESSIONS)).map(|_| OnceLock::new()).collect());
        let block = blocks.get(number as usize / BLOCK_SESSIONS)?;
        let block = block.get_or_init(|| (0..BLOCK_SESSIONS).map(|_| OnceLock::new()).collect());
        block.get(number as usize % BLOCK_SESSIONS)
    }

    /// Returns the sessions that may match: all that match, and perhaps others.
    fn candidates(&self, lookup: &SessionLookup<'_>) -> Result<Vec<SessionNumber>> {
        let key = lookup.key();
        let last = || locked(&self.last_lookup);
        if let Some(known) = last().as_ref().filter(|known| known.key == key) {
            return Ok(known.found.clone());
        }
        let found = lookup.candidates(self.source.generation()?)?;
        *last() = Some(LastLookup { key, found: found.clone() });
        Ok(found)
    }

    fn get(&self, number: SessionNumber) -> Result<&Arc<SessionRefs>> {
        let place = self.cached(number).ok_or_else(|| missing_session(number))?;
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let session = session_rows::session_in(self.source.generation()?, number)?;
        Ok(place.get_or_init(|| Arc::new(session)))
    }
}

impl SessionTable {
    /// Creates the table from the head of the store with which a segment begins.
    pub(crate) fn begin(head: &StoreHead) -> Self {
        let mut table = Self {
            count: head.sessions as SessionNumber,
            visible: head.visible,
            stored: head.digest(),
            ..Self::default()
        };
        for RecentSession { number, session } in &head.recent {
            table.clock += 1;
            let known = KnownSession {
                encoded: session.clone(),
                session: OnceLock::new(),
                stored: None,
                changed: false,
                used: table.clock,
            };
            table.known.insert(*number, known);
        }
        table
    }

    /// Sets the source of the sessions that are not in memory.
    pub(crate) fn set_source(&mut self, source: Arc<dyn SessionSource>) {
        let (blocks, last_lookup) = (OnceLock::new(), Mutex::default());
        self.base = Some(Arc::new(BaseSessions { source, count: self.count, blocks, last_lookup }));
    }

    /// Takes over sessions in memory from the table of an older generation, except `changed` ones:
    /// at most [`KEPT_SESSIONS`].
    pub(crate) fn keep_from(&mut self, older: &Self, changed: impl Fn(SessionNumber) -> bool) {
        for (number, known) in older.known.iter().take(KEPT_SESSIONS) {
            if *number < self.count && !changed(*number) && !self.known.contains_key(number) {
                // The sessions from the head were used later than these.
                let known = KnownSession { stored: None, changed: false, used: 0, ..known.clone() };
                self.index.add(*number, known.get());
                self.known.insert(*number, known);
            }
        }
    }

    /// Returns the counts and the digest of all sessions.
    pub(crate) fn totals(&self) -> StoreHead {
        let mut digest = self.stored;
        for (number, known) in self.known.iter().filter(|(_, known)| known.changed) {
            if let Some(stored) = &known.stored {
                digest = digest.minus(stored);
            }
            digest = digest.plus(&session_hash(*number, &encode_session(known.get())));
        }
        StoreHead {
            sessions: u64::from(self.count),
            visible: self.visible,
            digest: RecordBytes(digest.to_bytes().to_vec()),
            ..StoreHead::default()
        }
    }

    /// Returns the sessions used last, the latest at the end.
    pub(crate) fn recent(&self) -> Vec<RecentSession> {
        let mut used: Vec<_> =
            self.known.iter().map(|(number, known)| (known.used, *number, known)).collect();
        used.sort_unstable_by_key(|(used, number, _)| std::cmp::Reverse((*used, *number)));
        let mut recent = Vec::new();
        let mut bytes = 0;
        for (_, number, known) in used {
            let session = encode_session(known.get());
            bytes += session.len();
            if bytes > RECENT_BYTES {
                break;
            }
            recent.push(RecentSession { number, session: RecordBytes(session) });
        }
        recent.reverse();
        recent
    }

    /// Returns the number of sessions, including removed ones.
    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the number of sessions of a kind that were not removed.
    pub(crate) fn visible(&self, kind: SessionKind) -> u64 {
        self.visible.get(kind as usize).copied().unwrap_or_default()
    }

    /// Whether all sessions are in memory.
    pub(crate) fn is_complete(&self) -> bool {
        self.known.len() == self.count as usize
    }

    /// Returns the session with this number; `None` if there is none.
    pub(crate) fn get(&self, number: SessionNumber) -> Result<Option<&SessionRefs>> {
        Ok(self.shared(number)?.map(|session| &**session))
    }

    fn shared(&self, number: SessionNumber) -> Result<Option<&Arc<SessionRefs>>> {
        if number >= self.count {
            return Ok(None);
        }
        if let Some(known) = self.known.get(&number) {
            return Ok(Some(known.get()));
        }
        match &self.base {
            Some(base) => base.get(number).map(Some),
            None => Err(missing_session(number)),
        }
    }

    /// Reads sessions from `base` into memory, if they are not there yet.
    pub(crate) fn load(
        &mut self,
        base: &dyn Snapshot,
        numbers: impl IntoIterator<Item = SessionNumber>,
    ) -> Result<()> {
        for number in numbers {
            if number < self.count && !self.known.contains_key(&number) {
                let session = session_rows::session_in(base, number)?;
                self.index.add(number, &session);
                self.known.insert(number, KnownSession::of(session, 0));
            }
        }
        Ok(())
    }

    /// Changes a session. Returns the result of `change`; `None` if there is no session with this
    /// number.
    pub(crate) fn change<T>(
        &mut self,
        number: SessionNumber,
        change: impl FnOnce(&mut SessionRefs) -> T,
    ) -> Result<Option<T>> {
        if number >= self.count {
            return Ok(None);
        }
        self.clock += 1;
        let is_indexed = self.index.made.get().is_some();
        let mut is_loaded = false;
        let known = match self.known.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                is_loaded = true;
                let base = self.base.as_ref().ok_or_else(|| missing_session(number))?;
                let session = base.get(number)?;
                place.insert(KnownSession::of((**session).clone(), 0))
            }
        };
        if !known.changed {
            known.stored = Some(session_hash(number, &encode_session(known.get())));
        }
        known.get();
        (known.changed, known.used) = (true, self.clock);
        let Some(session) = known.session.get_mut() else { return Ok(None) };
        let session = Arc::make_mut(session);
        let sources = session.bookmarks.len();
        let names = is_indexed.then(|| hash_of_names(session));
        let before = (session.removal.is_none(), session.info.kind);
        let done = change(session);
        let after = (session.removal.is_none(), session.info.kind);
        // Most changes leave the keys of the session as they are.
        let may_have_new_sources = sources + session.bookmarks.len() > 0;
        let has_new_names = || names.is_some_and(|names| names != hash_of_names(session));
        if is_loaded || before != after || may_have_new_sources || has_new_names() {
            self.index.add(number, session);
        }
        self.count_visible(before, false);
        self.count_visible(after, true);
        Ok(Some(done))
    }

    /// Adds 1 to the number of visible sessions of a kind, or subtracts 1. Does nothing for a
    /// session that is not visible.
    fn count_visible(&mut self, (visible, kind): (bool, SessionKind), more: bool) {
        if let Some(count) = self.visible.get_mut(kind as usize).filter(|_| visible) {
            *count = if more { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// Adds a session. Its number is the number of sessions before.
    pub(crate) fn push(&mut self, session: SessionRefs) {
        self.clock += 1;
        self.count_visible((session.removal.is_none(), session.info.kind), true);
        self.index.add(self.count, &session);
        let known = KnownSession { changed: true, ..KnownSession::of(session, self.clock) };
        self.known.insert(self.count, known);
        self.count += 1;
    }

    /// Iterates over all sessions by number.
    pub(crate) const fn all(&self) -> AllSessions<'_> {
        self.between(0, self.count)
    }

    /// Iterates over the sessions with `first <= number < end`.
    pub(crate) const fn between(
        &self,
        first: SessionNumber,
        end: SessionNumber,
    ) -> AllSessions<'_> {
        let end = if end < self.count { end } else { self.count };
        AllSessions { table: self, next: first, end, block: VecDeque::new() }
    }

    /// Returns the sessions that changed after the generation.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (SessionNumber, &SessionRefs)> {
        let changed = self.known.iter().filter(|(_, known)| known.changed);
        changed.map(|(number, known)| (*number, &**known.get()))
    }

    /// Returns the sessions that match a lookup, by number.
    pub(crate) fn find(
        &self,
        lookup: SessionLookup<'_>,
    ) -> Result<Vec<(SessionNumber, &SessionRefs)>> {
        let known = self.known_candidates(&lookup).into_iter();
        let known = known.filter(|(_, known)| known.matches(&lookup));
        let mut found: BTreeMap<SessionNumber, &SessionRefs> =
            known.map(|(number, known)| (number, &**known.get())).collect();
        if let Some(base) = self.base.as_ref().filter(|_| !self.is_complete()) {
            for number in base.candidates(&lookup)? {
                if !self.known.contains_key(&number) {
                    let session = base.get(number)?;
                    if lookup.matches(session) {
                        found.insert(number, &**session);
                    }
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Returns the sessions in memory that may match: all that match, and perhaps others.
    fn known_candidates(&self, lookup: &SessionLookup<'_>) -> Vec<(SessionNumber, &KnownSession)> {
        const LOOKUPS_WITHOUT: usize = 16;
        let all = || self.known.iter().map(|(number, known)| (*number, known));
        let Some(hash) = lookup.hash_in_memory() else { return all().collect() };
        if self.index.made.get().is_none()
            && self.index.lookups.fetch_add(1, Ordering::Relaxed) < LOOKUPS_WITHOUT
        {
            return all().collect();
        }
        let made = self.index.made.get_or_init(|| {
            let mut made = HashMap::new();
            all().for_each(|(number, known)| add_to(&mut made, number, known.get()));
            made
        });
        let numbers = made.get(&hash).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, self.known.get(number)?))).collect()
    }

    /// Returns the sessions of a kind that were not removed and have the latest events: at most
    /// `limit`, the latest first.
    pub(crate) fn latest(
        &self,
        kind: SessionKind,
        limit: usize,
    ) -> Result<Vec<(SessionNumber, &SessionRefs)>> {
        let wanted = |one: &&SessionRefs| one.info.kind == kind && one.removal.is_none();
        let known = self.known.iter().map(|(number, known)| (*number, &**known.get()));
        let known = known.filter(|(_, session)| wanted(session));
        let mut found: Vec<(Timestamp, SessionNumber, &SessionRefs)> =
            known.map(|(number, session)| (session.last_time(), number, session)).collect();
        found.sort_unstable_by_key(|(at, number, _)| std::cmp::Reverse((*at, *number)));
        found.truncate(limit);
        if let Some(base) = self.base.as_ref().filter(|_| !self.is_complete()) {
            // If there are enough sessions in memory, only later ones are read: mostly none.
            let last = found.last().filter(|_| found.len() == limit);
            let after = last.map(|(at, number, _)| (*at, *number));
            let (mut before, mut more) = (None, limit);
            while more > 0 {
                let generation = base.source.generation()?;
                let rows = session_rows::latest_sessions(generation, kind, (after, before), more)?;
                let ended = rows.len() < more;
                before = rows.last().copied();
                for (at, number) in rows {
                    if !self.known.contains_key(&number) {
                        found.push((at, number, base.get(number)?));
                        more -= 1;
                    }
                }
                if ended {
                    break;
                }
            }
        }
        found.sort_unstable_by_key(|(at, number, _)| std::cmp::Reverse((*at, *number)));
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, number, session)| (number, session)).collect())
    }
}

/// Iterates over all sessions, in reads of [`BLOCK_SESSIONS`].
pub(crate) struct AllSessions<'a> {
    table: &'a SessionTable,
    next: SessionNumber,
    end: SessionNumber,
    /// Sessions of the generation that were read but not returned yet.
    block: VecDeque<(SessionNumber, SessionRefs)>,
}

impl AllSessions<'_> {
    fn stored(&mut self, number: SessionNumber) -> Result<Arc<SessionRefs>> {
        let base = self.table.base.as_ref().ok_or_else(|| missing_session(number))?;
        while self.block.pop_front_if(|(stored, _)| *stored < number).is_some() {}
        if self.block.is_empty() {
            let generation = base.source.generation()?;
            self.block = session_rows::sessions_from(generation, number, BLOCK_SESSIONS)?.into();
        }
        match self.block.pop_front_if(|(stored, _)| *stored == number) {
            Some((_, session)) => Ok(Arc::new(session)),
            None => Err(missing_session(number)),
        }
    }
}

impl Iterator for AllSessions<'_> {
    type Item = Result<(SessionNumber, Arc<SessionRefs>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let session = match self.table.known.get(&number) {
            Some(known) => Ok(Arc::clone(known.get())),
            None => self.stored(number),
        };
        Some(session.map(|session| (number, session)))
    }
}

impl FromIterator<SessionRefs> for SessionTable {
    fn from_iter<I: IntoIterator<Item = SessionRefs>>(sessions: I) -> Self {
        let mut table = Self::default();
        sessions.into_iter().for_each(|session| table.push(session));
        table
    }
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: BTreeMap<_, _> =
            self.known.iter().map(|(number, one)| (number, one.get())).collect();
        out.debug_struct("SessionTable").field("count", &self.count).field("known", &known).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::refs::tests::of_one_session;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
    use crate::engine::session_rows::put_session;
    use crate::format::{BookmarkRef, SessionRemoval};
    use crate::model::{SessionId, SessionMetadata};

    /// A generation that counts its reads.
    struct CountedGeneration(RowOverlay, Mutex<u64>);

    impl CountedGeneration {
        fn view(&self) -> OverlaySnapshot<'_> {
            OverlaySnapshot::new(&EmptySnapshot, &self.0, 7)
        }
    }

    impl Snapshot for CountedGeneration {
        fn position(&self) -> u64 {
            7
        }

        fn get(
            &self,
            table: crate::backend::TableId,
            key: &[u8],
        ) -> Result<Option<Vec<u8>>, crate::backend::Error> {
            *self.1.lock().unwrap() += 1;
            self.view().get(table, key)
        }

        fn rows(
            &self,
            request: crate::backend::ScanRequest<'_>,
        ) -> Result<Vec<crate::backend::TableRow>, crate::backend::Error> {
            *self.1.lock().unwrap() += 1;
            self.view().rows(request)
        }
    }

    fn session(number: u32) -> SessionRefs {
        let one = of_one_session(Timestamp::default());
        let one = one.sessions.get(0).unwrap().unwrap().clone();
        let mut id = [7; 16];
        id[..4].copy_from_slice(&(number % 1000).to_be_bytes());
        let info = SessionMetadata {
            id: SessionId::from_bytes(id),
            name: format!("s{number}"),
            agent_session: Some(format!("agent-{number}")),
            ..one.info.clone()
        };
        let source = format!("file {}", number % 10);
        SessionRefs {
            info,
            bookmarks: vec![BookmarkRef { source, bytes: 1 }],
            last_event: Some(Timestamp::from_micros(i64::from(number))),
            ..one
        }
    }

    fn head(table: &SessionTable) -> StoreHead {
        StoreHead { recent: table.recent(), ..table.totals() }
    }

    /// Returns the table of a segment that follows a generation with `count` sessions.
    fn table(count: u32) -> (SessionTable, Arc<CountedGeneration>) {
        let all: SessionTable = (0..count).map(session).collect();
        let mut rows = RowOverlay::default();
        for (number, session) in all.changed() {
            put_session(&mut rows, number, None, session).unwrap();
        }
        let generation = Arc::new(CountedGeneration(rows, Mutex::default()));
        let mut table = SessionTable::begin(&head(&all));
        table.set_source(Arc::new(OpenGeneration(Arc::clone(&generation) as _)));
        (table, generation)
    }

    fn numbers(found: &[(SessionNumber, &SessionRefs)]) -> Vec<SessionNumber> {
        found.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn sessions_are_found_in_memory_and_in_the_generation() {
        let (mut table, _) = table(3000);
        assert!(!table.is_complete() && table.len() == 3000);
        table.change(5, |session| session.info.name = "new".to_owned()).unwrap();
        table.change(7, |session| session.removal = Some(SessionRemoval::Swept)).unwrap();
        table.push(SessionRefs { last_event: None, ..session(3000) });
        let find = |lookup| numbers(&table.find(lookup).unwrap());
        assert_eq!(find(SessionLookup::Name("s4")), [4]);
        assert_eq!(find(SessionLookup::Name("s2999")), [2999]);
        assert_eq!(find(SessionLookup::Name("s5")), [0; 0]);
        assert_eq!(find(SessionLookup::Name("new")), [5]);
        assert_eq!(find(SessionLookup::Name("s7")), [0; 0], "a removed session has no name");
        assert_eq!(find(SessionLookup::Id(session(7).info.id)), [7, 1007, 2007]);
        assert_eq!(find(SessionLookup::IdPrefix("00000004")), [4, 1004, 2004]);
        assert_eq!(find(SessionLookup::IdPrefix("0000000")).len(), 3 * 16);
        assert_eq!(find(SessionLookup::Agent("agent-1234")), [1234]);
        assert_eq!(find(SessionLookup::AgentPrefix("agent-12")).len(), 1 + 10 + 100);
        assert_eq!(find(SessionLookup::Source("file 3")).len(), 300);
        assert_eq!(find(SessionLookup::Unfinished), [0; 0]);
        assert_eq!(table.visible(SessionKind::Debug), 3000);
        let latest = table.latest(SessionKind::Debug, 3).unwrap();
        assert_eq!(numbers(&latest), [2999, 2998, 2997]);
        let all: Vec<_> = table.all().map(|one| one.unwrap().0).collect();
        assert_eq!(all, (0..3001).collect::<Vec<_>>());
        assert_eq!(table.get(3001).unwrap(), None);
    }

    #[test]
    fn sessions_in_memory_are_found_however_often_they_are_looked_up_and_changed() {
        let (mut table, _) = table(300);
        for round in 0..60_u32 {
            let number = round % 40 + 250;
            let found = |table: &SessionTable, name: &str| {
                numbers(&table.find(SessionLookup::Name(name)).unwrap())
            };
            let name = format!("round {round}");
            table.change(number, |session| session.info.name.clone_from(&name)).unwrap();
            assert_eq!(found(&table, &name), [number]);
            assert_eq!(found(&table.clone(), &name), [number]);
            let before = format!("round {}", round.wrapping_sub(40));
            assert_eq!(found(&table, &before), [0; 0], "it has another name now");
            table.push(session(1000 + round));
            let pushed = table.len() as SessionNumber - 1;
            assert_eq!(found(&table, &format!("s{}", 1000 + round)), [pushed]);
            let agent = format!("agent-{}", 1000 + round);
            let of_agent = table.find(SessionLookup::Agent(&agent)).unwrap();
            assert_eq!(numbers(&of_agent), [pushed]);
            assert!(table.find(SessionLookup::Source("file 3")).unwrap().len() >= 30);
        }
    }

    /// After several lookups, a session without sources was not found by a name that it got later.
    #[test]
    fn a_renamed_session_without_sources_is_found_by_its_new_name() {
        let without_sources = |number| SessionRefs { bookmarks: Vec::new(), ..session(number) };
        let mut table: SessionTable = (0..4).map(without_sources).collect();
        for _ in 0..40 {
            assert_eq!(numbers(&table.find(SessionLookup::Name("s1")).unwrap()), [1]);
        }
        for number in [1, 2] {
            table.change(number, |session| session.info.name = "same".to_owned()).unwrap();
        }
        let agent = Some("other agent".to_owned());
        table.change(3, |session| session.info.agent_session = agent).unwrap();
        let find = |lookup| numbers(&table.find(lookup).unwrap());
        assert_eq!(find(SessionLookup::Name("same")), [1, 2]);
        assert_eq!(find(SessionLookup::Agent("other agent")), [3]);
        assert_eq!(find(SessionLookup::Name("s1")), [0; 0]);
        assert_eq!(find(SessionLookup::Agent("agent-3")), [0; 0]);
    }

    #[test]
    fn a_head_does_not_depend_on_which_sessions_are_in_memory() {
        let (mut small, _) = table(10);
        let (mut large, _) = table(2000);
        assert!(small.is_complete() && small.recent().len() == 10);
        for table in [&mut small, &mut large] {
            let count = table.len() as SessionNumber;
            for number in [3, 1, 3] {
                table.change(number, |session| session.facts += 1).unwrap();
            }
            table.push(session(count));
            let head = head(table);
            let expected: SessionTable = table.all().map(|one| (*one.unwrap().1).clone()).collect();
            assert_eq!(head.digest(), expected.totals().digest());
            assert_eq!(head.visible, expected.totals().visible);
            let last: Vec<_> = head.recent.iter().rev().take(3).map(|one| one.number).collect();
            assert_eq!(last, [count, 3, 1]);
            let bytes: usize = head.recent.iter().map(|one| one.session.0.len()).sum();
            assert!(bytes <= RECENT_BYTES);
        }
    }

    #[test]
    fn lookups_read_the_same_number_of_rows_for_any_number_of_sessions() {
        let reads = |count| {
            let (mut table, generation) = table(count);
            table.find(SessionLookup::Name("s4")).unwrap();
            table.find(SessionLookup::Agent("agent-9")).unwrap();
            table.latest(SessionKind::Debug, 20).unwrap();
            table.get(2).unwrap().unwrap();
            table.change(3, |session| session.facts += 1).unwrap();
            head(&table);
            *generation.1.lock().unwrap()
        };
        assert_eq!(reads(1000), reads(8000));
    }

    /// Regression test: the scan passed the rows of all sessions in memory, and then read `limit`
    /// other sessions.
    #[test]
    fn if_the_latest_sessions_are_in_memory_one_scan_shows_that_no_other_is_later() {
        let (table, generation) = table(3000);
        for limit in [1, 2, 20] {
            let before = *generation.1.lock().unwrap();
            let latest = table.latest(SessionKind::Debug, limit as usize).unwrap();
            assert_eq!(numbers(&latest), Vec::from_iter((3000 - limit..3000).rev()));
            assert_eq!(*generation.1.lock().unwrap() - before, 1);
        }
    }

    #[test]
    fn the_latest_sessions_are_found_in_memory_and_in_the_generation() {
        let (mut table, _) = table(3000);
        let mut at = |number: u32, micros: i64| {
            let time = Some(Timestamp::from_micros(micros));
            table.change(number, |session| session.last_event = time).unwrap();
        };
        // Some sessions in memory are now older than most other sessions, and some are later.
        (2700..2990).for_each(|number| at(number, i64::from(number) - 2000));
        for (number, time) in [(3, 2995), (4, 9000), (2999, 2650), (2998, 0)] {
            at(number, time);
        }
        let mut all: Vec<_> = table
            .all()
            .map(|one| one.map(|(number, session)| (session.last_time(), number)).unwrap())
            .collect();
        all.sort_unstable_by_key(|one| std::cmp::Reverse(*one));
        for limit in [0, 1, 2, 5, 9, 10, 11, 50, 300, 2999, 3000, usize::MAX] {
            let latest = numbers(&table.latest(SessionKind::Debug, limit).unwrap());
            let wanted: Vec<_> = all.iter().take(limit).map(|(_, number)| *number).collect();
            assert_eq!(latest, wanted, "{limit}");
        }
    }

    #[test]
    fn a_session_that_is_missing_is_an_error() {
        let (mut table, _) = table(500);
        table.set_source(Arc::new(OpenGeneration(Arc::new(EmptySnapshot))));
        let missing = "the session number 4";
        assert!(table.get(4).unwrap_err().to_string().contains(missing));
        assert!(table.all().any(|one| one.is_err()));
        assert_eq!(table.get(499).unwrap().unwrap().info.name, "s499", "the journal has it");
    }
}
