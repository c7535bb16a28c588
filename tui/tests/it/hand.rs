//! Drives the browser in tests: effects run at once, and screens are text.

use chrono::FixedOffset;
use forge_store::model::Timestamp;
use forge_store::store::Store;
use forge_store::store::remote::KnownRemote;
use forge_tui::action::BrowserAction;
use forge_tui::app::{App, DisplayZone};
use forge_tui::effect::AppEffect;
use forge_tui::key::KeyChord;
use forge_tui::update::{begin, update};
use forge_tui::worker::StoreWorker;
use forge_tui::{theme, view};
use std::collections::VecDeque;

/// A browser without a terminal.
pub(crate) struct Hand {
    pub(crate) app: App,
    worker: StoreWorker,
    /// The text that was copied.
    pub(crate) copied: Vec<String>,
    /// The notifications.
    pub(crate) notified: Vec<String>,
    /// The texts with which the editor was opened.
    pub(crate) edited: Vec<String>,
    /// The requested reports, each with its session and its path.
    pub(crate) reports: Vec<(String, Option<String>)>,
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

impl Hand {
    /// Opens a browser on this store, one hour after the example's end.
    pub(crate) fn on(store: Store, width: u16, height: u16) -> Self {
        let zone = DisplayZone::Fixed(FixedOffset::east_opt(0).unwrap());
        let app = App::new(width, height, at("2025-03-11T13:11:00Z"), zone);
        let mut hand = Self {
            app,
            worker: StoreWorker::new(store, zone),
            copied: Vec::new(),
            notified: Vec::new(),
            edited: Vec::new(),
            reports: Vec::new(),
        };
        hand.app.theme.name = theme::ThemeName::None;
        let effects = begin(&mut hand.app, None);
        hand.settle(effects);
        hand
    }

    /// Tells what is not pushed to these remotes.
    pub(crate) fn with_remotes(self, remotes: Vec<KnownRemote>) -> Self {
        Self { worker: self.worker.with_remotes(remotes), ..self }
    }

    /// Opens a browser on the example.
    pub(crate) fn on_example(width: u16, height: u16) -> Self {
        let store = Store::in_memory().unwrap();
        forge_testkit::example::fill(&store).unwrap();
        Self::on(store, width, height)
    }

    fn settle(&mut self, effects: Vec<AppEffect>) {
        let mut waiting = VecDeque::from(effects);
        while let Some(effect) = waiting.pop_front() {
            match effect {
                AppEffect::Ask { request_number, request } => {
                    let reply = Box::new(self.worker.answer(request_number, *request));
                    waiting.extend(update(&mut self.app, BrowserAction::Reply(reply)));
                }
                AppEffect::Copy(text) => self.copied.push(text),
                AppEffect::Notify(text) => self.notified.push(text),
                AppEffect::Edit(text) => self.edited.push(text),
                AppEffect::Report { session, path, .. } => self.reports.push((session, path)),
                AppEffect::Suspend | AppEffect::Redraw => {}
            }
        }
    }

    /// Handles an event.
    pub(crate) fn act(&mut self, action: BrowserAction) -> &mut Self {
        let effects = update(&mut self.app, action);
        self.settle(effects);
        self
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        for chord in KeyChord::parse_all(keys).unwrap() {
            self.act(BrowserAction::Key(chord));
        }
        self
    }

    /// Types a text, with its blanks.
    pub(crate) fn type_in(&mut self, text: &str) -> &mut Self {
        self.act(BrowserAction::Paste(text.to_owned()))
    }

    /// Returns the screen without trailing blanks. Random ids are replaced by names.
    pub(crate) fn screen(&self) -> String {
        let mut screen = "\n".to_owned();
        for word in view::text(&self.app).split_inclusive([' ', '\n']) {
            let id = word.trim_end();
            if id.len() >= 32 && id.bytes().all(|byte| b"0123456789abcdef".contains(&byte)) {
                screen.push_str(&word.replace(id, "[id]"));
            } else {
                screen.push_str(word);
            }
        }
        screen
    }
}
