//! The handling of one request: its context, and the verbs that it runs.

use super::ServerSetup;
use super::session_choice::{self, ChosenBy, SessionUse};
use crate::context::Context;
use crate::error::CommandError;
use crate::session_reader::SessionReader;
use crate::verb::{Verb, VerbResult, find_report};
use forge_store::store::Session;
use rmcp::model::{ClientCapabilities, InputResponses};
use std::collections::BTreeSet;

/// What is known about the client of a call.
#[derive(Clone, Debug, Default)]
pub struct McpClient {
    /// Whether a result may be a question (the protocol of 2026-07-28).
    pub may_be_asked: bool,
    /// Its declared capabilities.
    pub capabilities: Option<ClientCapabilities>,
    /// Its answers to an earlier question.
    pub responses: Option<InputResponses>,
    /// The state that forge sent with that question and the client sent back.
    pub state: Option<String>,
}

/// The state of one request.
pub(super) struct McpRequest {
    /// The context of its verbs, which print nothing.
    pub(super) context: Context,
    /// Why the session of the context was chosen.
    pub(super) chosen_by: ChosenBy,
    pub(super) warnings: Vec<String>,
    /// Known only in a call of a tool.
    pub(super) client: McpClient,
}

impl McpRequest {
    /// Starts a request in this session; without one, in the session that is chosen for it.
    pub(super) fn begin(
        setup: &ServerSetup,
        session: Option<&str>,
        to: SessionUse,
    ) -> Result<Self, CommandError> {
        let mut global = setup.global.clone();
        global.json = true;
        let mut context = Context::capturing(global, setup.environment.clone())?;
        let chosen_by = session_choice::choose_session(&mut context, session, to)?;
        Ok(Self { context, chosen_by, warnings: Vec::new(), client: McpClient::default() })
    }

    pub(super) fn run<V: Verb>(&mut self, verb: &V) -> VerbResult<V> {
        let report = find_report(verb, &mut self.context);
        self.warnings.extend(self.context.out.take_warnings());
        report
    }

    /// Returns the store and session to read.
    pub(super) fn reading(&self) -> Result<SessionReader, CommandError> {
        SessionReader::begin(&self.context)
    }

    /// Returns the warnings of verbs and reads since the last call, each once.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.extend(self.context.out.take_warnings());
        let mut warnings = std::mem::take(&mut self.warnings);
        let mut known = BTreeSet::new();
        warnings.retain(|warning| known.insert(warning.clone()));
        warnings
    }
}

pub(super) fn session_name(session: &Session) -> Result<String, CommandError> {
    Ok(session.summary()?.info.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::GlobalArgs;
    use crate::context::Environment;

    /// Regression: if a tool ran two verbs, two or more warnings of both were in its answer twice.
    #[test]
    fn each_warning_is_returned_once() {
        let context = Context::capturing(GlobalArgs::default(), Environment::default()).unwrap();
        let warnings = ["one", "two", "one"].map(str::to_owned).to_vec();
        let (chosen_by, client) = (ChosenBy::Current, McpClient::default());
        let mut request = McpRequest { context, chosen_by, warnings, client };
        request.context.out.warn("two");
        assert_eq!(request.take_warnings(), ["one", "two"]);
        assert!(request.take_warnings().is_empty());
    }
}
