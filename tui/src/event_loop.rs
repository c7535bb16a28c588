//! The loop: events in, effects out, a drawn frame after each batch.

use crate::action::BrowserAction;
use crate::answer::WorkerReply;
use crate::app::{App, DisplayZone};
use crate::effect::{AppEffect, WorkerRequest};
use crate::key::KeyChord;
use crate::keymap::{Keymap, KeymapError};
use crate::terminal::TerminalScreen;
use crate::theme::Theme;
use crate::update::{begin, update};
use crate::view;
use crate::worker::StoreWorker;
use crossterm::event::{Event as Input, KeyEventKind, MouseButton, MouseEventKind};
use forge_store::model::{AutoTrigger, Timestamp};
use forge_store::store::Store;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often the browser checks whether the store has changed.
const TICK: Duration = Duration::from_millis(250);

/// Options of the browser.
#[derive(Clone, Debug)]
pub struct BrowserOptions {
    /// Reads the clock.
    pub clock: fn() -> Timestamp,
    /// Colours and characters.
    pub theme: Theme,
    /// Keys that replace the defaults, by command.
    pub keys: BTreeMap<String, String>,
    /// The events that make a checkpoint.
    pub triggers: Vec<AutoTrigger>,
}

/// How the browser ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserOutcome {
    /// The user quit.
    Quit,
    /// A signal stopped it: the signal's number.
    Signal(i32),
}

/// Why the browser cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The key bindings are invalid.
    #[error(transparent)]
    Keys(#[from] KeymapError),
    /// The terminal cannot be used.
    #[error(
        "the terminal cannot be used: run this on a terminal, or use 'forge checkpoint timeline \
        --no-tui'"
    )]
    Terminal(#[from] std::io::Error),
    /// The worker has ended.
    #[error("the thread that reads the store has ended: this is a bug in forge")]
    Worker,
}

/// The queues of the two workers.
struct WorkerQueues {
    fast: Sender<(u64, WorkerRequest)>,
    slow: Sender<(u64, WorkerRequest)>,
}

impl WorkerQueues {
    fn send(&self, generation: u64, request: WorkerRequest) -> Result<(), BrowserError> {
        let queue = if request.slot().is_slow() { &self.slow } else { &self.fast };
        queue.send((generation, request)).map_err(|_| BrowserError::Worker)
    }
}

enum LoopEvent {
    Input(Input),
    Reply(WorkerReply),
    Signal(i32),
    Lost,
}

/// Runs the browser on this terminal until the user quits. `None` opens the current session.
///
/// # Errors
/// If the terminal cannot be used, or the key bindings are invalid.
pub fn run(
    store: Store,
    session: Option<String>,
    options: &BrowserOptions,
) -> Result<BrowserOutcome, BrowserError> {
    let keymap = Keymap::with(&options.keys)?;
    let (events, happened) = mpsc::channel();
    let (requests, wanted) = mpsc::channel::<(u64, WorkerRequest)>();
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP])?;
    let signals_end = signals.handle();
    let sender: Sender<LoopEvent> = events.clone();
    let signalled = thread::spawn(move || {
        for signal in &mut signals {
            if sender.send(LoopEvent::Signal(signal)).is_err() {
                return;
            }
        }
    });
    // What grows with the session has a thread of its own, so that a key is answered meanwhile.
    let (slow_requests, slow_wanted) = mpsc::channel::<(u64, WorkerRequest)>();
    let requests = WorkerQueues { fast: requests, slow: slow_requests };
    let sender = events.clone();
    let worker = StoreWorker::new(store.clone(), DisplayZone::Local);
    let worker = worker.with_triggers(options.triggers.clone());
    let working = thread::spawn(move || worker.serve(&wanted, &sender, LoopEvent::Reply));
    let sender = events.clone();
    let worker = StoreWorker::new(store, DisplayZone::Local);
    thread::spawn(move || worker.serve(&slow_wanted, &sender, LoopEvent::Reply));
    let mut screen = TerminalScreen::open()?;
    thread::spawn(move || read_input(&events));
    let (width, height) = screen.size()?;
    let mut app = App::new(width, height, (options.clock)(), DisplayZone::Local);
    app.theme = options.theme;
    app.keymap = keymap;
    let effects = begin(&mut app, session);
    let outcome = run_loop(&mut app, &mut screen, options.clock, &happened, &requests, effects);
    drop(screen);
    // Without senders the worker ends, after it has finished a write.
    drop(requests);
    let _ = working.join();
    signals_end.close();
    let _ = signalled.join();
    outcome
}

fn read_input(events: &Sender<LoopEvent>) {
    loop {
        let event = crossterm::event::read().map_or(LoopEvent::Lost, LoopEvent::Input);
        let lost = matches!(event, LoopEvent::Lost);
        if events.send(event).is_err() || lost {
            return;
        }
    }
}

fn run_loop(
    app: &mut App,
    screen: &mut TerminalScreen,
    clock: fn() -> Timestamp,
    happened: &Receiver<LoopEvent>,
    requests: &WorkerQueues,
    first: Vec<AppEffect>,
) -> Result<BrowserOutcome, BrowserError> {
    let mut effects = first;
    let mut ticked = Instant::now();
    loop {
        for effect in std::mem::take(&mut effects) {
            match effect {
                AppEffect::Ask { generation, request } => {
                    requests.send(generation, *request)?;
                }
                AppEffect::Copy(text) => screen.copy(&text)?,
                AppEffect::Suspend => screen.suspend()?,
                AppEffect::Redraw => screen.clear()?,
            }
        }
        if app.done {
            return Ok(BrowserOutcome::Quit);
        }
        screen.draw(|frame| view::draw(app, frame))?;
        let mut event = match happened.recv_timeout(TICK.saturating_sub(ticked.elapsed())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(BrowserError::Worker),
        };
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            effects.extend(update(app, BrowserAction::Tick(clock())));
        }
        // Handles all events that arrived in the meantime before drawing the next frame.
        while let Some(one) = event {
            match one {
                LoopEvent::Signal(SIGTSTP) => effects.push(AppEffect::Suspend),
                LoopEvent::Signal(signal) => return Ok(BrowserOutcome::Signal(signal)),
                LoopEvent::Lost => return Ok(BrowserOutcome::Signal(SIGHUP)),
                LoopEvent::Reply(reply) => {
                    effects.extend(update(app, BrowserAction::Reply(Box::new(reply))));
                }
                LoopEvent::Input(input) => {
                    if let Some(action) = action(input) {
                        effects.extend(update(app, action));
                    }
                }
            }
            event = happened.try_recv().ok();
        }
    }
}

fn action(input: Input) -> Option<BrowserAction> {
    match input {
        Input::Key(key) if key.kind != KeyEventKind::Release => {
            KeyChord::from_event(key).map(BrowserAction::Key)
        }
        Input::Paste(text) => Some(BrowserAction::Paste(text)),
        Input::Resize(width, height) => Some(BrowserAction::Resize { width, height }),
        Input::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                Some(BrowserAction::Click { x: mouse.column, y: mouse.row })
            }
            MouseEventKind::ScrollDown => Some(BrowserAction::Wheel(3)),
            MouseEventKind::ScrollUp => Some(BrowserAction::Wheel(-3)),
            _ => None,
        },
        _ => None,
    }
}
