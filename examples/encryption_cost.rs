//! Measures the cost of encryption: writes and reads the same history in a sealed store and in an
//! encrypted one, each step in both before the next one.
//!
//! `cargo run --release --example encryption_cost [ROUNDS]` prints medians and ratios; 5 rounds by
//! default. The times include waits for the disk.

#![allow(clippy::print_stdout, reason = "figures must be seen")]

use forge_store::model::{Fact, FactOrigin, Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Options, Store, WriteContext};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const CLAIMS: usize = 5_000;
const REVISIONS: usize = 200;
const CHANGES: usize = 25;
const FACTS: usize = 10_000;
const STEPS: [&str; 8] = [
    "write a revision of 25 changes",
    "record 10,000 facts",
    "apply all of it to the index",
    "open and read the newest state",
    "read a state at a moment",
    "read 10,000 facts",
    "find a revision by its id",
    "verify, all of it",
];

fn main() -> Outcome {
    let rounds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let mut times = [vec![Vec::new(); STEPS.len()], vec![Vec::new(); STEPS.len()]];
    let mut bytes = [0, 0];
    for _ in 0..rounds {
        let root = std::env::temp_dir().join(format!("forge-cost-{}", std::process::id()));
        let places = [false, true].map(|encrypted| Place::new(&root, encrypted));
        let mut stores = Vec::new();
        for place in &places {
            stores.push(Store::create(&place.path, place.options.clone())?);
        }
        for (step, _) in STEPS.iter().enumerate() {
            for (which, place) in places.iter().enumerate() {
                let store = stores.get(which).ok_or("a store is missing")?;
                let found = run(step, store, place)?;
                times[which][step].extend(found);
            }
        }
        drop(stores);
        for (which, place) in places.iter().enumerate() {
            bytes[which] = size(&place.path)?;
        }
        fs::remove_dir_all(&root)?;
    }
    println!("{:34} {:>12} {:>12} {:>7}", "median", "plain", "encrypted", "ratio");
    for (step, name) in STEPS.iter().enumerate() {
        let [plain, hidden] = [0, 1].map(|which| median(&mut times[which][step]));
        println!("{name:34} {plain:>9.0} us {hidden:>9.0} us {:>7.2}", hidden / plain);
    }
    let [plain, hidden] = bytes.map(|bytes| bytes as f64);
    let ratio = hidden / plain;
    println!("{:34} {plain:>10.0} B {hidden:>10.0} B {ratio:>7.2}", "on disk, compacted");
    Ok(())
}

struct Place {
    path: PathBuf,
    options: Options,
}

impl Place {
    fn new(root: &Path, encrypted: bool) -> Self {
        let keyring = Some(root.join("keyring"));
        let options = Options::default().keyring(keyring).encrypted(encrypted);
        Self { path: root.join(if encrypted { "encrypted" } else { "plain" }), options }
    }
}

fn act(second: usize) -> WriteContext {
    WriteContext::asked(
        "cost",
        Timestamp::from_micros(1_767_261_600_000_000 + second as i64 * 1_000_000),
    )
}

/// A claim of about 300 bytes that does not compress to almost nothing.
fn claim(place: usize, step: usize) -> ClaimChange {
    let hash = blake3::hash(&[place.to_le_bytes(), step.to_le_bytes()].concat()).to_hex();
    let text =
        format!("what is held of {place} since {step}: {hash} {} {hash}", "word ".repeat(12));
    let value = Value::from([("description", text.into()), ("status", "active".into())]);
    ClaimChange::put(Key::new(Kind::Note, format!("note-{place:05}")), value)
}

/// Executes a step, and returns the duration of each of its repetitions in microseconds.
fn run(step: usize, store: &Store, place: &Place) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    let mut timed = |work: &mut dyn FnMut() -> Outcome| -> Outcome {
        let begin = Instant::now();
        work()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        Ok(())
    };
    let session = || store.session("cost");
    match step {
        0 => {
            let session = store.create_session(&act(0), NewSession::named("cost"))?;
            let all = (0..CLAIMS).map(|number| claim(number, 0));
            session.write(&act(1)).changes(all).commit()?;
            for revision in 1..=REVISIONS {
                let now = act(revision + 1);
                let changes =
                    (0..CHANGES).map(|n| claim((revision * 37 + n * 211) % CLAIMS, revision));
                let changes: Vec<_> = changes.collect();
                timed(&mut || {
                    session.write(&now).changes(changes.clone()).commit()?;
                    Ok(())
                })?;
            }
            let named = NewCheckpoint::manual("all of it");
            session.write(&act(REVISIONS + 2)).checkpoint(named).commit()?;
        }
        1 => {
            let session = session()?;
            let facts: Vec<_> = (0..FACTS).map(fact).collect();
            timed(&mut || {
                for part in facts.chunks(500) {
                    session.write(&act(1000)).facts(part.to_vec(), None).commit()?;
                }
                Ok(())
            })?;
        }
        2 => timed(&mut || {
            store.maintain(0)?;
            Ok(())
        })?,
        3 => {
            for _ in 0..9 {
                timed(&mut || {
                    let store = Store::open(&place.path, place.options.clone())?;
                    let session = store.session("cost")?;
                    let state = session.state(&session.head()?)?;
                    (state.claims().len() >= CLAIMS).then_some(()).ok_or("claims are missing")?;
                    Ok(())
                })?;
            }
        }
        4 => {
            let session = session()?;
            for number in (1..REVISIONS as u64).step_by(7) {
                timed(&mut || {
                    session.state(&session.at_sequence(number)?)?;
                    Ok(())
                })?;
            }
        }
        5 => {
            let session = session()?;
            for _ in 0..5 {
                timed(&mut || {
                    let state = session.state(&session.head()?)?;
                    (state.facts_of(Kind::Message)?.len() == FACTS)
                        .then_some(())
                        .ok_or("no facts")?;
                    Ok(())
                })?;
            }
        }
        6 => {
            let session = session()?;
            let head = session.head()?;
            let at = session.state(&head)?.revision()?.ok_or("no revision")?.id.to_string();
            let short = at.get(..10).ok_or("an id is too short")?.to_owned();
            for _ in 0..50 {
                timed(&mut || {
                    let words = forge_store::model::time_grammar::parse_moment(
                        &short,
                        act(0).now,
                        &chrono::Utc,
                    );
                    session.resolve(&words?)?;
                    Ok(())
                })?;
            }
        }
        _ => {
            let keyring = place.options.keyring.as_deref();
            timed(&mut || {
                let depth = forge_store::store::VerifyDepth::ReadData;
                let found = Store::verify(&place.path, depth, act(0).now, keyring)?;
                found.findings.is_empty().then_some(()).ok_or("the store is damaged")?;
                Ok(())
            })?;
            store.compact()?;
        }
    }
    Ok(times)
}

fn fact(number: usize) -> Fact {
    let at = act(300 + number).now;
    let hash = blake3::hash(&number.to_le_bytes()).to_hex();
    let value = Value::from([("text", format!("message {number} says {hash}").into())]);
    let (kind, id, origin) = (Kind::Message, format!("m{number}"), FactOrigin::Recorded);
    Fact { kind, id, at, origin, place: number as u64, recorded_at: at, value }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn size(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        bytes += if is_folder { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
