//! The loop: events in, effects out, a drawn frame after each batch.

use crate::action::Action;
use crate::answer::Reply;
use crate::app::{App, Zone};
use crate::effect::{Effect, Request};
use crate::key::Chord;
use crate::keymap::{Keymap, KeymapError};
use crate::terminal::Screen;
use crate::theme::Theme;
use crate::update::{begin, update};
use crate::view;
use crate::worker::Worker;
use crossterm::event::{Event as Input, KeyEventKind, MouseButton, MouseEventKind};
use forge_store::model::Timestamp;
use forge_store::store::Store;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often the store is asked whether it moved.
const TICK: Duration = Duration::from_millis(250);

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How things look.
    pub theme: Theme,
    /// Commands with other keys than the default ones.
    pub keys: BTreeMap<String, String>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Somebody quit.
    Quit,
    /// A signal asked to stop: its number.
    Signal(i32),
}

/// Why it cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The table of keys is wrong.
    #[error(transparent)]
    Keys(#[from] KeymapError),
    /// The terminal refuses.
    #[error(
        "the terminal cannot be used: run this on a terminal, or take 'forge checkpoint timeline --no-tui'"
    )]
    Terminal(#[from] std::io::Error),
    /// The worker is gone.
    #[error("the thread that reads the store has ended: this is a bug in forge")]
    Worker,
}

enum Event {
    Input(Input),
    Reply(Reply),
    Signal(i32),
    Lost,
}

/// Opens the browser on this terminal and returns when somebody quits. `None` is the current session.
///
/// # Errors
/// If the terminal cannot be used, or the table of keys is wrong.
pub fn run(store: Store, session: Option<String>, options: &Options) -> Result<Outcome, RunError> {
    let keymap = Keymap::with(&options.keys)?;
    let (events, happened) = mpsc::channel();
    let (requests, wanted) = mpsc::channel::<(u64, Request)>();
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP])?;
    let signals_end = signals.handle();
    let sender: Sender<Event> = events.clone();
    let signalled = thread::spawn(move || {
        for signal in &mut signals {
            if sender.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    let sender = events.clone();
    let worker = Worker::new(store, Zone::Local);
    let working = thread::spawn(move || worker.serve(&wanted, &sender, Event::Reply));
    let mut screen = Screen::open()?;
    thread::spawn(move || read_input(&events));
    let (width, height) = screen.size()?;
    let mut app = App::new(width, height, now(), Zone::Local);
    app.theme = options.theme;
    app.keymap = keymap;
    let effects = begin(&mut app, session);
    let outcome = turn(&mut app, &mut screen, &happened, &requests, effects);
    drop(screen);
    // Without anybody to ask, the worker ends; what it is writing is finished first.
    drop(requests);
    let _ = working.join();
    signals_end.close();
    let _ = signalled.join();
    outcome
}

fn read_input(events: &Sender<Event>) {
    loop {
        let event = crossterm::event::read().map_or(Event::Lost, Event::Input);
        let lost = matches!(event, Event::Lost);
        if events.send(event).is_err() || lost {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the edge")]
fn now() -> Timestamp {
    chrono::Utc::now().into()
}

fn turn(
    app: &mut App,
    screen: &mut Screen,
    happened: &Receiver<Event>,
    requests: &Sender<(u64, Request)>,
    first: Vec<Effect>,
) -> Result<Outcome, RunError> {
    let mut effects = first;
    let mut ticked = Instant::now();
    loop {
        for effect in std::mem::take(&mut effects) {
            match effect {
                Effect::Ask { generation, request } => {
                    requests.send((generation, *request)).map_err(|_| RunError::Worker)?;
                }
                Effect::Copy(text) => screen.copy(&text)?,
                Effect::Suspend => screen.suspend()?,
                Effect::Redraw => screen.clear()?,
            }
        }
        if app.done {
            return Ok(Outcome::Quit);
        }
        screen.draw(|frame| view::draw(app, frame))?;
        let mut event = match happened.recv_timeout(TICK.saturating_sub(ticked.elapsed())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(RunError::Worker),
        };
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            effects.extend(update(app, Action::Tick(now())));
        }
        // What came in meanwhile is taken in before the next frame.
        while let Some(one) = event {
            match one {
                Event::Signal(SIGTSTP) => effects.push(Effect::Suspend),
                Event::Signal(signal) => return Ok(Outcome::Signal(signal)),
                Event::Lost => return Ok(Outcome::Signal(SIGHUP)),
                Event::Reply(reply) => {
                    effects.extend(update(app, Action::Reply(Box::new(reply))));
                }
                Event::Input(input) => {
                    if let Some(action) = action(input) {
                        effects.extend(update(app, action));
                    }
                }
            }
            event = happened.try_recv().ok();
        }
    }
}

fn action(input: Input) -> Option<Action> {
    match input {
        Input::Key(key) if key.kind != KeyEventKind::Release => {
            Chord::of_event(key).map(Action::Key)
        }
        Input::Paste(text) => Some(Action::Paste(text)),
        Input::Resize(width, height) => Some(Action::Resize { width, height }),
        Input::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                Some(Action::Click { x: mouse.column, y: mouse.row })
            }
            MouseEventKind::ScrollDown => Some(Action::Wheel(3)),
            MouseEventKind::ScrollUp => Some(Action::Wheel(-3)),
            _ => None,
        },
        _ => None,
    }
}
