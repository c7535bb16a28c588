//! Measures the RocksDB index: `cargo bench --bench index [-- GENERATIONS]`.
//!
//! One generation holds the rows of 300 revisions: for each, an object of 4 KB and 30 rows of 30
//! bytes.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use forge_store::backend::rocks::RocksIndex;
use forge_store::backend::{Index, OBJECTS, RowBatch, ScanDirection, TableId};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

const REVISIONS: u64 = 300;
const ROWS: u64 = 30;

fn main() {
    let generations = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(200);
    let folder = tempfile::Builder::new().prefix("forge-bench-").tempdir_in("target");
    let folder = folder.expect("`target` is writable");
    let path = folder.path().join("index");
    let (mut open, mut write, mut publish) = (Vec::new(), Vec::new(), Vec::new());
    let mut raw = 0;
    for generation in 0..generations {
        let batch = batch(generation);
        raw += batch
            .rows
            .iter()
            .map(|(_, k, v)| k.len() + v.as_ref().map_or(0, Vec::len))
            .sum::<usize>();
        let index = RocksIndex::new(&path);
        let started = Instant::now();
        let mut applier = index.try_writer().expect("it opens").expect("nobody else applies");
        open.push(started.elapsed());
        let started = Instant::now();
        applier.write(batch).expect("it writes");
        write.push(started.elapsed());
        let started = Instant::now();
        applier.publish((generation + 1) * 1000).expect("it publishes");
        publish.push(started.elapsed());
    }
    let total: Vec<_> = (0..open.len()).map(|i| open[i] + write[i] + publish[i]).collect();
    println!("{generations} generations of {REVISIONS} revisions: p50, p90, max in ms");
    show("open", open);
    show("write", write);
    show("publish", publish);
    show("together", total);
    if let Some(written) = written() {
        println!("{written} bytes written for {raw} raw: {:.2}", written as f64 / raw as f64);
    }
    let mut reads = Vec::new();
    let (mut gets, mut scans) = (Vec::new(), Vec::new());
    for i in 0..100 {
        let index = RocksIndex::new(&path);
        let started = Instant::now();
        let snapshot = index.snapshot().expect("it opens");
        reads.push(started.elapsed());
        let key = (i * 7919 % (generations * REVISIONS)).to_be_bytes();
        let started = Instant::now();
        assert!(snapshot.get(OBJECTS, &key).expect("it reads").is_some());
        gets.push(started.elapsed());
        let started = Instant::now();
        let rows = snapshot.scan(TableId(3), &key, &[], ScanDirection::Ascending, 100);
        assert_eq!(rows.expect("it scans").len(), 100);
        scans.push(started.elapsed());
    }
    show("read-only open", reads);
    show("first get of an object", gets);
    show("first scan of 100 rows", scans);
    let (files, bytes) = used(&path);
    println!("{files} files, {bytes} bytes for {raw} raw: {:.3}", bytes as f64 / raw as f64);
    let started = Instant::now();
    assert!(RocksIndex::new(&path).compact().expect("it compacts"));
    let (files, bytes) = used(&path);
    println!(
        "after compact ({:?}): {files} files, {bytes} bytes: {:.3}",
        started.elapsed(),
        bytes as f64 / raw as f64
    );
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    }
}

fn batch(generation: u64) -> RowBatch {
    let mut rows = Vec::new();
    for revision in generation * REVISIONS..(generation + 1) * REVISIONS {
        rows.push((OBJECTS, revision.to_be_bytes().to_vec(), Some(noise(revision, 4096))));
        for row in 0..ROWS {
            // Five tables grow at their end; the keys of the sixth are pseudo-random, like hashes.
            let number = revision * ROWS + row;
            let table = 1 + (row % 6) as u8;
            let key = [revision.to_be_bytes(), number.to_be_bytes()].concat();
            let key = if table == 1 { noise(number, 16) } else { key };
            rows.push((TableId(table), key, Some(noise(number, 14))));
        }
    }
    RowBatch { rows }
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{what:>24} {:8.2} {:8.2} {:8.2}", at(50), at(90), at(100));
}

/// Returns how many bytes this process has written to the disk, if the system counts them.
fn written() -> Option<u64> {
    let counts = fs::read_to_string("/proc/self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

fn used(path: &Path) -> (u64, u64) {
    let mut seen = std::collections::HashSet::new();
    let mut used = (0, 0);
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            let (files, bytes) = self::used(&entry.path());
            used = (used.0 + files, used.1 + bytes);
        } else if seen.insert(about.ino()) {
            used = (used.0 + 1, used.1 + about.len());
        }
    }
    used
}
