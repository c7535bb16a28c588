//! Measures workflow runs: the time to record a step, compared with the bare disk, to resume a run,
//! and to read one output. PostgreSQL does the same work with a table of checkpoints, each with the
//! whole state of an item. Prints a JSON line for each part, and the ratios after it.
//!
//! `cargo bench -p forge-systems --bench runs -- [ITEMS] [RECORDS]`: the run that is resumed has
//! ITEMS items (100,000 by default) of 10 steps each; RECORDS steps (3,000 by default) are recorded
//! one by one. PostgreSQL is started in a temporary folder, by the user `postgres` if the current
//! user is root. If it cannot be started, its measurements are skipped with a message.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured"
)]

use forge_store::model::{Timestamp, Value};
use forge_store::store::{Options, Store, WriteContext};
use forge_systems::run::{NextStep, StepRecord, WorkflowRun};
use serde_json::{Value as Json, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const START_MICROS: i64 = 1_767_225_600_000_000;
/// The number of steps of each item.
const STEPS: usize = 10;
/// The number of rounds. In each, the disk, forge and PostgreSQL do a part of the work, so that all
/// have the same conditions.
const ROUNDS: usize = 3;
/// The number of outputs that are read.
const LOOKUPS: usize = 2000;

fn act(at: usize) -> WriteContext {
    let micros = START_MICROS + i64::try_from(at).expect("a small number") * 1000;
    WriteContext::asked("run record", Timestamp::from_micros(micros))
}

fn output(item: usize, step: usize) -> String {
    format!(
        "Summary of item {item} after step {step}: a role for somebody who writes tests, {}",
        item * 7919 + step
    )
}

fn record(item: usize, step: usize) -> StepRecord {
    StepRecord {
        item: item.to_string(),
        step: (3335 + step).to_string(),
        output: output(item, step),
        next: if step + 1 == STEPS {
            NextStep::Terminal
        } else {
            NextStep::Step((3336 + step).to_string())
        },
        ..StepRecord::default()
    }
}

/// Returns how long the work took, in milliseconds, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

/// Returns the time that this share of the times does not exceed, rounded to 0.1 microseconds.
fn quantile(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times.get(place).map_or(f64::NAN, |time| (time * 1e4).round() / 1e4)
}

fn summary(times: &[f64]) -> Json {
    json!({ "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "max": quantile(times, 1.0) })
}

/// Appends this number of bytes `count` times, with a sync after each. Returns the times in
/// milliseconds: a lower limit for every store.
fn disk(path: &Path, bytes: usize, count: usize) -> Vec<f64> {
    let mut file = File::options().create(true).append(true).open(path).expect("a file");
    let bytes = vec![7; bytes];
    let one = || {
        file.write_all(&bytes).expect("room");
        file.sync_data().expect("a sync");
    };
    let mut one = one;
    (0..count).map(|_| timed(&mut one).0).collect()
}

/// A temporary PostgreSQL server.
struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    as_root: bool,
}

impl Postgres {
    /// Starts a server. The error is the reason for which it cannot be started.
    fn start() -> Result<Self, String> {
        let programs = fs::read_dir("/usr/lib/postgresql")
            .ok()
            .and_then(|found| found.flatten().map(|entry| entry.path().join("bin")).max())
            .filter(|bin| bin.join("initdb").exists())
            .ok_or("no PostgreSQL in /usr/lib/postgresql")?;
        let user = Command::new("id").arg("-u").output().map_err(|error| error.to_string())?;
        let as_root = String::from_utf8_lossy(&user.stdout).trim() == "0";
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        if as_root {
            // PostgreSQL refuses to run as root.
            let owned = Command::new("chown").arg("postgres").arg(folder.path()).status();
            if !owned.is_ok_and(|status| status.success()) {
                return Err("there is no user 'postgres', and it does not run as root".to_owned());
            }
        }
        let this = Self { programs, folder, as_root };
        let data = this.folder.path().join("data");
        let data = data.to_str().ok_or("a folder with an odd name")?;
        this.run("initdb", &["-D", data, "-A", "trust", "-U", "bench", "--no-sync"])?;
        let socket = this.folder.path().display();
        let options = format!("-c listen_addresses='' -c unix_socket_directories='{socket}'");
        let log = this.folder.path().join("log");
        let log = log.to_str().ok_or("a folder with an odd name")?;
        this.run("pg_ctl", &["-D", data, "-w", "-l", log, "-o", &options, "start"])?;
        Ok(this)
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        if self.as_root {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        }
    }

    fn run(&self, program: &str, args: &[&str]) -> Result<(), String> {
        let log =
            File::create(self.folder.path().join("setup")).map_err(|error| error.to_string())?;
        let status = self.command(program).args(args).stdout(log).stderr(Stdio::inherit()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} ended with {status}")),
            Err(error) => Err(format!("{program}: {error}")),
        }
    }

    /// Runs statements one by one, each in its own transaction. Returns the times that the client
    /// measured, in milliseconds.
    fn times(&self, statements: &str) -> Vec<f64> {
        let mut child = self
            .command("psql")
            .args(["-X", "-q", "-h"])
            .arg(self.folder.path())
            .args(["-U", "bench", "-d", "postgres", "-v", "ON_ERROR_STOP=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql");
        let mut input = child.stdin.take().expect("a pipe");
        let script = format!("\\timing on\n{statements}");
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
        let output = child.wait_with_output().expect("an end");
        writer.join().expect("it only writes").expect("psql reads");
        assert!(output.status.success(), "psql refused a statement");
        let text = String::from_utf8_lossy(&output.stdout);
        let time =
            |line: &str| line.strip_prefix("Time: ")?.split_whitespace().next()?.parse().ok();
        text.lines().filter_map(time).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.path().join("data");
        let stopped =
            self.run("pg_ctl", &["-D", &data.display().to_string(), "-m", "fast", "stop"]);
        if let Err(error) = stopped {
            eprintln!("runs: PostgreSQL was not stopped: {error}");
        }
    }
}

/// The table of checkpoints with its indexes.
const TABLE: &str = "CREATE TABLE posting_state_checkpoints (checkpoint_id SERIAL PRIMARY KEY, posting_id INTEGER NOT NULL, \
workflow_run_id INTEGER, conversation_id INTEGER, execution_order INTEGER, state_snapshot JSONB NOT NULL, created_at \
TIMESTAMP DEFAULT clock_timestamp());
CREATE INDEX ON posting_state_checkpoints(posting_id);
CREATE INDEX ON posting_state_checkpoints(workflow_run_id);
CREATE INDEX ON posting_state_checkpoints USING GIN((state_snapshot->'outputs'));
";

/// The checkpoint of an item after a step, with all outputs so far.
fn insert(item: usize, step: usize) -> String {
    let outputs: serde_json::Map<String, Json> =
        (0..=step).map(|step| ((3335 + step).to_string(), output(item, step).into())).collect();
    let path: Vec<usize> = (0..=step).map(|step| 3335 + step).collect();
    let snapshot = json!({
        "posting_id": item, "current_conversation_id": 3336 + step, "outputs": outputs,
        "execution_sequence": path, "is_terminal": step + 1 == STEPS, "workflow_run_id": 1,
    });
    format!(
        "INSERT INTO posting_state_checkpoints (posting_id, workflow_run_id, conversation_id, execution_order, \
         state_snapshot) VALUES ({item}, 1, {}, {step}, '{snapshot}');\n",
        3335 + step
    )
}

fn ratio(what: &str, ours: f64, theirs: f64, beside: &str) {
    println!("{what}: {ours:.4} ms, {beside} {theirs:.4} ms, ratio {:.3}", ours / theirs);
}

fn records(folder: &Path, postgres: Option<&Postgres>, count: usize) {
    let store = Store::create(&folder.join("records"), Options::default()).expect("a store");
    let run = WorkflowRun::open_or_create(&store, &act(0), "records").expect("a run");
    let maintainer = store.maintainer();
    let (mut bare, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(postgres) = postgres {
        postgres.times(TABLE);
    }
    for round in 0..ROUNDS {
        let steps: Vec<(usize, usize)> =
            (0..count / ROUNDS).map(|n| (round * count + n / STEPS, n % STEPS)).collect();
        // About the number of bytes that the journal writes for one record.
        bare.extend(disk(&folder.join("bare"), 1000, steps.len()));
        for (n, (item, step)) in steps.iter().enumerate() {
            let (act, record) = (act(round * count + n), record(*item, *step));
            let (time, done) = timed(|| run.record(&act, &record));
            done.expect("a record");
            ours.push(time);
        }
        if let Some(postgres) = postgres {
            let script: String = steps.iter().map(|(item, step)| insert(*item, *step)).collect();
            theirs.extend(postgres.times(&script));
        }
    }
    drop(maintainer);
    println!(
        "{}",
        json!({ "part": "record", "records": ours.len(), "disk": summary(&bare), "forge": summary(&ours),
                "postgresql": (!theirs.is_empty()).then(|| summary(&theirs)) })
    );
    ratio("record p50", quantile(&ours, 0.5), quantile(&bare, 0.5), "bare disk");
    if !theirs.is_empty() {
        ratio("record p50", quantile(&ours, 0.5), quantile(&theirs, 0.5), "PostgreSQL");
    }
}

fn resume(folder: &Path, postgres: Option<&Postgres>, items: usize) {
    let path = folder.join("resume");
    let (building, ()) = timed(|| {
        let store = Store::create(&path, Options::default()).expect("a store");
        let run = WorkflowRun::open_or_create(&store, &act(0), "large").expect("a run");
        let named = (0..items).map(|item| Value::from([("item", item.to_string().into())]));
        run.start(&act(0), Some(&Value::List(named.collect()))).expect("a start");
        let maintainer = store.maintainer();
        for item in 0..items {
            let steps: Vec<StepRecord> = (0..STEPS).map(|step| record(item, step)).collect();
            run.record_all(&act(item), &steps).expect("a record");
        }
        drop(maintainer);
        store.maintain(0).expect("maintenance");
    });
    let mut ours = Vec::new();
    for _ in 0..3 {
        let (time, held) = timed(|| {
            let store = Store::open(&path, Options::default()).expect("the store");
            WorkflowRun::open(&store, "large")
                .and_then(|run| run.resume())
                .expect("a run to go on with")
        });
        assert_eq!(held.items.len(), items);
        assert!(held.items.iter().all(|one| one.outputs.len() == STEPS));
        ours.push(time);
    }
    let store = Store::open(&path, Options::default()).expect("the store");
    let run = WorkflowRun::open(&store, "large").expect("the run");
    let place = |n: usize| ((n * 7919) % items, n % STEPS);
    let lookup = |n: usize| {
        let (item, step) = place(n);
        let (item, name) = (item.to_string(), (3335 + step).to_string());
        let (time, found) = timed(|| run.output(&item, &name).expect("an output"));
        assert_eq!(found.content, output(place(n).0, step));
        time
    };
    let lookups: Vec<f64> = (0..LOOKUPS).map(lookup).collect();
    let mut line = json!({
        "part": "resume", "items": items, "steps": STEPS, "built_s": (building / 1e3).round(),
        "forge": { "resume": summary(&ours), "output": summary(&lookups) },
    });
    let theirs = postgres.map(|postgres| {
        postgres.times("TRUNCATE posting_state_checkpoints;\n");
        let load = format!(
            "INSERT INTO posting_state_checkpoints (posting_id, workflow_run_id, conversation_id, execution_order, \
             state_snapshot) SELECT i, 1, 3335 + s, s, jsonb_build_object('posting_id', i, 'current_conversation_id', \
             3336 + s, 'outputs', (SELECT jsonb_object_agg((3335 + n)::text, format('Summary of item %s after step %s: a \
             role for somebody who writes tests, %s', i, n, i * 7919 + n)) FROM generate_series(0, s) n), \
             'execution_sequence', (SELECT jsonb_agg(3335 + n) FROM generate_series(0, s) n), 'is_terminal', s = {last}, \
             'workflow_run_id', 1) FROM generate_series(0, {most}) i, generate_series(0, {last}) s;\nANALYZE;\n",
            last = STEPS - 1,
            most = items - 1,
        );
        let loading: f64 = postgres.times(&load).iter().sum();
        let all = "\\o /dev/null\nSELECT DISTINCT ON (posting_id) posting_id, state_snapshot, created_at FROM \
                   posting_state_checkpoints WHERE workflow_run_id = 1 ORDER BY posting_id, created_at DESC;\n";
        // psql prints the times even if the output of the query is redirected.
        let resumes: Vec<f64> = (0..3).flat_map(|_| postgres.times(all)).collect();
        let query = |n: usize| {
            let (item, step) = place(n);
            let key = 3335 + step;
            format!(
                "SELECT state_snapshot->'outputs'->'{key}' FROM posting_state_checkpoints WHERE posting_id = {item} AND \
                 state_snapshot->'outputs' ? '{key}' ORDER BY created_at DESC LIMIT 1;\n"
            )
        };
        let script: String = (0..LOOKUPS).map(query).collect();
        let found = postgres.times(&format!("\\o /dev/null\n{script}"));
        line["postgresql"] = json!({
            "loaded_s": (loading / 1e3).round(), "resume": summary(&resumes), "output": summary(&found),
        });
        (quantile(&resumes, 0.5), quantile(&found, 0.5))
    });
    println!("{line}");
    let (own, one) = (quantile(&ours, 0.5), quantile(&lookups, 0.5));
    println!("resume: {own:.1} ms of 2000 wanted; one output: {one:.4} ms of 1 wanted");
    if let Some((resumes, found)) = theirs {
        ratio("resume", own, resumes, "PostgreSQL");
        ratio("one output p50", one, found, "PostgreSQL");
    }
}

fn main() {
    let numbers: Vec<usize> =
        std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let postgres = Postgres::start();
    if let Err(why) = &postgres {
        eprintln!("runs: WITHOUT PostgreSQL: {why}");
    }
    let postgres = postgres.ok();
    records(folder.path(), postgres.as_ref(), numbers.get(1).copied().unwrap_or(3000).max(ROUNDS));
    let items = numbers.first().copied().unwrap_or(100_000).max(1);
    resume(folder.path(), postgres.as_ref(), items);
}
