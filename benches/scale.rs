//! Measures what grows with the data: long histories, large states, many processes. Prints one JSON
//! line per part.
//!
//! `cargo bench --bench scale -- PART [SIZE]` with PART one of:
//!
//! * `history`: SIZE revisions (1,000,000) of one change of 300 bytes each, with a thousand
//!   revisions and a hundred checkpoints per session. Measures open, state, list and create, next
//!   to the same in a store with one such session; create while changes are applied; peak memory.
//! * `state`: SIZE entities (1,000,000) of about 400 bytes. Measures create, diff, materialize,
//!   fork and restore, next to the same with ten thousand; and create in a store that was just
//!   opened, so that it has cached nothing of the state.
//! * `writers`: eight processes that create at the same time, in one session and in one each,
//!   alternating with one process; bare appends by one and by eight processes; 1 and 64 threads.
//! * `pushes` SIZE: create in one session of a store with SIZE revisions, by turns alone and while
//!   another process pushes another session, which has a thousand revisions.
//! * `killed` SIZE FOLDER: leaves a store of at least SIZE revisions whose writer was killed.
//! * `made` SIZE FOLDER: leaves the two stores that `history` uses; `visits` SIZE FOLDER measures
//!   them in the same way, so that several builds can measure the same stores alternately.
//! * `pusher` 0 FOLDER SESSION: the process that pushes in `pushes`.
//! * `visitor` STEP FOLDER SESSION ROUND [create]: one of the processes that `history` measures.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured"
)]

use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::remote::{MemoryDepot, Remote};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, Session, Store, WriteContext,
};
use serde_json::{Value as Json, json};
use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

#[path = "scale/writers.rs"]
mod writers;

const START_MICROS: i64 = 1_767_225_600_000_000;
/// Revisions of each session in a long history.
const REVISIONS: usize = 1000;
const CHECKPOINTS: usize = 100;
const NOTES: usize = 200;
/// Visits per store in a turn.
const ROUNDS: usize = 40;
/// Turns of each measurement, because the results of two turns differ by a tenth.
const TURNS: usize = 5;
/// Revisions after the newest generation.
const TAIL: usize = 200;

fn act(step: usize) -> WriteContext {
    let micros = START_MICROS + i64::try_from(step).expect("a small number") * 1000;
    WriteContext::asked("bench", Timestamp::from_micros(micros))
}

fn text(seed: usize, bytes: usize) -> String {
    const WORDS: [&str; 8] =
        ["cache", "stale", "lock", "retry", "offset", "frame", "queue", "trace"];
    let mut state = seed as u64 | 1;
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 61) as usize]);
        text.push_str(&format!(" {:x} ", (state >> 40) & 0xffff));
    }
    text
}

fn note(id: usize, seed: usize, bytes: usize) -> ClaimChange {
    let value = Value::from([("description", text(seed, bytes).into())]);
    ClaimChange::put(Key::new(Kind::Note, format!("n{id:07}")), value)
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

fn summary(mut times: Vec<f64>) -> Json {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = ((times.len() as f64 * share) as usize).min(times.len() - 1);
        (times[place] * 1e4).round() / 1e4
    };
    json!({ "p50": at(0.5), "p99": at(0.99), "max": at(1.0) })
}

fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    (kilobytes / 102.4).round() / 10.0
}

/// Returns how long a checkpoint with these changes takes.
fn create(session: &Session, step: usize, changes: impl IntoIterator<Item = ClaimChange>) -> f64 {
    let act = act(step);
    let write = session.write(&act).changes(changes).checkpoint(NewCheckpoint::manual("bench"));
    let (spent, done) = timed(|| write.commit());
    done.expect("a checkpoint");
    spent
}

/// Starts new processes that open each of these stores, alternately, and measure opening, a state,
/// a list and a checkpoint, and the peak memory of the process. Each round uses another moment,
/// from the first to the last, because the cost of a state depends on its distance from a keyframe.
/// The processes are new because in a long-lived process the first allocation also does the delayed
/// work for memory that was freed before: that alone makes opening two to four times as slow. A
/// visit that creates a checkpoint makes the tail longer for later visits, so only the last turn
/// creates.
fn visit(stores: &[(&Path, usize)], session: &str, creates: bool) -> Vec<Json> {
    let program = std::env::current_exe().expect("this program");
    let mut parts: Vec<[Vec<f64>; 5]> = vec![Default::default(); stores.len()];
    // The first round is a warm-up.
    for round in 0..=ROUNDS {
        for ((path, steps), parts) in stores.iter().zip(&mut parts) {
            let mut visitor = Command::new(&program);
            visitor.arg("visitor").arg((steps + TAIL + round).to_string()).arg(path).arg(session);
            visitor.arg(round.to_string()).args(creates.then_some(CREATE));
            let output = visitor.stderr(Stdio::inherit()).output().expect("a visit");
            let found: [Option<f64>; 5] =
                serde_json::from_slice(&output.stdout).expect("times and memory");
            if round > 0 {
                parts.iter_mut().zip(found).for_each(|(part, one)| part.extend(one));
            }
        }
    }
    let summarize = |[open, state, list, created, memory]: [Vec<f64>; 5]| {
        let memory = memory.into_iter().fold(0.0, f64::max);
        let created = (!created.is_empty()).then(|| summary(created));
        let [open, state, list] = [open, state, list].map(summary);
        json!({ "open": open, "at": state, "list": list, "create": created, "visitor_mb": memory })
    };
    parts.into_iter().map(summarize).collect()
}

/// Makes one visit at the moment of this round, and prints its figures. With `creates`, it ends
/// with the checkpoint of this step.
fn visitor(step: usize, path: &Path, session: &str, round: usize, creates: bool) {
    let (open, session) = timed(|| {
        let store = Store::open(path, Options::default()).expect("the store");
        store.session(session).expect("the session")
    });
    let (state, _) = timed(|| {
        let time = act((step - TAIL) * round / (ROUNDS + 1)).now;
        let moment = session.at_time(time).expect("a moment");
        session.state(&moment).expect("a state").claims().len()
    });
    let filter = CheckpointFilter { limit: Some(50), ..CheckpointFilter::default() };
    let (list, _) = timed(|| session.checkpoints(&filter).expect("a list").len());
    let created = creates.then(|| create(&session, step, [note(0, step, 300)]));
    println!("{}", json!([open, state, list, created, peak_megabytes()]));
}

/// Writes a revision of one change, with a checkpoint at every tenth. `number` counts the revisions
/// of the session.
fn record(session: &Session, number: usize, step: usize) {
    let time = act(step);
    let write = session.write(&time).change(note(number % NOTES, step, 300));
    let write = if number.is_multiple_of(REVISIONS / CHECKPOINTS) {
        write.checkpoint(NewCheckpoint::manual("some"))
    } else {
        write
    };
    write.imported().commit().expect("a revision");
}

/// Creates a store with this many sessions of a thousand revisions each.
fn make(path: &Path, sessions: usize) -> (Store, Vec<Session>) {
    let store = Store::create(path, Options::default()).expect("a store");
    let sessions: Vec<Session> = (0..sessions)
        .map(|number| {
            let new = NewSession::imported(format!("s{number}"));
            store.create_session(&act(0), new).expect("a session")
        })
        .collect();
    let count = sessions.len() * REVISIONS;
    for step in 0..count {
        record(&sessions[step % sessions.len()], step / sessions.len(), step);
        if step % 500 == 0 {
            store.maintain(forge_store::store::APPLY_BYTES).expect("maintenance");
        }
    }
    // In each store, the session that is measured has the same number of revisions after the newest
    // generation.
    store.maintain(0).expect("maintenance");
    for number in 0..TAIL {
        record(&sessions[0], number, count + number);
    }
    store.sync().expect("a sync");
    (store, sessions)
}

/// Returns the number of sessions that together have this many revisions.
fn sessions_of(size: usize) -> usize {
    (size / REVISIONS).max(1)
}

/// The argument of visitors that create a checkpoint.
const CREATE: &str = "create";
/// The names of the store with one session and the store with many.
const STORES: [&str; 2] = ["thousand", "all"];

fn made(folder: &Path, size: usize) -> (Store, Vec<Session>) {
    let [thousand, all] = STORES.map(|name| folder.join(name));
    drop(make(&thousand, 1));
    make(&all, sessions_of(size))
}

fn visits(folder: &Path, size: usize) -> Vec<Json> {
    let [thousand, all] = STORES.map(|name| folder.join(name));
    let stores = [(&*thousand, REVISIONS), (&*all, sessions_of(size) * REVISIONS)];
    let turn = |number| visit(&stores, "s0", number == TURNS);
    (1..=TURNS)
        .map(|number| STORES.into_iter().map(str::to_owned).zip(turn(number)).collect())
        .collect()
}

fn history(size: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let count = sessions_of(size);
    let (building, (store, sessions)) = timed(|| made(folder.path(), size));
    let mut result = json!({ "part": "history", "turns": visits(folder.path(), size) });
    result["revisions"] = json!(size);
    result["sessions"] = json!(count);
    result["built_ms"] = json!(building.round());
    let maintainer = store.maintainer();
    let session = &sessions[1 % sessions.len()];
    let beside = (0..2000)
        .map(|step| create(session, count * REVISIONS + TAIL + step, [note(step % 100, step, 300)]))
        .collect();
    drop(maintainer);
    result["create_beside_applying"] = summary(beside);
    result["peak_mb"] = json!(peak_megabytes());
    println!("{result}");
}

/// Returns how fast zstd alone decompresses these entries on one core, in MB/s. Pieces of 64 KiB
/// are compressed one by one, as chunks are.
fn zstd_speed<'a>(entries: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> f64 {
    const PIECE_BYTES: usize = 64 << 10;
    const ENOUGH_BYTES: usize = 20 << 20;
    let mut content = Vec::new();
    for (key, entry) in entries {
        content.extend_from_slice(key);
        content.extend_from_slice(entry);
        if content.len() > ENOUGH_BYTES {
            break;
        }
    }
    let pieces: Vec<_> = content
        .chunks(PIECE_BYTES)
        .map(|piece| zstd::bulk::compress(piece, 3).expect("zstd"))
        .collect();
    let mut context = zstd::bulk::Decompressor::new().expect("zstd");
    let (spent, ()) = timed(|| {
        for piece in &pieces {
            let read = context.decompress(piece, PIECE_BYTES).expect("zstd");
            assert!(!std::hint::black_box(read).is_empty());
        }
    });
    content.len() as f64 / spent / 1e3
}

/// Creates checkpoints of 25 changes each, spread over the state.
fn creates(session: &Session, steps: std::ops::Range<usize>, count: usize) -> Json {
    let changes = |step: usize| {
        (0..25).map(move |n| note((step * 7919 + n * 104_729) % count, step + n, 370))
    };
    summary(steps.map(|step| create(session, step + 2, changes(step))).collect())
}

fn state(size: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut result = json!({ "part": "state", "entities": size });
    for (name, count) in [("ten_thousand", 10_000), ("all", size)] {
        let store = Store::create(&folder.path().join(name), Options::default()).expect("a store");
        let session = store.create_session(&act(0), NewSession::named("s")).expect("a session");
        let changes = (0..count).map(|id| note(id, id, 370));
        let (first, done) = timed(|| session.write(&act(1)).changes(changes).commit());
        done.expect("a revision");
        store.maintain(0).expect("maintenance");
        let maintainer = store.maintainer();
        let written = creates(&session, 0..300, count);
        drop(maintainer);
        store.maintain(0).expect("maintenance");
        let moment = |sequence: u64| session.at_sequence(sequence).expect("a moment");
        let diffs = (200..220)
            .map(|n| {
                timed(|| session.changed_claims(&moment(n), &moment(n + 2)).expect("a diff").len())
                    .0
            })
            .collect();
        let head = session.head().expect("a head");
        let (read, state) = timed(|| session.state(&head).expect("a state"));
        assert_eq!(state.claims().len(), count);
        let bytes: usize =
            state.claims().encoded().map(|(key, entry)| key.len() + entry.len()).sum();
        let zstd = zstd_speed(state.claims().encoded());
        drop(state);
        // This handle has cached nothing, so it must look up the claims that it replaces.
        let other = Store::open(&folder.path().join(name), Options::default()).expect("the store");
        let beside = other.session("s").expect("the session");
        let looked_up = creates(&beside, 300..400, count);
        drop((beside, other));
        let from = moment(100);
        let (fork, done) =
            timed(|| session.create_branch(&act(400), "fork", Some(&from), Default::default()));
        done.expect("a branch");
        let (restore, done) = timed(|| session.restore(&act(401), &from));
        done.expect("a restore");
        result[name] = json!({
            "first_ms": first.round(), "create": written, "create_looked_up": looked_up,
            "diff": summary(diffs),
            "materialize_ms": read, "materialize_mb_s": (bytes as f64 / read / 1e3).round(),
            "zstd_mb_s": zstd.round(), "fork_ms": fork, "restore_ms": restore,
        });
    }
    result["peak_mb"] = json!(peak_megabytes());
    println!("{result}");
}

/// Pushes a session to new remotes in memory, one after the other, with the low priority of `forge
/// push`, until it is killed.
fn pusher(path: &Path, session: &str) -> ! {
    forge_store::admin::lower_priority();
    let store = Store::open(path, Options::default()).expect("the store");
    let session = store.session(session).expect("the session");
    for number in 0.. {
        let depot = Arc::new(MemoryDepot::default());
        let remote = Remote::create(depot, &[7; 32]).expect("a remote");
        store.push(&act(number), &remote, &session).expect("a push");
        println!("{number}");
    }
    unreachable!("the numbers do not end")
}

fn pushes(size: usize) {
    const CREATES: usize = 2000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let (store, sessions) = make(&path, sessions_of(size));
    let new = NewSession::named("own");
    let own = store.create_session(&act(0), new).expect("a session");
    let name = sessions[0].summary().expect("a summary").info.name;
    let mut step = size;
    let mut creates = || {
        let begin = step;
        step += CREATES;
        // Without this, later turns would have a longer tail to apply.
        store.maintain(0).expect("maintenance");
        (begin..step).map(|step| create(&own, step, [note(step % 100, step, 300)])).collect()
    };
    creates();
    let turns: Vec<Json> = (0..TURNS)
        .map(|_| {
            let alone = summary(creates());
            let program = std::env::current_exe().expect("this program");
            let mut pusher = Command::new(program);
            pusher.args(["pusher", "0"]).arg(&path).arg(&name).stdout(Stdio::piped());
            let mut pusher = pusher.spawn().expect("a process");
            // The measurement begins after the first push.
            let output = pusher.stdout.take().expect("a pipe");
            let mut lines = std::io::BufReader::new(output).lines();
            lines.next().expect("a push").expect("a line");
            let beside = summary(creates());
            pusher.kill().expect("the end");
            pusher.wait().expect("the end");
            json!({ "alone": alone, "beside": beside, "pushes": lines.count() })
        })
        .collect();
    println!("{}", json!({ "part": "pushes", "revisions": size, "turns": turns }));
}

/// Creates a store of one session in a folder, and aborts this process, so that the last writes are
/// only in the journal. The store is maintained, as by every long-lived writer. After `size`
/// revisions, writing continues until the tail of the journal is almost as long as when it was last
/// applied.
fn killed(folder: &Path, size: usize) -> ! {
    const STEPS_BETWEEN_LOOKS: usize = 10;
    let store = Store::create(folder, Options::default()).expect("a store");
    let session = store.create_session(&act(0), NewSession::named("s")).expect("a session");
    let (mut applied, mut longest) = (0, 0);
    for step in 0.. {
        if step >= size && step + STEPS_BETWEEN_LOOKS >= applied + longest {
            break;
        }
        let time = act(step);
        let write = session.write(&time).change(note(step % 200, step, 300));
        let write =
            if step % 100 == 0 { write.checkpoint(NewCheckpoint::manual("some")) } else { write };
        write.imported().commit().expect("a revision");
        if step % STEPS_BETWEEN_LOOKS == 0
            && store.maintain(forge_store::store::APPLY_BYTES).expect("maintenance")
        {
            (applied, longest) = (step, step - applied);
        }
    }
    store.sync().expect("a sync");
    std::process::abort()
}

fn main() {
    if let Some(kind) = writers::child_kind() {
        return writers::child(&kind);
    }
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let size = arguments.get(1).and_then(|size| size.parse().ok()).unwrap_or(1_000_000);
    match arguments.first().map(String::as_str) {
        Some("history") => history(size),
        Some("state") => state(size),
        Some("writers") => writers::writers(),
        Some("pushes") => pushes(size),
        Some("pusher") => match arguments.get(2..) {
            Some([path, session]) => pusher(Path::new(path), session),
            _ => eprintln!("scale: pusher 0 FOLDER SESSION"),
        },
        Some("visitor") => match arguments.get(2..) {
            Some([path, session, round, rest @ ..]) => {
                let round = round.parse().expect("a number");
                visitor(size, Path::new(path), session, round, rest == [CREATE]);
            }
            _ => eprintln!("scale: visitor STEP FOLDER SESSION ROUND [{CREATE}]"),
        },
        Some(part @ ("killed" | "made" | "visits")) => match arguments.get(2).map(Path::new) {
            Some(folder) => match part {
                "killed" => killed(folder, size),
                "made" => drop(made(folder, size)),
                _ => println!("{}", json!(visits(folder, size))),
            },
            None => eprintln!("scale: {part} SIZE FOLDER"),
        },
        _ => {
            eprintln!("scale: a part is history, state, writers, pushes, killed, made or visits");
        }
    }
}
