//! What the program that runs the browser does for it.

use std::fmt;

/// A text that a person wrote in an editor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedText {
    /// The text; after a failure, as much of it as was saved.
    pub text: String,
    /// Why the editor failed; `None` if it did not.
    pub problem: Option<String>,
}

/// The program that runs the browser.
pub trait BrowserHost: fmt::Debug + Send + Sync {
    /// Runs the editor of the person on a text, in the terminal, and waits until it ends.
    fn edit(&self, text: &str) -> EditedText;

    /// Writes the report of a session to a file, or shows it in a web browser if no file is named.
    /// Returns what was done.
    ///
    /// # Errors
    /// A sentence that says why it could not be done.
    fn report(&self, session: &str, path: Option<&str>) -> Result<String, String>;
}

/// Something important that arrives while the browser is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotifyEvent {
    /// A hypothesis was confirmed or rejected.
    Settled,
    /// A check failed that had not failed before.
    Failed,
    /// An agent's context was compacted.
    Compacted,
}
