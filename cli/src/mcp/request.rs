//! The handling of one request: its context, and the commands that it runs.

use super::ServerSetup;
use super::session_choice::{self, ChosenBy, SessionUse};
use crate::commands::ForgeCommand;
use crate::context::Context;
use crate::error::CommandError;
use crate::session_reader::SessionReader;
use forge_store::store::Session;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The state of one request.
pub(super) struct McpRequest {
    /// The context of its commands, which print nothing.
    pub(super) context: Context,
    /// Why this session was chosen.
    pub(super) chosen_by: ChosenBy,
    /// The warnings of its commands.
    pub(super) warnings: Vec<String>,
}

impl McpRequest {
    /// Starts a request with this session, or the one that is chosen for it.
    ///
    /// # Errors
    ///
    /// Not found if there is no store.
    pub(super) fn begin(
        setting: &ServerSetup,
        session: Option<&str>,
        to: SessionUse,
    ) -> Result<Self, CommandError> {
        let mut global = setting.global.clone();
        global.json = true;
        let mut context = Context::capturing(global, setting.environment.clone())?;
        let chosen_by = session_choice::choose_session(&mut context, session, to)?;
        Ok(Self { context, chosen_by, warnings: Vec::new() })
    }

    /// Runs a command and returns its document.
    ///
    /// # Errors
    ///
    /// The errors of the command.
    pub(super) fn run(&mut self, command: &ForgeCommand) -> Result<Value, CommandError> {
        let outcome = command.run(&mut self.context);
        let kept = self.context.out.take_kept();
        self.warnings.extend(kept.warnings);
        outcome?;
        let mut documents = kept.documents.into_iter();
        documents.next().ok_or_else(|| CommandError::internal("a command found nothing to say"))
    }

    /// Runs a command and reads its document as `T`.
    ///
    /// # Errors
    ///
    /// The errors of the command.
    pub(super) fn run_as<T: DeserializeOwned>(
        &mut self,
        command: &ForgeCommand,
    ) -> Result<T, CommandError> {
        let document = self.run(command)?;
        serde_json::from_value(document)
            .map_err(|error| CommandError::internal("a result has another form").caused_by(error))
    }

    /// Returns the store and session to read.
    ///
    /// # Errors
    ///
    /// As opening does; not found if there is no session yet.
    pub(super) fn reading(&self) -> Result<SessionReader, CommandError> {
        SessionReader::begin(&self.context)
    }

    /// Collects the warnings of reads.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.extend(self.context.out.take_kept().warnings);
        std::mem::take(&mut self.warnings)
    }
}

/// Returns the name of a session.
///
/// # Errors
///
/// As every read.
pub(super) fn session_name(session: &Session) -> Result<String, CommandError> {
    Ok(session.summary()?.info.name)
}
