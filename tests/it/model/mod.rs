//! Random operations compared with a history that keeps full copies, on every backend.
//! `FORGE_MODEL_CASES` sets the number of histories, `FORGE_SEED` repeats them.

mod keyframes;
mod laws;
mod naive;
mod run;
mod verify;

use crate::fault::law;
use forge_testkit::postgres::PostgresServer;
use proptest::prelude::*;

/// One operation. Its numbers choose among what exists when it is executed.
#[derive(Clone, Debug)]
enum Step {
    /// Puts and removes claims on the current branch in one revision, optionally with facts and a
    /// checkpoint.
    Write {
        claims: Vec<Claim>,
        facts: Vec<Happened>,
        checkpoint: Option<Vec<String>>,
    },
    /// Puts and removes claims after a revision, with a checkpoint: on its branch, or on a new one if
    /// another revision follows already.
    After {
        revision: u16,
        claims: Vec<Claim>,
    },
    /// Makes a checkpoint with a key, which replaces the last one with that key.
    Replace {
        tags: Vec<String>,
    },
    /// Drops a checkpoint.
    Drop {
        checkpoint: u16,
    },
    /// Makes a checkpoint of a past moment.
    Name {
        moment: u16,
        tags: Vec<String>,
    },
    /// Adds a tag to a checkpoint and removes another one.
    Tag {
        checkpoint: u16,
        add: String,
        remove: String,
    },
    /// Creates a branch at the head or at a past revision.
    Fork {
        from: Option<u16>,
    },
    /// Checks out a branch.
    Switch {
        branch: u16,
        quietly: bool,
    },
    /// Restores the claims of a revision.
    Restore {
        to: u16,
    },
    /// Merges a branch into another, optionally with a preference for the target side.
    Merge {
        source: u16,
        target: u16,
        prefer: Option<bool>,
        quietly: bool,
    },
    /// Sets how often a checkpoint is due.
    Schedule {
        seconds: Option<u8>,
    },
    /// Prunes: keeps the newest checkpoints, optionally manual ones, and the revisions of the last
    /// seconds.
    Prune {
        last: u8,
        manual: bool,
        seconds: u16,
    },
    /// Undoes the last operation.
    Undo,
    Redo,
    /// Publishes a generation of the index.
    Publish,
    /// Closes the store and opens it again.
    Reopen,
    /// Compares everything.
    Verify,
}

/// A claim's new text; `None` removes it.
type Claim = (u8, Option<Text>);

/// A text that other claims may have too, or a long one.
#[derive(Clone, Debug)]
enum Text {
    Short(u8),
    Long(u8),
}

impl Text {
    fn text(&self) -> String {
        match self {
            Self::Short(number) => format!("text {number}"),
            Self::Long(number) => format!("{number} ").repeat(2500),
        }
    }
}

/// A version of a fact: its id, how long before now it happened, its place and its origin.
#[derive(Clone, Debug)]
struct Happened {
    id: u8,
    prompt: bool,
    before: u16,
    place: u8,
    hook: bool,
}

/// A step in one of several sessions, this long after the one before (before it, if the clock is
/// set back).
#[derive(Clone, Debug)]
struct Timed {
    session: u8,
    seconds: i16,
    step: Step,
}

fn tag() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["red", "green", "blue"]).prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = Step> {
    let text =
        prop_oneof![9 => (0..4_u8).prop_map(Text::Short), 1 => any::<u8>().prop_map(Text::Long)];
    let claim = (0..8_u8, prop::option::weighted(0.75, text));
    let after = claim.clone();
    let fact = (0..4_u8, any::<bool>(), 0..300_u16, 0..3_u8, any::<bool>())
        .prop_map(|(id, prompt, before, place, hook)| Happened { id, prompt, before, place, hook });
    let tags = || prop::collection::vec(tag(), 0..3);
    prop_oneof![
        12 => (
            prop::collection::vec(claim, 0..5),
            prop::collection::vec(fact, 0..3),
            prop::option::weighted(0.3, tags()),
        )
            .prop_map(|(claims, facts, checkpoint)| Step::Write { claims, facts, checkpoint }),
        4 => (any::<u16>(), prop::collection::vec(after, 0..4))
            .prop_map(|(revision, claims)| Step::After { revision, claims }),
        3 => tags().prop_map(|tags| Step::Replace { tags }),
        2 => any::<u16>().prop_map(|checkpoint| Step::Drop { checkpoint }),
        2 => (any::<u16>(), tags()).prop_map(|(moment, tags)| Step::Name { moment, tags }),
        1 => (any::<u16>(), tag(), tag())
            .prop_map(|(checkpoint, add, remove)| Step::Tag { checkpoint, add, remove }),
        2 => prop::option::of(any::<u16>()).prop_map(|from| Step::Fork { from }),
        3 => (any::<u16>(), any::<bool>())
            .prop_map(|(branch, quietly)| Step::Switch { branch, quietly }),
        2 => any::<u16>().prop_map(|to| Step::Restore { to }),
        3 => (any::<u16>(), any::<u16>(), prop::option::weighted(0.7, any::<bool>()), any::<bool>())
            .prop_map(|(source, target, prefer, quietly)| {
                Step::Merge { source, target, prefer, quietly }
            }),
        1 => prop::option::of(1..200_u8).prop_map(|seconds| Step::Schedule { seconds }),
        2 => (0..4_u8, any::<bool>(), 0..400_u16)
            .prop_map(|(last, manual, seconds)| Step::Prune { last, manual, seconds }),
        5 => Just(Step::Undo),
        3 => Just(Step::Redo),
        2 => Just(Step::Publish),
        1 => Just(Step::Reopen),
        1 => Just(Step::Verify),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Timed>> {
    let seconds = prop_oneof![8 => 1..100_i16, 1 => -200..0_i16, 1 => Just(0)];
    let timed = (0..2_u8, seconds, step()).prop_map(|(session, seconds, step)| Timed {
        session,
        seconds,
        step,
    });
    prop::collection::vec(timed, 1..40)
}

/// Compares random histories of a store with full copies.
fn equals_full_copies(store: &str, usual: u64, place: impl Fn() -> run::Place) {
    let config = law(&format!("{store} equals full copies"), "FORGE_MODEL_CASES", usual);
    proptest!(config, |(steps in steps())| run::run(&mut place(), &steps));
}

#[test]
fn a_store_in_memory_equals_full_copies_of_every_moment() {
    equals_full_copies("a store in memory", 150, run::Place::memory);
}

#[test]
fn an_encrypted_store_equals_full_copies_of_every_moment() {
    equals_full_copies("an encrypted store", 12, run::Place::encrypted);
}

#[test]
fn a_store_in_files_equals_full_copies_of_every_moment() {
    equals_full_copies("a store in files", 24, run::Place::files);
}

#[test]
fn a_store_in_a_database_equals_full_copies_of_every_moment() {
    let Some(server) = PostgresServer::start("model") else { return };
    equals_full_copies("a store in a database", 8, || run::Place::database(&server.new_database()));
}

/// Regression: a merge was undone and redone, and the other branch was reset to the undo. The
/// merged revision is an ancestor of the merge, and the merge is an ancestor of the undo, which
/// does not contain it. The model took the revision for merged; with one more branch, so did the
/// store.
#[test]
fn a_merge_that_was_undone_and_redone_is_known_to_later_merges() {
    let write = |claim: Option<u8>| {
        let claims = claim.map(|claim| (claim, Some(Text::Short(0)))).into_iter().collect();
        Step::Write { claims, facts: Vec::new(), checkpoint: None }
    };
    let merge = |source, target| Step::Merge { source, target, prefer: None, quietly: false };
    let fork = || Step::Fork { from: None };
    let steps = [
        write(Some(0)),
        write(Some(1)),
        fork(),
        fork(),
        write(Some(2)),
        merge(16476, 707),
        Step::Undo,
        Step::Redo,
        Step::Restore { to: 12592 },
        Step::Switch { branch: 0, quietly: false },
        fork(),
        fork(),
        write(None),
        merge(57883, 64852),
    ];
    let steps: Vec<Timed> =
        steps.map(|step| Timed { session: 0, seconds: 1, step }).into_iter().collect();
    run::run(&mut run::Place::memory(), &steps);
    run::run(&mut run::Place::files(), &steps);
}
