//! Measures how fast secrets are searched, and how many are reported in texts without secrets.
//!
//! `cargo bench --bench redact -- FILE...`: megabytes per second on one core, the best of five
//! passes, for each file as JSON lines (as transcripts are read) and for texts of 200 bytes (as
//! claims are written), and the first 20 findings.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use forge_store::redact::{Redactor, TextForm};
use std::time::Instant;

fn best<T>(passes: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..passes {
        let begun = Instant::now();
        std::hint::black_box(work());
        best = best.min(begun.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    let redactor = Redactor::new();
    let first = best(1, || redactor.find(b"one short text", TextForm::Plain));
    println!("first use: {:.2} ms", first * 1e3);
    for path in std::env::args().skip(1).filter(|arg| !arg.starts_with("--")) {
        let text = std::fs::read(&path).expect("a file that can be read");
        let megabytes = text.len() as f64 / 1e6;
        let whole = best(5, || redactor.find(&text, TextForm::Json));
        let pieces: Vec<&[u8]> = text.chunks(200).collect();
        let small = best(5, || {
            pieces.iter().map(|piece| redactor.find(piece, TextForm::Plain).len()).sum::<usize>()
        });
        let findings = redactor.find(&text, TextForm::Json);
        println!(
            "{path}: {megabytes:.1} MB, {:.0} MB/s whole, {:.0} MB/s in texts of 200 bytes, {} findings",
            megabytes / whole,
            megabytes / small,
            findings.len()
        );
        for found in findings.iter().take(20) {
            let line = text[..found.range.start].iter().filter(|byte| **byte == b'\n').count() + 1;
            println!("  line {line}: {} ({} bytes)", found.kind, found.range.len());
        }
    }
}
