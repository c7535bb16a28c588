//! Message threads: `cargo bench -p forge-systems --bench threads [-- MESSAGES]`.
//!
//! Measures sanitising a history of 10,000 messages, without and with faults, from JSON text to
//! JSON text; and a durable append of one message to a thread of that length, next to a bare append
//! and fdatasync of the same number of bytes.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use forge_store::model::Timestamp;
use forge_store::store::{Options as StoreOptions, Store, WriteContext};
use forge_systems::thread::{AppendOptions, SanitizeOptions, Thread, sanitize_history};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

const APPENDS: usize = 200;

fn main() {
    let messages = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(10_000);
    for form in ["openai_chat", "anthropic"] {
        let clean = history(form, messages);
        let bytes: usize = clean.iter().map(String::len).sum();
        // Drops every seventh message.
        let torn: Vec<&String> =
            clean.iter().enumerate().filter(|(at, _)| at % 7 != 2).map(|(_, text)| text).collect();
        println!("{form}: {messages} messages, {:.1} MB: p50, p90, max in ms", bytes as f64 / 1e6);
        show("  clean", timed(20, || drop(sanitize_history(&clean, &SanitizeOptions::default()))));
        show("  torn", timed(20, || drop(sanitize_history(&torn, &SanitizeOptions::default()))));
    }
    let folder = tempfile::Builder::new().prefix("forge-bench-").tempdir_in("target");
    let folder = folder.expect("`target` is writable");
    let store =
        Store::create(&folder.path().join("store"), StoreOptions::default()).expect("a new store");
    let act = WriteContext::asked("thread append", Timestamp::from_micros(1_767_261_600_000_000));
    let thread = Thread::open_or_create(&store, &act, "t").expect("a new thread");
    for part in history("openai_chat", messages).chunks(500) {
        thread.append(&act, part, &AppendOptions::default()).expect("it appends");
    }
    store.maintain(0).expect("it applies");
    let message = history("openai_chat", 1);
    let path = folder.path().join("bare");
    let mut bare = OpenOptions::new().create(true).append(true).open(&path).expect("a new file");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Alternately, so that both have the same disk conditions.
    for _ in 0..APPENDS {
        ours.extend(timed(1, || {
            thread.append(&act, &message, &AppendOptions::default()).expect("it appends");
        }));
        theirs.extend(timed(1, || {
            bare.write_all(&[b'x'; 700]).and_then(|()| bare.sync_data()).expect("it writes");
        }));
    }
    println!("one message appended to a thread of {messages}: p50, p90, max in ms");
    let (ours, theirs) = (show("  forge", ours), show("  bare disk", theirs));
    println!("  ratio of the p50s: {:.2}", ours.as_secs_f64() / theirs.as_secs_f64());
}

/// A history of turns with five messages: a question, a call, its result, and two answers.
fn history(form: &str, count: usize) -> Vec<String> {
    let text = "It was seen before, and is written here so that the message has a usual length. "
        .repeat(3);
    let message = |at: usize| {
        let (turn, id) = (at / 5, format!("call_{}", at / 5));
        match (form, at % 5) {
            (_, 0) => format!(r#"{{"role":"user","content":"question {turn}: {text}"}}"#),
            ("anthropic", 1) => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"{id}","name":"f","input":{{"q":{turn}}}}}]}}"#
            ),
            ("anthropic", 2) => format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}"#
            ),
            (_, 1) => format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{\"q\":{turn}}}"}}}}]}}"#
            ),
            (_, 2) => format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#),
            _ => format!(r#"{{"role":"assistant","content":"answer {turn}: {text}"}}"#),
        }
    };
    (0..count).map(message).collect()
}

fn timed(times: usize, mut work: impl FnMut()) -> Vec<Duration> {
    (0..times)
        .map(|_| {
            let since = Instant::now();
            work();
            since.elapsed()
        })
        .collect()
}

fn show(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{what:<12} {:8.3} {:8.3} {:8.3}", ms(at(50)), ms(at(90)), ms(at(100)));
    at(50)
}
