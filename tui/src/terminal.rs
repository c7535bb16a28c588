//! The terminal of the browser. It is restored at the end, also after an error or a panic.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture,
};
use crossterm::style::Print;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use forge_store::model::text::{NewlineMode, sanitise};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use std::io::{self, IsTerminal, Stdout, Write};
use std::panic::{set_hook, take_hook};
use std::sync::Arc;

type PanicHook = Arc<dyn Fn(&std::panic::PanicHookInfo<'_>) + Send + Sync>;

/// The terminal in the browser's mode. Dropping it restores the terminal; so does a panic.
pub(crate) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    hook: PanicHook,
}

/// Makes the terminal save its title, if it knows XTWINOPS. Other terminals ignore this.
const KEEP_TITLE: &str = "\x1b[22;0t";
/// Makes the terminal show the saved title again.
const RESTORE_TITLE: &str = "\x1b[23;0t";

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(
        io::stdout(),
        Print(KEEP_TITLE),
        EnterAlternateScreen,
        EnableMouseCapture,
        EnableBracketedPaste,
        EnableFocusChange
    )
}

fn leave() {
    // If the terminal no longer exists, errors do not matter.
    let _ = execute!(
        io::stdout(),
        DisableFocusChange,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        Print(RESTORE_TITLE),
        cursor::Show
    );
    let _ = disable_raw_mode();
}

impl TerminalScreen {
    pub(crate) fn open() -> io::Result<Self> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(io::Error::other("this is not a terminal"));
        }
        let hook: PanicHook = Arc::from(take_hook());
        let before = Arc::clone(&hook);
        set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
        let terminal = enter().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match terminal {
            Ok(terminal) => Ok(Self { terminal, hook }),
            Err(error) => {
                leave();
                set_hook(Box::new(move |panic| hook(panic)));
                Err(error)
            }
        }
    }

    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }

    /// Redraws everything with the next frame.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal for the position of its cursor, and the thread
        // that reads keys would receive the answer.
        let area =
            ratatui::layout::Rect::from((ratatui::layout::Position::ORIGIN, self.terminal.size()?));
        self.terminal.resize(area)
    }

    /// Restores the terminal and suspends the process until the shell continues it.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        leave();
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.take_back()
    }

    /// Restores the terminal, so that another program can use it.
    pub(crate) fn lend(&self) {
        leave();
    }

    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        enter()?;
        self.clear()
    }

    /// Sets the title of the terminal's window or tab.
    pub(crate) fn set_title(&self, title: &str) -> io::Result<()> {
        execute!(io::stdout(), SetTitle(title))
    }

    /// Shows a notification (OSC 9) and rings the bell. A terminal without notifications only rings
    /// the bell.
    pub(crate) fn notify(&self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), Print(notification(text)))
    }

    /// Copies a text to the clipboard, if the terminal supports it (OSC 52).
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
        out.flush()
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        leave();
        if !std::thread::panicking() {
            let hook = Arc::clone(&self.hook);
            set_hook(Box::new(move |panic| hook(panic)));
        }
    }
}

/// Returns the bytes that make a terminal show a notification and ring the bell. The text cannot
/// end the notification early.
fn notification(text: &str) -> String {
    let text = sanitise(text, NewlineMode::Escape);
    format!("\x1b]9;{text}\x07\x07")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_notification_is_one_sequence_and_a_bell() {
        let sent = super::notification("H4 confirmed\x07\x1b]52;c;eA==\x07\nmore");
        assert_eq!(sent.matches('\x07').count(), 2, "{sent:?}");
        assert!(sent.starts_with("\x1b]9;H4 confirmed") && !sent[4..].contains('\x1b'), "{sent:?}");
    }
}
