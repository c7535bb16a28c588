//! Measures the import of transcripts: `cargo bench -p forge-cli --bench import -- speed FILE
//! [RUNS]` and `... -- saves FILE`. Each prints one JSON line.
//!
//! `speed` imports the file into a new store each time: megabytes of transcript per second, by wall
//! clock and by the processor time of all threads, with redaction as in the command. For one core,
//! run it under `taskset -c 0`. `saves` imports the parts in `FILE`'s `.cuts.json`, one after the
//! other, and prints what each added to the disk.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured"
)]

use forge_cli::transcript::{TranscriptImportOptions, TranscriptImporter};
use forge_store::model::Timestamp;
use forge_store::redact::Redactor;
use forge_store::store::{Options, Store, WriteContext};
use forge_testkit::files::bytes_below;
use forge_testkit::process::processor_time;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn import(store: &Store, file: &Path) {
    let now = Timestamp::parse_rfc3339("2026-06-01T00:00:00Z").expect("a time");
    let act = WriteContext::asked("import claude-code", now);
    TranscriptImporter::new(store, &act, TranscriptImportOptions::default(), &|_| {})
        .import_file(file)
        .expect("an import");
}

/// Opens a store like the command, with redaction.
fn create(folder: &Path) -> Store {
    let redaction = Some(Arc::new(Redactor::new()));
    let options = Options::default().redaction(redaction);
    Store::create(folder, options).expect("a store")
}

/// Returns the processor time of this process so far, in seconds.
fn processor() -> f64 {
    processor_time("self") / 1000.0
}

fn speed(file: &Path, runs: usize) -> Value {
    let megabytes = fs::metadata(file).expect("the file").len() as f64 / 1e6;
    let before = processor();
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let folder = tempfile::tempdir().expect("a folder");
            let store = create(&folder.path().join("store"));
            let start = Instant::now();
            import(&store, file);
            start.elapsed().as_secs_f64()
        })
        .collect();
    let spent = processor() - before;
    times.sort_by(f64::total_cmp);
    json!({
        "part": "import",
        "megabytes": megabytes,
        "cores": std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        "mb_s": megabytes / times[times.len() / 2],
        "mb_processor_s": megabytes * runs as f64 / spent.max(0.01),
    })
}

fn saves(file: &Path) -> Value {
    let text = fs::read(file).expect("the file");
    let cuts = fs::read(file.with_extension("cuts.json")).expect("the cuts");
    let cuts: Value = serde_json::from_slice(&cuts).expect("JSON");
    let cuts: Vec<usize> = cuts["cuts"]
        .as_array()
        .expect("cuts")
        .iter()
        .map(|cut| cut["bytes"].as_u64().expect("a length") as usize)
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = create(&path);
    let saved = folder.path().join("session.jsonl");
    let mut rows = Vec::new();
    let (mut used, mut before) = (bytes_below(&path), 0);
    for cut in &cuts {
        fs::write(&saved, &text[..*cut]).expect("a write");
        import(&store, &saved);
        // As after a hook: the tail is applied if it is long.
        store.maintain(forge_store::store::APPLY_BYTES).expect("maintenance");
        let now = bytes_below(&path);
        rows.push(json!({ "bytes": cut, "new": cut - before, "disk": now as i64 - used as i64 }));
        (used, before) = (now, *cut);
    }
    let sessions = store.sessions().expect("sessions");
    let session = store.session(&sessions[0].info.name).expect("the session");
    let agent = sessions[0].info.agent_session.clone().unwrap_or_default();
    let blob = session.stored_bytes(&format!("claude-code:{agent}")).expect("a source");
    store.maintain(0).expect("maintenance");
    let one = zstd::bulk::compress(&text[..before], 3).expect("zstd").len();
    json!({
        "part": "saves",
        "saves": rows,
        "one_copy": one,
        "blob": blob,
        "blob_ratio": blob as f64 / one as f64,
        "store": bytes_below(&path),
        "store_ratio": bytes_below(&path) as f64 / one as f64,
    })
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["speed", file] => println!("{}", speed(Path::new(file), 15)),
        ["speed", file, runs] => {
            println!("{}", speed(Path::new(file), runs.parse().expect("a number")));
        }
        ["saves", file] => println!("{}", saves(Path::new(file))),
        _ => eprintln!("import: name a part: `speed FILE [RUNS]` or `saves FILE`"),
    }
}
