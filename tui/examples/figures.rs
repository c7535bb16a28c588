//! Measures the browser: the first screen, the time from a keystroke to a drawn frame while another
//! process writes, and memory.
//!
//! ```text
//! cargo run --release -p forge-tui --example figures -- make FOLDER REVISIONS
//! cargo run --release -p forge-tui --example figures -- first FOLDER
//! cargo run --release -p forge-tui --example figures -- keys FOLDER
//! cargo run --release -p forge-tui --example figures -- story FOLDER
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints what it found")]

use forge_store::model::{Fact, FactOrigin, Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Options, Store, WriteContext};
use forge_tui::action::BrowserAction;
use forge_tui::answer::WorkerReply;
use forge_tui::app::{App, DisplayZone};
use forge_tui::effect::{AppEffect, WorkerRequest};
use forge_tui::key::KeyChord;
use forge_tui::update::{begin, update};
use forge_tui::view;
use forge_tui::worker::StoreWorker;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

type Fault = Box<dyn std::error::Error>;

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", folder, count] => make(Path::new(folder), count.parse()?),
        ["write", folder] => write(Path::new(folder)),
        ["first", folder] => first(Path::new(folder)),
        ["keys", folder] => keys(Path::new(folder)),
        ["story", folder] => story(Path::new(folder)),
        _ => {
            eprintln!("figures: make FOLDER REVISIONS, or first, keys or story FOLDER");
            Ok(())
        }
    }
}

/// The time at which the generated session begins, in microseconds.
const START: i64 = 1_741_683_850_000_000;
/// The time between two generated revisions: 100,000 revisions take about 12 days.
const STEP_MICROS: i64 = 10_000_000;

/// Creates a store with one session of this many revisions.
fn make(folder: &Path, count: u64) -> Result<(), Fault> {
    let store = Store::create(folder, Options::default())?;
    let time = |number: u64| Timestamp::from_micros(START + number as i64 * STEP_MICROS);
    let act = WriteContext::asked("session new", time(0));
    let session = store.create_session(&act, NewSession::named("figures"))?;
    let maintainer = store.maintainer();
    for number in 0..count {
        let act = WriteContext::asked("hypothesis edit", time(number));
        let id = format!("H{}", number % 200);
        let value = Value::from([
            ("description", format!("what was thought at step {number}").into()),
            ("confidence", ((number % 100) as f64 / 100.0).into()),
        ]);
        let key = Key::new(Kind::Hypothesis, id);
        let mut write = session.write(&act).change(ClaimChange::put(key, value)).imported();
        if number % 20 == 0 {
            let status = if number % 60 == 0 { "failed" } else { "passed" };
            let value = Value::from([("name", "tests".into()), ("status", status.into())]);
            let fact = Fact {
                kind: Kind::Verification,
                id: format!("v{number}"),
                at: act.now,
                origin: FactOrigin::Recorded,
                place: number,
                recorded_at: act.now,
                value,
            };
            let checkpoint = NewCheckpoint::manual(format!("step {number}")).tags(["step"]);
            write = write.fact(fact).checkpoint(checkpoint);
        }
        write.commit()?;
    }
    drop(maintainer);
    store.sync()?;
    store.maintain(0)?;
    Ok(())
}

/// Commits at most 50 revisions per second until the standard input ends.
fn write(folder: &Path) -> Result<(), Fault> {
    let store = Store::open(folder, Options::default())?;
    let session = store.session("figures")?;
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = sender.send(());
    });
    let mut number = 0_u64;
    while ended.recv_timeout(Duration::from_millis(20)).is_err() {
        number += 1;
        let act = WriteContext::asked("note add", now());
        let value = Value::from([("description", number.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "live"), value);
        session.write(&act).change(change).commit()?;
    }
    println!("wrote {number} revisions meanwhile");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is an edge")]
fn now() -> Timestamp {
    chrono::Utc::now().into()
}

/// The browser with its two workers in threads, drawn to a terminal backend.
struct BrowserRun<W: Write> {
    app: App,
    requests: Sender<(u64, WorkerRequest)>,
    slow_requests: Sender<(u64, WorkerRequest)>,
    replies: Receiver<WorkerReply>,
    terminal: Terminal<CrosstermBackend<W>>,
}

impl<W: Write> BrowserRun<W> {
    fn new(store: Store, out: W) -> Result<Self, Fault> {
        let (requests, wanted) = mpsc::channel();
        let (sender, replies) = mpsc::channel();
        let (slow_requests, slow_wanted) = mpsc::channel();
        let slow_sender = sender.clone();
        let worker = StoreWorker::new(store.clone(), DisplayZone::Local);
        std::thread::spawn(move || worker.serve(&wanted, &sender, |reply| reply));
        let worker = StoreWorker::new(store, DisplayZone::Local);
        std::thread::spawn(move || worker.serve(&slow_wanted, &slow_sender, |reply| reply));
        let area = ratatui::layout::Rect { x: 0, y: 0, width: 160, height: 50 };
        let viewport = ratatui::Viewport::Fixed(area);
        let options = ratatui::TerminalOptions { viewport };
        let terminal = Terminal::with_options(CrosstermBackend::new(out), options)?;
        let app = App::new(160, 50, now(), DisplayZone::Local);
        Ok(Self { app, requests, slow_requests, replies, terminal })
    }

    fn run(&mut self, effects: Vec<AppEffect>) -> Result<(), Fault> {
        for effect in effects {
            if let AppEffect::Ask { request_number, request } = effect {
                let slow = request.slot().is_slow();
                let queue = if slow { &self.slow_requests } else { &self.requests };
                queue.send((request_number, *request))?;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Fault>
    where
        W: 'static,
    {
        let app = &self.app;
        self.terminal.draw(|frame| view::draw(app, frame))?;
        Ok(())
    }

    /// Handles the next reply of a worker. Returns `false` if none comes in time.
    fn take(&mut self, wait: Duration) -> Result<bool, Fault> {
        let Ok(reply) = self.replies.recv_timeout(wait) else { return Ok(false) };
        let effects = update(&mut self.app, BrowserAction::Reply(Box::new(reply)));
        self.run(effects)?;
        Ok(true)
    }
}

/// Measures how long the first screen takes.
fn first(folder: &Path) -> Result<(), Fault> {
    let started = Instant::now();
    let store = Store::open(folder, Options::default())?;
    let mut browser = BrowserRun::new(store, std::io::sink())?;
    let effects = begin(&mut browser.app, None);
    browser.run(effects)?;
    while browser.app.timeline.rows.is_empty() || browser.app.state.view.is_none() {
        browser.take(Duration::from_secs(10))?;
    }
    browser.draw()?;
    let shown = started.elapsed().as_secs_f64() * 1e3;
    while browser.app.strip.is_none() && browser.app.story.is_none() {
        browser.take(Duration::from_secs(10))?;
    }
    browser.draw()?;
    let whole = started.elapsed().as_secs_f64() * 1e3;
    println!("first screen {shown:.1} ms, with the axis of time {whole:.1} ms");
    memory()
}

/// Measures how long the key `v` takes to show the story of a session.
fn story(folder: &Path) -> Result<(), Fault> {
    let store = Store::open(folder, Options::default())?;
    let mut browser = BrowserRun::new(store, std::io::sink())?;
    let effects = begin(&mut browser.app, None);
    browser.run(effects)?;
    while browser.app.timeline.rows.is_empty() || browser.app.state.view.is_none() {
        browser.take(Duration::from_secs(10))?;
    }
    let started = Instant::now();
    while browser.app.story.is_none() {
        if !browser.app.timeline.is_story() {
            let effects = update(&mut browser.app, BrowserAction::Key("v".parse()?));
            browser.run(effects)?;
        }
        browser.take(Duration::from_secs(10))?;
    }
    browser.draw()?;
    let rows = browser.app.timeline.rows.len();
    println!("story of {rows} lines in {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    memory()
}

/// Prints how much memory this process uses, and used at most.
fn memory() -> Result<(), Fault> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let wanted = |line: &&str| line.starts_with("VmHWM") || line.starts_with("RssAnon");
    for line in status.lines().filter(wanted) {
        println!("{line}");
    }
    Ok(())
}

/// Measures the time from a key to the next frame, and to the state of the new moment, while
/// another process writes.
fn keys(folder: &Path) -> Result<(), Fault> {
    let mut writer = Command::new(std::env::current_exe()?)
        .arg("write")
        .arg(folder)
        .stdin(Stdio::piped())
        .spawn()?;
    let store = Store::open(folder, Options::default())?;
    let mut browser = BrowserRun::new(store, std::io::sink())?;
    let effects = begin(&mut browser.app, None);
    browser.run(effects)?;
    let (mut frames, mut states) = (Vec::new(), Vec::new());
    let mut ticked = Instant::now();
    let pressed =
        ["k", "k", "k", "<pgup>", "k", "j", "l", "h", "k", "j", "<pgup>", "<pgdn>", "k", "v"];
    let ended = Instant::now() + Duration::from_secs(20);
    for key in pressed.iter().cycle() {
        if Instant::now() > ended {
            break;
        }
        let start = Instant::now();
        let chord: KeyChord = key.parse()?;
        let effects = update(&mut browser.app, BrowserAction::Key(chord));
        browser.run(effects)?;
        browser.draw()?;
        frames.push(start.elapsed());
        // Waits until the state of the new moment has arrived.
        let arrived =
            |app: &App| app.state.view.as_ref().is_some_and(|view| view.target == app.target());
        while !arrived(&browser.app) && start.elapsed() < Duration::from_secs(2) {
            browser.take(Duration::from_millis(500))?;
        }
        browser.draw()?;
        states.push(start.elapsed());
        while start.elapsed() < Duration::from_millis(20) {
            if browser.take(Duration::from_millis(20).saturating_sub(start.elapsed()))? {
                browser.draw()?;
            }
        }
        if ticked.elapsed() > Duration::from_millis(250) {
            ticked = Instant::now();
            let effects = update(&mut browser.app, BrowserAction::Tick(now()));
            browser.run(effects)?;
        }
    }
    drop(writer.stdin.take());
    writer.wait()?;
    report("a key to a frame", frames);
    report("a key to the state of the new moment", states);
    memory()
}

/// Prints the number of measured times and their percentiles.
fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        let time = times.get(place.min(times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    println!(
        "{what}: n {} p50 {:.2} ms p99 {:.2} ms max {:.2} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
