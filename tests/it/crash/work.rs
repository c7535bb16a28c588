//! The work of the processes that are killed, and their acknowledgements.

use super::{SHARED, act};
use crate::fault::SeededNumbers;
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Key, Kind, RetentionPolicy, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, ResolvedMoment, Session, SourceBookmark, SourceChunk,
    Store, WriteContext, WriteReport,
};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Error>;

/// The texts of a state's claims, by id.
pub(super) type Claims = BTreeMap<String, String>;

pub(super) fn hash_of(claims: &Claims) -> String {
    let mut hasher = blake3::Hasher::new();
    for (id, text) in claims {
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes());
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The claims at a moment, as the store returns them.
pub(super) fn claims_at(session: &Session, moment: &ResolvedMoment) -> Result<Claims> {
    let state = session.state(moment)?;
    let claims = state.claims();
    let entries = claims.entries().map(|entry| {
        let (key, entry) = entry?;
        let Some(Value::Text(text)) = entry.value.field("description") else {
            return Ok((key.id, String::new()));
        };
        Ok((key.id, text.clone()))
    });
    entries.collect()
}

/// The size of one line of the source that every writer takes, in bytes.
pub(super) const LINE: u64 = 64;

/// The bytes of the source from one line to another, the same for every process.
pub(super) fn source(from: u64, to: u64) -> Vec<u8> {
    let line = |number: u64| format!("line {number:058}\n").into_bytes();
    (from..to).flat_map(line).collect()
}

/// A fault in the process itself, which the audit must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// It acknowledges a write before it is done.
    AcknowledgesEarly,
    /// Sometimes it does not write what it acknowledges.
    LosesWrites,
    /// Sometimes it writes another text.
    WritesOtherText,
    /// It reports taking more of its source than it did.
    ImportsLess,
    /// It prunes more than it reports.
    PrunesMore,
}

impl Planted {
    pub(super) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::AcknowledgesEarly,
        Self::LosesWrites,
        Self::WritesOtherText,
        Self::ImportsLess,
        Self::PrunesMore,
    ];
}

/// A process that works in its own session and in the shared one.
pub(super) struct Worker<'a> {
    store: Store,
    name: String,
    session: Session,
    shared: Session,
    numbers: SeededNumbers,
    planted: Planted,
    second: u64,
    /// The claims at the head of the current branch.
    claims: Claims,
    /// The claims at the revisions that this process made.
    states: BTreeMap<u64, Claims>,
    say: &'a mut dyn FnMut(&str),
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        store: Store,
        (writer, seed, second): (u64, u64, u64),
        planted: Planted,
        say: &'a mut dyn FnMut(&str),
    ) -> Result<Self> {
        let name = format!("w{writer}");
        let session = match store.session(&name) {
            Err(Error::NotFound { .. }) => {
                store.create_session(&act(second), NewSession::named(&*name))?
            }
            found => found?,
        };
        let shared = store.session(SHARED)?;
        let claims = claims_at(&session, &session.head()?)?;
        let numbers = SeededNumbers(seed);
        let states = BTreeMap::new();
        Ok(Self { store, name, session, shared, numbers, planted, second, claims, states, say })
    }

    fn act(&mut self) -> WriteContext {
        self.second += 1;
        act(self.second)
    }

    /// Prints an acknowledgement for this session.
    fn tell(&mut self, what: &str, rest: impl std::fmt::Display) {
        (self.say)(&format!("{what} {} {rest}", self.name));
    }

    /// Whether a planted fault happens now.
    fn strikes(&mut self, planted: Planted) -> bool {
        self.planted == planted && self.numbers.below(8) == 0
    }

    /// Executes one random step.
    pub(super) fn step(&mut self) -> Result<()> {
        match self.numbers.below(100) {
            0..42 => self.revise(false),
            42..56 => self.revise(true),
            56..62 => self.checkpoint(),
            62..66 => self.switch(),
            66..70 => self.restore(),
            70..76 => self.undo(),
            76..84 => self.take(),
            84..90 => self.note(),
            90..93 => self.prune(),
            93..94 => self.sweep(),
            94..99 => self.store.maintain(0).map(drop),
            _ => self.store.compact().map(drop),
        }
    }

    /// Executes every kind of step once or twice and ignores errors: for faults at system calls.
    pub(super) fn all(&mut self) {
        let steps: [fn(&mut Self) -> Result<()>; 14] = [
            |it| it.revise(false),
            |it| it.revise(true),
            Self::take,
            |it| it.store.maintain(0).map(drop),
            |it| it.revise(true),
            Self::note,
            Self::switch,
            |it| it.revise(true),
            Self::restore,
            Self::take,
            Self::prune,
            |it| it.store.maintain(0).map(drop),
            Self::sweep,
            |it| it.store.compact().map(drop),
        ];
        for step in steps {
            if step(self).is_err() {
                (self.say)("refused");
                // The planned change may have happened or not.
                if let Ok(claims) = self.session.head().and_then(|at| claims_at(&self.session, &at))
                {
                    self.claims = claims;
                }
            }
        }
    }

    fn text(&mut self) -> String {
        let length = match self.numbers.below(200) {
            0 => 400_000,
            1..12 => 9_000,
            _ => 1 + self.numbers.below(300),
        };
        let mut text = String::new();
        while (text.len() as u64) < length {
            text.push_str(&self.numbers.next().to_string());
        }
        text
    }

    fn revise(&mut self, with_checkpoint: bool) -> Result<()> {
        let mut after = self.claims.clone();
        let mut changes: BTreeMap<String, Option<String>> = BTreeMap::new();
        for _ in 0..=self.numbers.below(12) {
            let id = format!("e{}", self.numbers.below(60));
            let text = (self.numbers.below(7) > 0).then(|| self.text());
            match &text {
                Some(text) => drop(after.insert(id.clone(), text.clone())),
                None if after.remove(&id).is_none() => continue,
                None => {}
            }
            changes.insert(id, text);
        }
        let hash = hash_of(&after);
        if self.planted == Planted::AcknowledgesEarly {
            let next = self.session.summary()?.last_sequence + 1;
            self.tell("state", format!("{next} {hash}"));
        }
        if self.strikes(Planted::LosesWrites) {
            let next = self.session.summary()?.last_sequence + 1;
            self.tell("state", format!("{next} {hash}"));
            return Ok(());
        }
        if self.strikes(Planted::WritesOtherText) {
            changes.insert("e0".to_owned(), Some("another text".to_owned()));
        }
        let act = self.act();
        let changes = changes.into_iter().map(|(id, text)| {
            let key = Key::new(Kind::Note, id);
            match text {
                Some(text) => ClaimChange::put(key, Value::from([("description", text.into())])),
                None => ClaimChange::remove(key),
            }
        });
        let mut write = self.session.write(&act).changes(changes);
        if with_checkpoint {
            let tags = [format!("t{}", self.second % 5)];
            write = write.checkpoint(NewCheckpoint::manual("made").tags(tags));
        }
        let done = write.commit()?;
        self.claims = after;
        if self.planted != Planted::AcknowledgesEarly {
            self.acknowledge(&done, &hash);
        }
        Ok(())
    }

    fn acknowledge(&mut self, done: &WriteReport, hash: &str) {
        if let Some((sequence, _)) = done.revision {
            self.states.insert(sequence, self.claims.clone());
            self.tell("state", format!("{sequence} {hash}"));
        }
        if let Some(made) = &done.checkpoint {
            self.tell("checkpoint", format!("{} {}", made.sequence, made.id));
        }
    }

    fn checkpoint(&mut self) -> Result<()> {
        let act = self.act();
        let wanted = NewCheckpoint::manual("alone");
        let done = self.session.write(&act).checkpoint(wanted).commit()?;
        self.acknowledge(&done, "");
        Ok(())
    }

    fn switch(&mut self) -> Result<()> {
        let name = ["main", "b1", "b2"][self.numbers.below(3) as usize];
        let act = self.act();
        let known = self.session.branches(&self.session.head()?)?;
        if !known.iter().any(|branch| branch.name == name) {
            self.session.create_branch(&act, name, None, BranchMetadata::default())?;
        }
        self.session.switch_branch(&act, name, true)?;
        self.claims = claims_at(&self.session, &self.session.head()?)?;
        Ok(())
    }

    fn restore(&mut self) -> Result<()> {
        let count = self.states.len() as u64;
        let picked = (count > 0).then(|| self.numbers.below(count) as usize);
        let Some((sequence, claims)) = picked.and_then(|at| self.states.iter().nth(at)) else {
            return Ok(());
        };
        let (sequence, claims) = (*sequence, claims.clone());
        let moment = match self.session.at_sequence(sequence) {
            Err(Error::Folded { .. }) => return Ok(()),
            moment => moment?,
        };
        let act = self.act();
        let done = self.session.restore(&act, &moment)?;
        let hash = hash_of(&claims);
        self.claims = claims;
        self.acknowledge(&done, &hash);
        Ok(())
    }

    /// Makes a revision and undoes it.
    fn undo(&mut self) -> Result<()> {
        let before = self.claims.clone();
        self.revise(false)?;
        if self.claims == before {
            return Ok(());
        }
        let act = self.act();
        let undone = self.session.undo(&act, None)?;
        self.claims = before;
        let hash = hash_of(&self.claims);
        if let Some(sequence) = undone.revision {
            self.tell("state", format!("{sequence} {hash}"));
        }
        let head = self.session.head()?;
        assert_eq!(claims_at(&self.session, &head)?, self.claims, "{} after undo", self.name);
        Ok(())
    }

    /// Takes some more lines of the source.
    fn take(&mut self) -> Result<()> {
        let bookmark = self.session.bookmark("log")?.unwrap_or_default();
        let from = bookmark.lines;
        let lines = match self.numbers.below(20) {
            0 => 30_000,
            _ => 1 + self.numbers.below(400),
        };
        let act = self.act();
        if self.strikes(Planted::ImportsLess) {
            self.tell("source", from + lines);
            return Ok(());
        }
        let open = source(0, from).split_off(usize::try_from(bookmark.open_block()).unwrap());
        let bytes = source(from, from + lines);
        let fact = Fact {
            kind: Kind::Message,
            id: format!("f{from}"),
            at: act.now,
            origin: FactOrigin::Imported,
            place: from,
            recorded_at: act.now,
            value: Value::from([("text", "taken".into())]),
        };
        let taken = SourceChunk {
            bytes: self.store.redact_source(&bytes, TextForm::Plain, PartEnding::End),
            bookmark: SourceBookmark::clone(&bookmark),
            open: &open,
            lines,
            keep: true,
            facts: vec![fact],
            ..SourceChunk::default()
        };
        let operation = self.store.new_operation()?;
        self.session.import_chunk(&act, operation, "log", taken)?;
        self.store.sync()?;
        self.tell("source", from + lines);
        Ok(())
    }

    fn note(&mut self) -> Result<()> {
        let id = format!("{}-{:016x}", self.name, self.numbers.next());
        let act = self.act();
        let value = Value::from([("description", id.as_str().into())]);
        let change = ClaimChange::add(Key::new(Kind::Note, id.as_str()), value);
        self.shared.write(&act).change(change).commit()?;
        (self.say)(&format!("note {id}"));
        Ok(())
    }

    fn prune(&mut self) -> Result<()> {
        self.tell("pruning", "");
        let act = self.act();
        let keeps = self.planted != Planted::PrunesMore;
        let retention =
            RetentionPolicy { manual: false, last: 4, revisions: 0, ..RetentionPolicy::none() };
        let kept = self.session.prune_preview(&retention, act.now)?;
        let retention = if keeps { retention } else { RetentionPolicy { last: 0, ..retention } };
        let pruned = self.session.prune(&act, &retention)?;
        for verdict in kept.verdicts.iter().filter(|verdict| !verdict.reasons.is_empty()) {
            if let Some(sequence) = verdict.checkpoint.revision {
                self.tell("kept", sequence);
            }
        }
        let undoes = pruned.operation.is_some() && keeps && self.numbers.below(2) == 0;
        if let Some(operation) = pruned.operation.filter(|_| undoes) {
            let act = self.act();
            match self.session.undo(&act, Some(&operation.to_string())) {
                // It was swept in the meantime.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                undone => {
                    undone?;
                    self.tell("unpruned", "");
                }
            }
        }
        Ok(())
    }

    fn sweep(&mut self) -> Result<()> {
        let now = self.act().now;
        self.store.sweep(now, now).map(drop)
    }
}
