//! A bundle into the journal: what of it is not there yet.

use super::check::{judge, session_of};
use super::{BundleSource, Items, MAX_RECORD_BYTES, damaged};
use crate::backend::Snapshot;
use crate::engine::commit::{Desk, Durability};
use crate::engine::index::find_operation;
use crate::engine::maintain::APPLY_BYTES;
use crate::engine::object;
use crate::engine::refs::{advance_by, session as session_refs};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BundleContents, BundleSession, Bytes, Header, ItemKind, OperationRow, Record, RecordChange,
    Refs, sealed_id,
};
use crate::model::{Operation, OperationId, SessionKind, SessionNumber};
use crate::store::{Act, Store};
use std::collections::HashMap;

/// What an import took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleTaken {
    /// The names of the sessions, as they are in the bundle.
    pub sessions: Vec<String>,
    /// How many records were written.
    pub records: u64,
    /// How many were there already.
    pub known: u64,
}

impl Store {
    /// Takes the sessions of a bundle in, with their ids. The bundle is read twice: first it is judged as a whole, and if
    /// anything about it is wrong nothing is written. What is there already is passed over, so an import that was stopped
    /// goes on where it was. Durable when it returns.
    ///
    /// `name` is what its session is called here; a bundle of several keeps its names.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the bundle is damaged, cut off, of a later version, or holds secrets that this store is
    /// opened to take out; [`Error::Duplicate`] if another session has the name; [`Error::Conflict`] if a session went
    /// another way here; [`Error::NotFound`] if a range needs what comes before it; as every write.
    pub fn import_bundle(
        &self,
        act: &Act,
        source: &mut dyn BundleSource,
        name: Option<&str>,
    ) -> Result<BundleTaken> {
        let (mut contents, secrets) = judge(source, self.engine.options.redaction.as_deref())?;
        if secrets > 0 {
            return Err(Error::invalid(format!(
                "the bundle holds {secrets} secrets, and nothing of it can be taken out since it would have other \
                 ids: nothing was taken; allow them, or take all of it with --no-redact"
            )));
        }
        if let Some(name) = name {
            let [only] = contents.sessions.as_mut_slice() else {
                return Err(Error::invalid("only a bundle of one session can be given a name"));
            };
            name.clone_into(&mut only.info.name);
        }
        let refs = self.engine.live.written_refs()?.0;
        contents.sessions.iter().try_for_each(|session| place(&refs, session).map(drop))?;
        let mut import = Import {
            store: self,
            operation: act.operation()?,
            done: HashMap::new(),
            objects: Vec::new(),
            taken: BundleTaken::default(),
            contents,
        };
        import.all(source)?;
        self.engine.sync()?;
        let sessions = import.contents.sessions.iter();
        import.taken.sessions = sessions.map(|session| session.info.name.clone()).collect();
        Ok(import.taken)
    }
}

/// The number of a session here, and whether it is there yet.
fn place(refs: &Refs, session: &BundleSession) -> Result<(SessionNumber, bool)> {
    let own = |known: &crate::format::SessionRefs| known.info.id == session.info.id;
    if let Some(number) = refs.sessions.iter().position(own) {
        let here = session_refs(refs, number as SessionNumber)?;
        if here.next_sequence <= session.from {
            return Err(Error::not_found(
                "revision that the bundle goes on from",
                format!("#{} of '{}'", session.from, session.info.name),
            ));
        }
        return Ok((number as SessionNumber, true));
    }
    if session.from > 0 {
        return Err(Error::not_found(
            "session that the bundle goes on with",
            format!("{} up to #{}", session.info.name, session.from),
        ));
    }
    let taken = |known: &crate::format::SessionRefs| {
        known.info.kind == session.info.kind && known.info.name == session.info.name
    };
    if refs.sessions.iter().any(taken) {
        return Err(Error::Duplicate { kind: "session", id: session.info.name.clone() });
    }
    Ok((refs.sessions.len() as SessionNumber, false))
}

struct Import<'a> {
    store: &'a Store,
    operation: Operation,
    contents: BundleContents,
    /// How many effects of each operation have gone by.
    done: HashMap<OperationId, usize>,
    /// Objects to be written before the next record.
    objects: Vec<Bytes>,
    taken: BundleTaken,
}

impl Import<'_> {
    fn all(&mut self, source: &mut dyn BundleSource) -> Result<()> {
        let mut items = Items::begin(source)?;
        loop {
            let item = items.next()?;
            match item.kind {
                ItemKind::Contents => {}
                ItemKind::Object => self.object(item.content)?,
                ItemKind::Record => {
                    self.write_objects()?;
                    let record =
                        Record::decode(&item.content).map_err(|error| damaged(item.at, error))?;
                    self.record(record)?;
                }
                ItemKind::End => break,
            }
            if self.store.engine.live.tail_cost() >= APPLY_BYTES {
                self.store.maintain(APPLY_BYTES)?;
            }
        }
        self.write_objects()?;
        for named in 0..self.contents.sessions.len() {
            let operation = self.operation.clone();
            self.write(named, Record { operation, changes: Vec::new() })?;
        }
        Ok(())
    }

    fn object(&mut self, sealed: Vec<u8>) -> Result<()> {
        let id = sealed_id(&sealed).map_err(Error::corrupt("an object"))?;
        if object::number(&self.store.engine.live.written()?, &id)?.is_some() {
            return Ok(());
        }
        self.objects.push(Bytes(sealed));
        if self.objects.iter().map(|object| object.0.len()).sum::<usize>() >= MAX_RECORD_BYTES {
            self.write_objects()?;
        }
        Ok(())
    }

    fn write_objects(&mut self) -> Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let objects = std::mem::take(&mut self.objects).into_iter();
        let changes = objects.map(|object| RecordChange::Object { object }).collect();
        let record = Record { operation: self.operation.clone(), changes };
        self.store.engine.commit(Durability::Later, &mut |_| Ok((Some(record.clone()), ())))
    }

    fn record(&mut self, record: Record) -> Result<()> {
        let mut changes = record.changes;
        let named = changes.first_mut().and_then(session_of).map_or(0, |number| *number as usize);
        let id = record.operation.id;
        let effects = changes.iter().filter(|change| has_effect(change)).count();
        let written = self.write(named, Record { operation: record.operation, changes })?;
        *self.done.entry(id).or_default() += effects;
        match written {
            true => self.taken.records += 1,
            false => self.taken.known += 1,
        }
        Ok(())
    }

    /// Writes what of a record is not there yet, and the session before its first.
    fn write(&self, named: usize, record: Record) -> Result<bool> {
        let session = self.contents.sessions.get(named);
        let session =
            session.ok_or_else(|| Error::invalid("a record of a session that is not in it"))?;
        let passed = self.done.get(&record.operation.id).copied().unwrap_or(0);
        self.store.engine.commit(Durability::Later, &mut |desk| {
            let mut refs = (*desk.refs).clone();
            let (number, is_there) = place(&refs, session)?;
            let mut changes = Vec::new();
            if !is_there {
                changes.push(RecordChange::Session { info: session.info.clone() });
                // It becomes the current one only where there is none.
                if session.info.kind == SessionKind::Debug && refs.last_used.is_none() {
                    changes.push(RecordChange::Used { session: number });
                }
                changes.iter().try_for_each(|change| advance_by(&mut refs, change))?;
            }
            let known = if is_there { known(desk, &record.operation.id)? } else { None };
            let mut at = passed;
            for change in &record.changes {
                let mut change = change.clone();
                if let Some(own) = session_of(&mut change) {
                    *own = number;
                }
                let there = is_there && is_known(desk, known.as_ref(), &change, at)?;
                at += usize::from(has_effect(&change));
                if there {
                    continue;
                }
                follows(&refs, number, session, &change)?;
                advance_by(&mut refs, &change)?;
                changes.push(change);
            }
            let written = !changes.is_empty();
            let record = Record { operation: record.operation.clone(), changes };
            Ok((written.then_some(record), written))
        })
    }
}

const fn has_effect(change: &RecordChange) -> bool {
    !matches!(change, RecordChange::Segment { .. } | RecordChange::TakesBack { .. })
}

/// What is known of an operation, if it is.
fn known(desk: &Desk<'_>, id: &OperationId) -> Result<Option<OperationRow>> {
    find_operation(&desk.view()?, id)
}

/// Whether a change, the `at`th effect of its operation, is there already.
fn is_known(
    desk: &Desk<'_>,
    known: Option<&OperationRow>,
    change: &RecordChange,
    at: usize,
) -> Result<bool> {
    Ok(match change {
        RecordChange::Segment { session, blob, offset, .. } => {
            let place = of(*session).text(blob).number(*offset).build();
            desk.view()?.get(key::SEGMENTS, &place)?.is_some()
        }
        // They come last, in one record.
        RecordChange::TakesBack { .. } => known.is_some_and(|row| row.takes_back.is_some()),
        _ => known.is_some_and(|row| at < row.effects.len()),
    })
}

/// That a change follows what is here as it did where it was made.
fn follows(
    refs: &Refs,
    number: SessionNumber,
    session: &BundleSession,
    change: &RecordChange,
) -> Result<()> {
    let here = session_refs(refs, number)?;
    let went = || {
        Error::Conflict(format!(
            "the session '{}' went another way here: #{} is not the next one of the bundle",
            session.info.name,
            here.next_sequence - 1
        ))
    };
    match change {
        RecordChange::Revision { header, .. } => {
            let header = Header::decode(&header.0).map_err(Error::corrupt("a revision"))?;
            let head = here.branch(header.branch)?.head;
            let parent = header.parents.first().map(|parent| parent.id);
            if header.sequence != here.next_sequence || head.map(|head| head.id) != parent {
                return Err(went());
            }
        }
        RecordChange::Checkpoint { checkpoint, .. } if checkpoint.sequence > here.next_sequence => {
            return Err(went());
        }
        RecordChange::Branch { name, .. }
            if here.branches.iter().any(|one| one.name == *name && !one.hidden) =>
        {
            return Err(went());
        }
        _ => {}
    }
    Ok(())
}
