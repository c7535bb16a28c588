//! The main loop: it handles events, executes effects, and draws a frame after each batch.

use crate::action::BrowserAction;
use crate::app::{App, DisplayZone};
use crate::effect::{AppEffect, WorkerRequest};
use crate::host::{BrowserHost, EditedText, NotifyEvent};
use crate::input_gate::InputGate;
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
use forge_store::store::remote::KnownRemote;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often the browser checks whether the store has changed.
const TICK: Duration = Duration::from_millis(250);

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
    /// The remotes of the store; the list of sessions says what is not pushed to them.
    pub remotes: Vec<KnownRemote>,
    /// The program that runs the browser.
    pub host: Arc<dyn BrowserHost>,
    /// The events that are announced with the bell and a notification when they arrive.
    pub notified: Vec<NotifyEvent>,
    /// Whether to show only the title, the last lines of the story and the axis of time.
    pub strip_only: bool,
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
    #[error("the thread that reads the store has ended: this is a bug in forge")]
    Worker,
}

struct WorkerQueues {
    fast: Sender<(u64, WorkerRequest)>,
    slow: Sender<(u64, WorkerRequest)>,
}

impl WorkerQueues {
    fn send(&self, request_number: u64, request: WorkerRequest) -> Result<(), BrowserError> {
        let queue = if request.slot().is_slow() { &self.slow } else { &self.fast };
        queue.send((request_number, request)).map_err(|_| BrowserError::Worker)
    }
}

enum LoopEvent {
    Input(Input),
    Action(BrowserAction),
    Edited(EditedText),
    Signal(i32),
    Lost,
}

/// Runs the browser on this terminal until the user quits. `None` opens the current session.
///
/// # Errors
/// If the terminal cannot be used, the key bindings are invalid, or the thread that reads the store
/// has ended.
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
    // Requests whose work grows with the session have a thread of their own, so that other requests
    // are answered meanwhile.
    let (slow_requests, slow_wanted) = mpsc::channel::<(u64, WorkerRequest)>();
    let requests = WorkerQueues { fast: requests, slow: slow_requests };
    let replied = |reply| LoopEvent::Action(BrowserAction::Reply(Box::new(reply)));
    let sender = events.clone();
    let worker = StoreWorker::new(store.clone(), DisplayZone::Local);
    let worker = worker.with_triggers(options.triggers.clone());
    let worker = worker.with_remotes(options.remotes.clone());
    let working = thread::spawn(move || worker.serve(&wanted, &sender, replied));
    let sender = events.clone();
    let worker = StoreWorker::new(store, DisplayZone::Local);
    thread::spawn(move || worker.serve(&slow_wanted, &sender, replied));
    let screen = TerminalScreen::open()?;
    let gate = Arc::new(InputGate::default());
    let (reading, sender) = (Arc::clone(&gate), events.clone());
    thread::spawn(move || read_input(&reading, &sender));
    let (width, height) = screen.size()?;
    let mut app = App::new(width, height, (options.clock)(), DisplayZone::Local);
    app.theme = options.theme;
    app.keymap = keymap;
    app.notified.clone_from(&options.notified);
    app.strip_only = options.strip_only;
    let effects = begin(&mut app, session);
    let mut browser_loop = BrowserLoop {
        app,
        screen,
        options,
        happened,
        events,
        requests,
        gate,
        title: String::new(),
    };
    let outcome = browser_loop.run(effects);
    let BrowserLoop { screen, requests, .. } = browser_loop;
    drop(screen);
    // Without senders the worker ends, after it has finished its requests, such as a write.
    drop(requests);
    let _ = working.join();
    signals_end.close();
    let _ = signalled.join();
    outcome
}

fn read_input(gate: &InputGate, events: &Sender<LoopEvent>) {
    loop {
        let event = match gate.next() {
            Ok(None) => continue,
            Ok(Some(event)) => LoopEvent::Input(event),
            Err(_) => LoopEvent::Lost,
        };
        let lost = matches!(event, LoopEvent::Lost);
        if events.send(event).is_err() || lost {
            return;
        }
    }
}

/// The browser with its terminal and its queues.
struct BrowserLoop<'a> {
    app: App,
    screen: TerminalScreen,
    options: &'a BrowserOptions,
    happened: Receiver<LoopEvent>,
    events: Sender<LoopEvent>,
    requests: WorkerQueues,
    gate: Arc<InputGate>,
    /// The title that the terminal has.
    title: String,
}

impl BrowserLoop<'_> {
    fn run(&mut self, first: Vec<AppEffect>) -> Result<BrowserOutcome, BrowserError> {
        let mut effects = first;
        let mut ticked = Instant::now();
        loop {
            while !effects.is_empty() {
                for effect in std::mem::take(&mut effects) {
                    if let Some(signal) = self.execute(effect, &mut effects)? {
                        return Ok(BrowserOutcome::Signal(signal));
                    }
                }
            }
            if self.app.done {
                return Ok(BrowserOutcome::Quit);
            }
            let app = &self.app;
            self.screen.draw(|frame| view::draw(app, frame))?;
            let now = view::title(app);
            if now != self.title {
                self.screen.set_title(&now)?;
                self.title = now;
            }
            let wait = TICK.saturating_sub(ticked.elapsed());
            let mut event = match self.happened.recv_timeout(wait) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(BrowserError::Worker),
            };
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                effects.extend(update(&mut self.app, BrowserAction::Tick((self.options.clock)())));
            }
            // Handles all events that arrived in the meantime before drawing the next frame.
            while let Some(one) = event {
                match one {
                    LoopEvent::Signal(SIGTSTP) => effects.push(AppEffect::Suspend),
                    LoopEvent::Signal(signal) => return Ok(BrowserOutcome::Signal(signal)),
                    LoopEvent::Lost => return Ok(BrowserOutcome::Signal(SIGHUP)),
                    LoopEvent::Action(action) => effects.extend(update(&mut self.app, action)),
                    // `edit` waits for this event itself.
                    LoopEvent::Edited(_) => {}
                    LoopEvent::Input(input) => {
                        if let Some(action) = action(input) {
                            effects.extend(update(&mut self.app, action));
                        }
                    }
                }
                event = self.happened.try_recv().ok();
            }
        }
    }

    /// Executes an effect. Returns the signal that ends the browser meanwhile, if there is one.
    fn execute(
        &mut self,
        effect: AppEffect,
        more: &mut Vec<AppEffect>,
    ) -> Result<Option<i32>, BrowserError> {
        match effect {
            AppEffect::Ask { request_number, request } => {
                self.requests.send(request_number, *request)?;
            }
            AppEffect::Copy(text) => self.screen.copy(&text)?,
            AppEffect::Notify(text) => self.screen.notify(&text)?,
            AppEffect::Suspend => {
                self.screen.suspend()?;
                self.title.clear();
            }
            AppEffect::Redraw => self.screen.clear()?,
            AppEffect::Report { request_number, session, path } => {
                let (host, sender) = (Arc::clone(&self.options.host), self.events.clone());
                thread::spawn(move || {
                    let said = host.report(&session, path.as_deref());
                    let reported = BrowserAction::Reported { request_number, said };
                    // The browser may have ended meanwhile.
                    let _ = sender.send(LoopEvent::Action(reported));
                });
            }
            AppEffect::Edit(text) => return self.edit(text, more),
        }
        Ok(None)
    }

    /// Lends the terminal to an editor until it ends.
    fn edit(
        &mut self,
        text: String,
        effects: &mut Vec<AppEffect>,
    ) -> Result<Option<i32>, BrowserError> {
        self.gate.close();
        self.screen.lend();
        let (host, sender) = (Arc::clone(&self.options.host), self.events.clone());
        thread::spawn(move || {
            let _ = sender.send(LoopEvent::Edited(host.edit(&text)));
        });
        let edited = loop {
            match self.happened.recv().map_err(|_| BrowserError::Worker)? {
                LoopEvent::Edited(edited) => break BrowserAction::Edited(edited),
                // The terminal sends these signals to the editor too. The editor decides what an
                // interrupt does; both processes are stopped and continued together.
                LoopEvent::Signal(SIGINT) => {}
                LoopEvent::Signal(SIGTSTP) => {
                    signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
                }
                LoopEvent::Signal(signal) => return Ok(Some(signal)),
                LoopEvent::Lost => return Ok(Some(SIGHUP)),
                LoopEvent::Action(action) => effects.extend(update(&mut self.app, action)),
                LoopEvent::Input(input) => {
                    if let Input::Resize(..) = input
                        && let Some(resized) = action(input)
                    {
                        effects.extend(update(&mut self.app, resized));
                    }
                }
            }
        };
        self.screen.take_back()?;
        self.title.clear();
        self.gate.open();
        let (width, height) = self.screen.size()?;
        effects.extend(update(&mut self.app, BrowserAction::Resize { width, height }));
        effects.extend(update(&mut self.app, edited));
        Ok(None)
    }
}

fn action(input: Input) -> Option<BrowserAction> {
    match input {
        Input::Key(key) if key.kind != KeyEventKind::Release => {
            KeyChord::from_event(key).map(BrowserAction::Key)
        }
        Input::FocusGained => Some(BrowserAction::Focus(true)),
        Input::FocusLost => Some(BrowserAction::Focus(false)),
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
