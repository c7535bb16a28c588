//! Replays a recorded session in forge, measured as `peers.py` measures the peers: one JSON line
//! with the same keys.
//!
//! `cargo bench --bench session -- STREAM [FOLDER]`: STREAM is the output of `gen.py`. Every
//! checkpoint is durable before the next (revision and checkpoint in one record, one sync); another
//! thread applies them to the index. Times are in milliseconds. `diff_far` uses nine handles, each
//! of which has read fifty states before, like those of the peers. Additional keys:
//! `create_windows` (the greatest p50 and the greatest p99 of windows of 100), `limit` and
//! `limit_windows` (the same for an append and fdatasync of the bytes that the closed store has per
//! checkpoint), `restore_cold` (each from a store that was just opened), `lookup` (one entity at a
//! past moment), `capture` (a whole snapshot of all entities, 25 of them changed), `syncs` per
//! checkpoint (of the journal, including those of the other thread), `disk_killed` (bytes before
//! the clean close).
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured"
)]

use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Options, Store, WriteContext};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Puts = Vec<(Kind, String, Value)>;

struct Step {
    at: Timestamp,
    puts: Puts,
    message: String,
}

fn read(stream: &Path) -> (Vec<Step>, usize) {
    let file = File::open(stream).unwrap_or_else(|error| panic!("{}: {error}", stream.display()));
    let (mut steps, mut puts) = (Vec::new(), Vec::new());
    let mut state = std::collections::BTreeMap::new();
    for line in BufReader::new(file).lines() {
        let line: Json = serde_json::from_str(&line.expect("a line")).expect("a JSON object");
        if let Some(put) = line.get("put") {
            let word = |name: &str| put[name].as_str().expect("a text").to_owned();
            let kind: Kind = word("kind").parse().expect("a kind");
            let value = serde_json::from_value(put["value"].clone()).expect("a value");
            state.insert((word("kind"), word("id")), put["value"].clone());
            puts.push((kind, word("id"), value));
        } else if let Some(checkpoint) = line.get("checkpoint") {
            let at =
                Timestamp::parse_rfc3339(line["at"].as_str().expect("a time")).expect("a time");
            let message = checkpoint["message"].as_str().unwrap_or_default().to_owned();
            steps.push(Step { at, puts: std::mem::take(&mut puts), message });
        }
    }
    // The size of a state, in JSON with a space after each comma and colon as the peers write it.
    let full = state
        .into_iter()
        .map(|((kind, id), value)| spaced(&json!([kind, id, value])).len() + 2)
        .sum::<usize>();
    (steps, full)
}

fn spaced(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        Json::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("\"{name}\": {}", spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

/// Returns a percentile by the nearest-rank method.
fn at(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn summary(times: &[f64]) -> Json {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    json!({ "p50": round(at(&sorted, 0.5)), "p99": round(at(&sorted, 0.99)), "max": round(at(&sorted, 1.0)) })
}

/// Returns the greatest p50 and the greatest p99 of windows of 100 times, which do not overlap.
fn slowest_window(times: &[f64]) -> Json {
    let windows = times.chunks(100).map(|window| {
        let mut sorted = window.to_vec();
        sorted.sort_by(f64::total_cmp);
        (at(&sorted, 0.5), at(&sorted, 0.99))
    });
    let (p50, p99) =
        windows.fold((0.0, 0.0), |(p50, p99): (f64, f64), (a, b)| (p50.max(a), p99.max(b)));
    json!({ "p50": round(p50), "p99": round(p99) })
}

fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

fn disk(folder: &Path) -> u64 {
    disk_but(folder, &mut BTreeSet::new())
}

/// Returns the bytes below a folder. Each file counts once, because generations share files.
fn disk_but(folder: &Path, counted: &mut BTreeSet<u64>) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(|entry| {
            // A file that is being removed is skipped.
            let (entry, metadata) = entry.and_then(|one| one.metadata().map(|m| (one, m))).ok()?;
            if metadata.is_dir() {
                return Some(disk_but(&entry.path(), counted));
            }
            counted.insert(metadata.ino()).then_some(metadata.len())
        })
        .sum()
}

fn change((kind, id, value): &(Kind, String, Value)) -> ClaimChange {
    ClaimChange::put(Key::new(*kind, id.clone()), value.clone())
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some(stream) = arguments.first() else {
        eprintln!(
            "session: name a stream made by gen.py: cargo bench --bench session -- STREAM [FOLDER]"
        );
        return;
    };
    let (steps, full) = read(Path::new(stream));
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = arguments.get(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let path = folder.join("store");
    let store = Store::create(&path, Options::default()).expect("a store");
    let first = WriteContext::asked("session new", steps[0].at);
    let session = store.create_session(&first, NewSession::named("bench")).expect("a session");
    let maintainer = store.maintainer();
    let (mut creates, mut kept) = (Vec::new(), Vec::new());
    for step in &steps {
        let act = WriteContext::asked("checkpoint create", step.at);
        let changes: Vec<ClaimChange> = step.puts.iter().map(change).collect();
        let checkpoint = NewCheckpoint::manual(step.message.clone()).tags(["bench"]);
        let (time, done) =
            timed(|| session.write(&act).changes(changes).checkpoint(checkpoint).commit());
        // Kept, because malloc delays its work for freed memory until the next allocation: the
        // second checkpoint would pay 3 ms for the ten thousand claims of the first one.
        kept.push(done.expect("a checkpoint"));
        creates.push(time);
    }
    drop(kept);
    let syncs = store.journal_syncs();
    let killed = disk(&path);
    drop(maintainer);
    store.maintain(0).expect("maintenance");
    let closed = disk(&path);
    drop((session, store));

    let store = Store::open(&path, Options::default()).expect("the store");
    let session = store.session("bench").expect("the session");
    let moments: Vec<_> =
        steps.iter().map(|step| session.at_time(step.at).expect("a moment")).collect();
    let mut restores = Vec::new();
    let mut entities = 0;
    for moment in &moments {
        let (time, state) = timed(|| session.state(moment));
        let state = state.expect("a state");
        entities = state.claims().len();
        restores.push(time);
    }
    let cold = moments.iter().step_by(20).map(|moment| {
        let store = Store::open(&path, Options::default()).expect("the store");
        let session = store.session("bench").expect("the session");
        // One-time work of a process is not measured.
        session.head().expect("a head");
        let _ = session.claim(moment, &Key::new(Kind::Note, "none")).expect("an answer");
        timed(|| session.state(moment).expect("a state").claims().len()).0
    });
    let cold: Vec<f64> = cold.collect();
    let mut lookups = Vec::new();
    for (place, moment) in moments.iter().enumerate().skip(1) {
        let (kind, id, _) = &steps[place].puts[0];
        let key = Key::new(*kind, id.clone());
        let (time, found) = timed(|| session.claim(moment, &key));
        assert!(found.expect("an answer").is_some());
        lookups.push(time);
    }
    let mut diffs = Vec::new();
    for pair in moments.windows(2).skip(1) {
        let (time, changed) = timed(|| session.changed_claims(&pair[0], &pair[1]));
        assert!(!changed.expect("a diff").is_empty());
        diffs.push(time);
    }
    // Nine diffs, because two pauses of a busy machine can take as long as one of them. The peers'
    // diff is computed by a process that has read many states before.
    let far: Vec<f64> = (0..9)
        .map(|_| {
            let store = Store::open(&path, Options::default()).expect("the store");
            let session = store.session("bench").expect("the session");
            for moment in moments.iter().step_by(20) {
                assert!(!session.state(moment).expect("a state").claims().is_empty());
            }
            let (time, changed) =
                timed(|| session.changed_claims(&moments[0], &moments[moments.len() - 1]));
            assert!(!changed.expect("a diff").is_empty());
            time
        })
        .collect();

    // Last, because it adds to the history.
    let mut captures = Vec::new();
    let last = session.head().and_then(|head| session.state(&head)).expect("a state");
    let mut whole: Vec<(Key, Value)> = last
        .claims()
        .entries()
        .map(|entry| entry.map(|(key, entry)| (key, entry.value)).expect("an entry"))
        .collect();
    let kinds: BTreeSet<Kind> = whole.iter().map(|(key, _)| key.kind).collect();
    for round in 0..20_usize {
        let act = WriteContext::asked("capture", steps[steps.len() - 1].at);
        for number in 0..25 {
            let place = (round * 7919 + number * 104_729) % whole.len();
            if let Value::Map(fields) = &mut whole[place].1 {
                fields.insert("description".to_owned(), format!("{round} {number}").into());
            }
        }
        let write = session.write(&act).replace_kinds(kinds.clone(), &whole);
        let (time, done) = timed(|| write.commit());
        assert_eq!(done.expect("a capture").changed.len(), 25);
        captures.push(time);
    }

    // The bare cost of the disk. The size of each write is that of the closed store divided by the
    // checkpoints, within limits.
    let mut bare =
        OpenOptions::new().create(true).append(true).open(folder.join("bare")).expect("a file");
    let record = vec![0x5a_u8; (closed as usize / steps.len().max(1)).clamp(512, 65_536)];
    let limits: Vec<f64> = (0..creates.len().min(1000))
        .map(|_| {
            timed(|| {
                bare.write_all(&record).expect("a write");
                bare.sync_data().expect("a sync");
            })
            .0
        })
        .collect();
    let count = steps.len() as f64;
    println!(
        "{}",
        json!({
            "peer": "forge",
            "checkpoints": steps.len(),
            "entities": entities,
            "create": summary(&creates[1..]),
            "create_first": round(creates[0]),
            "create_windows": slowest_window(&creates[1..]),
            "limit": summary(&limits),
            "limit_windows": slowest_window(&limits),
            "restore": summary(&restores),
            "restore_cold": summary(&cold),
            "lookup": summary(&lookups),
            "capture": summary(&captures),
            "syncs": round(syncs as f64 / steps.len() as f64),
            "diff": summary(&diffs),
            "diff_far": summary(&far),
            "disk": closed,
            "disk_killed": killed,
            "full": full,
            "disk_ratio": round(closed as f64 / (count * full as f64) * 10.0) / 10.0,
            "disk_ratio_exact": closed as f64 / (count * full as f64),
        })
    );
}
