//! Clones that write, push, pull, purge, sweep and tidy in random order, on a depot that loses
//! requests and answers, refuses, stands still and outlives killed processes. What all of them must
//! have in common is checked during each history and at its end.
//!
//! The histories take turns with three mixes of what clones do. The faults that are planted need
//! several rare events in one history, so each is looked for with the mix that makes these likely.
//!
//! `FORGE_REMOTE_HISTORIES` sets the number of histories, `FORGE_SEED` repeats them. A history takes
//! about 0.35 s of one core in a release build.
#![allow(clippy::print_stderr, reason = "a seed must be seen")]

mod between;
mod depot;
mod law;
mod mix;
mod scale;
mod task;
mod world;

use crate::fault::{SeededNumbers, count};
use depot::Planted;
use mix::Mix;
use world::World;

/// The number of turns of a history.
const TURNS: usize = 200;
/// A planted fault must be found in one of this many histories. Each fault shows in at least one of
/// ten.
const PLANTED_HISTORIES: u64 = 60;

/// Runs a history. The error names the law that was broken, and lists everything that was done.
fn history(seed: u64, planted: Planted, mix: Mix) -> Result<World, String> {
    let mut world = World::new(seed, planted, mix);
    let mut done = Ok(());
    for _ in 0..TURNS {
        done = done.and_then(|()| world.take_turn());
    }
    match done.and_then(|()| world.finish()) {
        Ok(()) => Ok(world),
        Err(error) => Err(format!("{}\nhistory {seed}: {error}", world.log)),
    }
}

#[test]
fn clones_agree_despite_lost_requests_and_answers() {
    let seed = count("FORGE_SEED", 1);
    let histories = count("FORGE_REMOTE_HISTORIES", 30);
    let mut seeds = SeededNumbers(seed);
    let (mut operations, mut purged) = (0, 0);
    let mut broken = Vec::new();
    for number in 0..histories {
        let mix = Mix::ALL[number as usize % Mix::ALL.len()];
        match history(seeds.next(), Planted::Nothing, mix) {
            Ok(world) => {
                let known = world.acknowledged.iter();
                operations += known.map(|known| known.operations.len()).sum::<usize>();
                purged += world.secrets.iter().filter(|one| one.purged.is_some()).count();
            }
            Err(fault) => broken.push(fault),
        }
    }
    if let Some(first) = broken.first() {
        let all: Vec<_> = broken.iter().filter_map(|fault| fault.lines().last()).collect();
        panic!("{first}\n\nof FORGE_SEED={seed}, broken:\n{}", all.join("\n"));
    }
    eprintln!("clones: FORGE_SEED={seed}");
    eprintln!(
        "remotes: {histories} histories with {operations} operations and {purged} purged secrets, \
         all as promised"
    );
    assert!(operations > 10 * histories as usize, "{operations} operations");
}

#[test]
fn the_simulation_finds_planted_faults() {
    for planted in Planted::FAULTS {
        let mut seeds = SeededNumbers(count("FORGE_SEED", 1));
        let found = (0..PLANTED_HISTORIES).find_map(|tried| {
            let broken = history(seeds.next(), planted, Mix::showing(planted)).err()?;
            Some((tried, broken))
        });
        let (tried, found) = found.unwrap_or_else(|| panic!("{planted:?} was not found"));
        let found = found.lines().last().unwrap_or_default();
        eprintln!("planted {planted:?}: found in history {}, {found}", tried + 1);
    }
}
