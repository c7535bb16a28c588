//! Executes each step in the store and in the naive history.

use super::naive::{Claims, Naive, time};
use super::verify::verify;
use super::{Happened, Step, Timed};
use forge_postgres::PostgresConnector;
use forge_store::diff::{self, ConflictResolution, MergeSide};
use forge_store::error::Error;
use forge_store::model::{
    AutoTrigger, BranchMetadata, CheckpointTrigger, Fact, FactOrigin, Key, Kind, RetentionPolicy,
    Value,
};
use forge_store::store::database::{Database, DatabaseConnector};
use forge_store::store::{
    CheckpointFilter, ClaimChange, LogItem, MergeRequest, MergeResult, NewCheckpoint, NewSession,
    Options, Session, Store, SweepReport, VerifyDepth, WriteContext,
};
use std::sync::Arc;
use tempfile::TempDir;

/// The place of the store.
pub(super) struct Place {
    pub(super) store: Store,
    folder: Option<TempDir>,
    options: Options,
}

impl Place {
    pub(super) fn memory() -> Self {
        Self { store: Store::in_memory().unwrap(), folder: None, options: Options::default() }
    }

    pub(super) fn files() -> Self {
        Self::made(tempfile::tempdir().unwrap(), Options::default())
    }

    pub(super) fn encrypted() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Some(folder.path().join("keyring"));
        Self::made(folder, Options::default().keyring(keyring).encrypted(true))
    }

    pub(super) fn database(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connector = PostgresConnector::new(forge_postgres::Environment::new());
        let database = connector.open(address, "model").unwrap();
        let options =
            Options::default().connector(Arc::new(connector) as Arc<dyn DatabaseConnector>);
        let database = Arc::new(database) as Arc<dyn Database>;
        let path = folder.path().join(".forge");
        let (store, _) = Store::create_in_database(&path, &database, options.clone()).unwrap();
        Self { store, folder: Some(folder), options }
    }

    fn made(folder: TempDir, options: Options) -> Self {
        let store = Store::create(&folder.path().join(".forge"), options.clone()).unwrap();
        Self { store, folder: Some(folder), options }
    }

    /// Checks every stored hash.
    pub(super) fn check(&self) {
        if let Some(folder) = &self.folder {
            let path = folder.path().join(".forge");
            let keyring = self.options.keyring.as_deref();
            let verified = match self.store.database() {
                Some(_) => self.store.verify_in_database(VerifyDepth::ReadData),
                None => Store::verify(&path, VerifyDepth::ReadData, time(0), keyring),
            };
            assert_eq!(verified.unwrap().findings, []);
        }
    }

    pub(super) fn reopen(&mut self) {
        if let Some(folder) = &self.folder {
            self.store = Store::open(&folder.path().join(".forge"), self.options.clone()).unwrap();
        }
    }
}

const SESSIONS: [&str; 2] = ["first", "second"];

pub(super) fn run(place: &mut Place, steps: &[Timed]) {
    let mut naive = Vec::new();
    for name in SESSIONS {
        place.store.create_session(&act(0), NewSession::named(name)).unwrap();
        naive.push(Naive::new(0));
    }
    let mut now = 0;
    for (number, timed) in steps.iter().enumerate() {
        // No two operations have the same time: otherwise versions recorded at the same time are
        // equal.
        now = (now / 1_000_000 + i64::from(timed.seconds)) * 1_000_000 + number as i64;
        now = now.max(1);
        let chosen = usize::from(timed.session);
        let session = place.store.session(SESSIONS[chosen]).unwrap();
        match &timed.step {
            // Without changes since the last generation there is none to publish.
            Step::Publish => {
                place.store.maintain(0).unwrap();
            }
            Step::Reopen => place.reopen(),
            Step::Verify => verify(&session, &naive[chosen]),
            step => {
                let mut doing = Doing { session, naive: &mut naive[chosen], now, number };
                doing.step(step);
            }
        }
    }
    for (name, naive) in SESSIONS.iter().zip(&naive) {
        verify(&place.store.session(name).unwrap(), naive);
    }
    place.store.maintain(0).unwrap();
    place.reopen();
    for (name, naive) in SESSIONS.iter().zip(&naive) {
        verify(&place.store.session(name).unwrap(), naive);
    }
    place.check();
    // What was pruned is swept: everything that stays is unchanged.
    place.store.sweep(time(now), time(now)).unwrap();
    for (name, naive) in SESSIONS.iter().zip(&naive) {
        verify(&place.store.session(name).unwrap(), naive);
    }
    place.store.maintain(0).unwrap();
    place.reopen();
    for (name, naive) in SESSIONS.iter().zip(&naive) {
        verify(&place.store.session(name).unwrap(), naive);
    }
    assert_eq!(place.store.sweep(time(now), time(now)).unwrap(), SweepReport::default());
    place.check();
    if place.folder.is_some() {
        // All derived data is rebuilt with the same result.
        place.store.rebuild().unwrap();
        place.check();
        for (name, naive) in SESSIONS.iter().zip(&naive) {
            verify(&place.store.session(name).unwrap(), naive);
        }
    }
}

pub(super) fn act(now: i64) -> WriteContext {
    WriteContext::asked("test", time(now))
}

struct Doing<'a> {
    session: Session,
    naive: &'a mut Naive,
    now: i64,
    number: usize,
}

fn pick<T: Clone>(items: &[T], number: u16) -> Option<T> {
    items.get(usize::from(number) % items.len().max(1)).cloned()
}

impl Doing<'_> {
    fn step(&mut self, step: &Step) {
        let (now, act) = (self.now, act(self.now));
        match step {
            Step::Write { claims, facts, checkpoint } => {
                self.write(claims, facts, checkpoint.as_deref());
            }
            Step::After { revision, claims } => self.after(*revision, claims),
            Step::Replace { tags } => self.replace(tags),
            Step::Drop { checkpoint } => self.drop(*checkpoint),
            Step::Name { moment, tags } => self.name(*moment, tags),
            Step::Tag { checkpoint, add, remove } => self.tag(*checkpoint, add, remove),
            Step::Fork { from } => self.fork(*from),
            Step::Switch { branch, quietly } => self.switch(*branch, *quietly),
            Step::Restore { to } => self.restore(*to),
            Step::Merge { source, target, prefer, quietly } => {
                let prefer =
                    prefer.map(|ours| if ours { MergeSide::Ours } else { MergeSide::Theirs });
                self.merge((*source, *target), prefer, *quietly);
            }
            Step::Schedule { seconds } => {
                let every = seconds.map(|seconds| i64::from(seconds) * 1_000_000);
                self.session.schedule(&act, every).unwrap();
                if self.naive.now.schedule != every {
                    self.naive.operate(None, |naive| naive.now.schedule = every);
                }
            }
            Step::Undo => match self.session.undo(&act, None) {
                Ok(_) => self.naive.undo(now),
                Err(Error::NothingToUndo) => assert!(!self.naive.can_undo(), "undo lost"),
                Err(error) => panic!("{error}"),
            },
            Step::Redo => match self.session.redo(&act) {
                Ok(_) => self.naive.redo(now),
                Err(Error::NothingToRedo) => assert!(!self.naive.can_redo(), "redo lost"),
                // A refused redo changes nothing, and the same operation would be redone next.
                Err(Error::Conflict(why)) => {
                    assert!(self.naive.redo_folds_what_is_named(), "{why}");
                }
                Err(error) => panic!("{error}"),
            },
            Step::Prune { last, manual, seconds } => {
                self.prune(u64::from(*last), *manual, i64::from(*seconds) * 1_000_000);
            }
            Step::Publish | Step::Reopen | Step::Verify => {}
        }
    }

    fn write(
        &mut self,
        claims: &[super::Claim],
        facts: &[Happened],
        checkpoint: Option<&[String]>,
    ) {
        let (now, act, number) = (self.now, act(self.now), self.number);
        let branch = self.naive.now.current;
        let before = self.naive.head(branch).clone();
        let mut after = before.clone();
        let mut write = self.session.write(&act);
        // If one revision changes a claim several times, the last change counts.
        let mut counted = std::collections::BTreeMap::new();
        for (id, text) in claims {
            let id = format!("n{id}");
            let text = text.as_ref().map(super::Text::text);
            let key = Key::new(Kind::Note, id.clone());
            write = write.change(match &text {
                None => ClaimChange::remove(key),
                Some(text) => {
                    ClaimChange::put(key, Value::from([("description", text.as_str().into())]))
                }
            });
            counted.insert(id, text);
        }
        for (id, text) in &counted {
            Naive::changed(&mut after, id, text.as_deref(), now);
        }
        let mut new: Vec<Fact> = Vec::new();
        for (place, happened) in facts.iter().enumerate() {
            let value = format!("{number}.{place}");
            let (kind, field) =
                if happened.prompt { (Kind::Prompt, "text") } else { (Kind::Command, "command") };
            let fact = Fact {
                kind,
                id: format!("f{}", happened.id),
                at: time(now - i64::from(happened.before) * 1_000_000),
                origin: if happened.hook { FactOrigin::Hook } else { FactOrigin::Imported },
                place: u64::from(happened.place),
                recorded_at: time(now + place as i64),
                value: Value::from([(field, value.into())]),
            };
            let same = |other: &Fact| {
                (other.kind, &other.id, other.at, other.place)
                    == (fact.kind, &fact.id, fact.at, fact.place)
            };
            if !new.iter().any(same) {
                new.push(fact);
            }
        }
        write = write.facts(new.clone(), None);
        let message = format!("c{number}");
        if let Some(tags) = checkpoint {
            write = write.checkpoint(NewCheckpoint::manual(message.clone()).tags(tags.to_vec()));
        }
        let done = write.commit().unwrap();
        let (revised, anything) = (before != after, !new.is_empty());
        let due = checkpoint.is_none() && (revised || anything) && self.naive.is_scheduled_due(now);
        assert_eq!(done.is_unchanged(), !revised && !anything && checkpoint.is_none());
        assert_eq!(done.revision.is_some(), revised);
        assert_eq!(done.checkpoint.is_some(), checkpoint.is_some() || due);
        if done.is_unchanged() {
            return;
        }
        self.naive.operate(revised.then_some(branch), |naive| {
            if revised {
                naive.revise(now, branch, after, Claims::Parent);
            }
            for fact in new {
                let at = fact.at.micros_since(time(0));
                naive.fact(fact, at);
            }
            let revision = naive.branches[branch].head;
            if let Some(tags) = checkpoint {
                naive.checkpoint(now, revision, &message, tags);
            } else if due {
                naive.checkpoint(now, revision, "scheduled", &[]);
            }
        });
        if let Some((sequence, _)) = done.revision {
            assert!(self.naive.revisions.contains_key(&sequence), "#{sequence} is another's");
        }
    }

    fn after(&mut self, revision: u16, claims: &[super::Claim]) {
        let (now, act) = (self.now, act(self.now));
        let numbers: Vec<u64> = self.naive.revisions.keys().copied().collect();
        let Some(from) = pick(&numbers, revision) else { return };
        let naive = &self.naive;
        let (own, before) = (naive.revisions[&from].branch, naive.revisions[&from].state.clone());
        let visible: Vec<_> = naive.visible_branches().collect();
        let is_head = |number: &usize| {
            visible.iter().any(|(other, branch)| other == number && branch.head == Some(from))
        };
        let known = [own, naive.now.current].into_iter().find(is_head);
        let names = std::iter::once("fork".to_owned()).chain((2..).map(|n| format!("fork-{n}")));
        let is_free = |name: &String| visible.iter().all(|(_, branch)| branch.name != *name);
        let name = names.into_iter().find(is_free).unwrap();
        let mut after = before.clone();
        let resolved = self.session.at_sequence(from).unwrap();
        let message = format!("c{}", self.number);
        let mut write = self.session.write(&act).after_or_fork(&resolved, "fork");
        let mut counted = std::collections::BTreeMap::new();
        for (id, text) in claims {
            let (id, text) = (format!("n{id}"), text.as_ref().map(super::Text::text));
            let key = Key::new(Kind::Note, id.clone());
            write = write.change(match &text {
                None => ClaimChange::remove(key),
                Some(text) => {
                    ClaimChange::put(key, Value::from([("description", text.as_str().into())]))
                }
            });
            counted.insert(id, text);
        }
        for (id, text) in &counted {
            Naive::changed(&mut after, id, text.as_deref(), now);
        }
        let done = write.checkpoint(NewCheckpoint::manual(message.clone())).commit().unwrap();
        let revised = before != after;
        assert_eq!((done.revision.is_some(), done.checkpoint.is_some()), (revised, true));
        assert_eq!(done.new_branch, revised && known.is_none());
        let branch = known.unwrap_or(self.naive.branches.len());
        self.naive.operate(revised.then_some(branch), |naive| {
            if !revised {
                naive.checkpoint(now, Some(from), &message, &[]);
                return;
            }
            if known.is_none() {
                naive.fork(&name, (own, from), before);
            }
            if naive.now.current != branch {
                naive.switch(now, branch);
            }
            naive.revise(now, branch, after, Claims::Parent);
            naive.checkpoint(now, naive.branches[branch].head, &message, &[]);
        });
        let landed = if revised { branch } else { known.unwrap_or(own) };
        assert_eq!(done.branch, self.naive.branches[landed].name);
    }

    fn replace(&mut self, tags: &[String]) {
        let (now, act, key) = (self.now, act(self.now), "key".to_owned());
        let message = format!("c{}", self.number);
        let wanted = NewCheckpoint {
            key: Some(key.clone()),
            ..NewCheckpoint::manual(message.clone()).tags(tags.to_vec())
        };
        let done = self.session.write(&act).replacing_checkpoint(wanted).commit().unwrap();
        let made = done.checkpoint.unwrap();
        assert_eq!(self.session.checkpoint_of(&key).unwrap().as_ref(), Some(&made));
        let naive = &self.naive;
        let known = naive.now.keyed.filter(|known| naive.now.checkpoints.contains_key(known));
        let next = naive.next;
        self.naive.operate(None, |naive| {
            let revision = naive.branches[naive.now.current].head;
            if let Some(known) = known {
                naive.next = known;
            }
            naive.checkpoint(now, revision, &message, tags);
            naive.now.keyed = Some(made.sequence);
            naive.next = naive.next.max(next);
        });
        assert_eq!(made.sequence, known.unwrap_or(next));
    }

    fn drop(&mut self, checkpoint: u16) {
        let all = self.session.checkpoints(&CheckpointFilter::default()).unwrap();
        let Some(one) = pick(&all, checkpoint) else { return };
        let dropped = self.session.drop_checkpoints(&act(self.now), &[one.id]).unwrap();
        assert_eq!(dropped, [one]);
        self.naive.operate(None, |naive| {
            naive.now.checkpoints.remove(&dropped[0].sequence);
        });
    }

    fn name(&mut self, moment: u16, tags: &[String]) {
        let events: Vec<_> =
            self.naive.events.iter().copied().filter(|at| *at <= self.now).collect();
        let Some(at) = pick(&events, moment) else { return };
        let message = format!("c{}", self.number);
        let wanted = NewCheckpoint::manual(message.clone()).tags(tags.to_vec()).at(time(at));
        let done = self.session.write(&act(self.now)).checkpoint(wanted).commit().unwrap();
        assert_eq!(done.checkpoint.unwrap().trigger, CheckpointTrigger::Manual);
        self.naive.operate(None, |naive| {
            let revision = naive.revision_at(naive.branch_at(at), at);
            naive.checkpoint(at, revision, &message, tags);
        });
    }

    fn tag(&mut self, checkpoint: u16, add: &str, remove: &str) {
        let all = self.session.checkpoints(&CheckpointFilter::default()).unwrap();
        let Some(one) = pick(&all, checkpoint) else { return };
        let (add, remove) = (add.to_owned(), remove.to_owned());
        let tagged = self
            .session
            .tag(&act(self.now), &one.id, std::slice::from_ref(&add), std::slice::from_ref(&remove))
            .unwrap();
        if tagged == one {
            return;
        }
        self.naive.operate(None, |naive| {
            let named = naive.now.checkpoints.get_mut(&one.sequence).unwrap();
            named.tags.remove(&remove);
            named.tags.insert(add);
        });
    }

    fn fork(&mut self, from: Option<u16>) {
        let name = format!("b{}", self.number);
        let numbers: Vec<u64> = self.naive.revisions.keys().copied().collect();
        let from = from.and_then(|from| pick(&numbers, from));
        let resolved = from.map(|number| self.session.at_sequence(number).unwrap());
        let before = self.session.store().tail_bytes().unwrap();
        self.session
            .create_branch(&act(self.now), &name, resolved.as_ref(), BranchMetadata::default())
            .unwrap();
        // A fork copies no state, whatever its size.
        assert!(self.session.store().tail_bytes().unwrap() - before < 1000, "a fork is small");
        self.naive.operate(None, |naive| {
            let head = naive.branches[naive.now.current].head;
            let (base, state) = match from.or(head) {
                None => ((naive.now.current, 0), naive.head(naive.now.current).clone()),
                Some(number) => {
                    let revision = &naive.revisions[&number];
                    ((revision.branch, number), revision.state.clone())
                }
            };
            naive.fork(&name, base, state);
        });
    }

    fn switch(&mut self, branch: u16, quietly: bool) {
        let branches: Vec<(usize, String)> = self
            .naive
            .visible_branches()
            .map(|(number, branch)| (number, branch.name.clone()))
            .collect();
        let (number, name) = pick(&branches, branch).unwrap();
        let left = self.session.switch_branch(&act(self.now), &name, quietly).unwrap();
        if number == self.naive.now.current {
            assert_eq!(left, None);
            return;
        }
        let now = self.now;
        self.naive.operate(None, |naive| {
            let message =
                format!("switched from {} to {name}", naive.branches[naive.now.current].name);
            naive.switch(now, number);
            if !quietly {
                let trigger = CheckpointTrigger::Automatic(AutoTrigger::BranchSwitch);
                assert_ne!(trigger, CheckpointTrigger::Manual);
                let revision = naive.branches[number].head;
                naive.checkpoint(now, revision, &message, &["auto".to_owned()]);
            }
        });
    }

    fn merge(&mut self, branches: (u16, u16), prefer: Option<MergeSide>, quietly: bool) {
        let names: Vec<(usize, String)> = self
            .naive
            .visible_branches()
            .map(|(number, branch)| (number, branch.name.clone()))
            .collect();
        let (from, source) = pick(&names, branches.0).unwrap();
        let (into, target) = pick(&names, branches.1).unwrap();
        let merging = MergeRequest {
            source: source.clone(),
            target: Some(target.clone()),
            prefer,
            without_checkpoint: quietly,
            ..MergeRequest::default()
        };
        let before = self.session.store().tail_bytes().unwrap();
        if from == into {
            let refused = self.session.merge(&act(self.now), &merging);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
            return;
        }
        let preview = self.session.merge_preview(&merging).unwrap();
        let done = self.session.merge(&act(self.now), &merging).unwrap();
        assert_eq!((preview.result, &preview.changes), (done.result, &done.changes));
        let naive = &self.naive;
        let (ours, theirs) = (naive.branches[into].head, naive.branches[from].head);
        let (own, other) = (naive.ancestors(ours), naive.ancestors(theirs));
        let bases = naive.bases(&own, &other);
        if theirs.is_some() {
            assert_eq!(done.bases, bases, "what both had");
        }
        let (our, their) = (naive.head(into).clone(), naive.head(from).clone());
        let mut is_settled = true;
        let (expected, state) = if theirs.is_none_or(|theirs| own.contains(&theirs)) {
            (MergeResult::AlreadyMerged, our.clone())
        } else if ours.is_none_or(|ours| other.contains(&ours)) {
            (MergeResult::FastForward, their)
        } else {
            let merge = diff::merge_by(&naive.ancestor(&bases), &our, &their, &mut |_| {
                is_settled &= prefer.is_some();
                ConflictResolution::Side(prefer.unwrap_or(MergeSide::Ours))
            });
            let shown: Vec<_> = done.conflicts.iter().map(|one| one.conflict.clone()).collect();
            assert_eq!(shown, merge.conflicts);
            (MergeResult::Merged, merge.state)
        };
        let expected = if is_settled { expected } else { MergeResult::Conflicts };
        assert_eq!(done.result, expected);
        assert_eq!(done.changes, diff::compare(&our, &state));
        if matches!(expected, MergeResult::AlreadyMerged | MergeResult::Conflicts) {
            assert_eq!((done.revision, done.operation), (None, None));
            assert_eq!(self.session.store().tail_bytes().unwrap(), before, "nothing is written");
            return;
        }
        let now = self.now;
        self.naive.operate(Some(into), |naive| {
            let reset = expected == MergeResult::FastForward;
            naive.merge(now, into, state, theirs.unwrap(), reset);
            if !quietly {
                let message = format!("merged {source} into {target}");
                let tags = ["auto".to_owned(), "branch_merged".to_owned()];
                naive.checkpoint(now, naive.branches[into].head, &message, &tags);
            }
        });
        // Merging again changes nothing.
        let again = self.session.merge(&act(self.now), &merging).unwrap();
        assert_eq!((again.result, again.revision), (MergeResult::AlreadyMerged, None));
    }

    fn prune(&mut self, last: u64, manual: bool, revisions: i64) {
        let retention = RetentionPolicy { last, manual, revisions, ..RetentionPolicy::none() };
        let preview = self.session.prune_preview(&retention, time(self.now)).unwrap();
        let pruned = self.session.prune(&act(self.now), &retention).unwrap();
        assert_eq!((&preview.verdicts, &preview.folds), (&pruned.verdicts, &pruned.folds));
        let mut listed: Vec<_> = self.naive.now.checkpoints.iter().collect();
        listed.sort_by_key(|(sequence, one)| std::cmp::Reverse((one.time, **sequence)));
        let goes = |(place, (_, one)): &(u64, (&u64, &super::naive::Named))| {
            let is_merge = one.tags.contains("branch_merged");
            *place >= last.max(1) && !(manual && one.message.starts_with('c')) && !is_merge
        };
        let going: Vec<u64> =
            (0..).zip(listed).filter(goes).map(|(_, (sequence, _))| *sequence).collect();
        let dropped = pruned.verdicts.iter().filter(|one| one.reasons.is_empty());
        assert_eq!(dropped.map(|one| one.checkpoint.sequence).collect::<Vec<_>>(), going);
        let mut folded = Vec::new();
        for fold in &pruned.folds {
            let on =
                |one: &super::naive::Revision| self.naive.branches[one.branch].name == fold.branch;
            let range = self.naive.revisions.range(fold.first..fold.into);
            let these: Vec<u64> = range.filter(|(_, one)| on(one)).map(|(at, _)| *at).collect();
            assert_eq!((these.first(), these.len() as u64), (Some(&fold.first), fold.revisions));
            folded.extend(these);
        }
        assert_eq!(pruned.operation.is_some(), !going.is_empty() || !folded.is_empty());
        if pruned.operation.is_some() {
            self.naive.operate(None, |naive| naive.prune(&going, &folded));
        }
        self.check_folds(&folded, self.now - revisions);
    }

    /// Checks that nothing was folded that must stay, and that everything else was.
    fn check_folds(&self, folded: &[u64], until: i64) {
        let items = self.session.records(1, usize::MAX).unwrap().into_iter();
        let resets: std::collections::BTreeMap<u64, u64> = items
            .filter_map(|item| match item {
                LogItem::Revision(entry) => entry.reset_to.map(|to| (entry.sequence, to)),
                LogItem::Checkpoint(_) | LogItem::Lost(_) => None,
            })
            .collect();
        let mut named = self.naive.named();
        named.extend(resets.iter().flat_map(|(from, to)| [*from, *to]));
        for number in folded {
            assert!(!named.contains(number), "#{number} is named");
            assert!(self.naive.folded[number].effective <= until, "#{number} is young");
        }
        for (number, one) in &self.naive.revisions {
            let after = self.naive.revisions.range(number + 1..);
            let next = after.into_iter().find(|(_, other)| other.branch == one.branch);
            let folds = next.is_some_and(|(next, _)| !resets.contains_key(next));
            let may = one.effective <= until && !named.contains(number);
            assert!(!(may && folds), "#{number} could have been folded");
        }
    }

    fn restore(&mut self, to: u16) {
        let numbers: Vec<u64> = self.naive.revisions.keys().copied().collect();
        let Some(to) = pick(&numbers, to) else { return };
        let resolved = self.session.at_sequence(to).unwrap();
        let done = self.session.restore(&act(self.now), &resolved).unwrap();
        let branch = self.naive.now.current;
        let state = self.naive.revisions[&to].state.clone();
        if state == *self.naive.head(branch) {
            assert_eq!(done.revision, None);
            return;
        }
        let now = self.now;
        let claims = Claims::Reset(Some(to));
        self.naive.operate(Some(branch), |naive| naive.revise(now, branch, state, claims));
    }
}
