//! Chooses the session of a request, and records why.

use crate::context::Context;
use crate::error::CommandError;
use crate::workspace::{self, StoreAccess};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why it is this session. The variants have no documentation, so that the schema stays a list of
/// words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum ChosenBy {
    // The request named it.
    Request,
    // FORGE_SESSION or '--session' of the server named it.
    Server,
    // It is the session of the agent whose process this server runs in.
    Agent,
    // It is the current session of the store.
    Current,
    // There was none yet: this request creates it.
    New,
}

/// How a request uses its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionUse {
    Reads,
    /// It may write, and so create the session.
    Writes,
}

/// Chooses the session of a request and puts it into the context. The first that exists is chosen,
/// in the order of [`workspace::choose_session`]: the session that the request names, the one that
/// the server names, the agent's session, the current session.
pub(super) fn choose_session(
    context: &mut Context,
    requested: Option<&str>,
    session_use: SessionUse,
) -> Result<ChosenBy, CommandError> {
    if let Some(requested) = requested.filter(|requested| !requested.is_empty()) {
        context.global.session = Some(requested.to_owned());
        return Ok(ChosenBy::Request);
    }
    if context.session().is_some() {
        return Ok(ChosenBy::Server);
    }
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let agent = workspace::agent_around(&store);
    let of_agent = agent.as_ref().map(|process| store.agent_session(&process.session));
    let (session, chosen_by) = match (of_agent.transpose()?.flatten(), &agent) {
        (Some(session), _) => (session, ChosenBy::Agent),
        // The command that writes creates it.
        (None, Some(_)) if session_use == SessionUse::Writes => return Ok(ChosenBy::Agent),
        (None, _) => match store.current_session()? {
            Some(session) => (session, ChosenBy::Current),
            None => return Ok(ChosenBy::New),
        },
    };
    // Set explicitly, so that a change of the current session in the meantime does not affect this
    // request.
    context.global.session = Some(session.summary()?.info.id.to_string());
    Ok(chosen_by)
}

/// Returns why it is this session, after a command has written to it. If an agent had no session
/// yet, a command that needs existing data used the current one.
pub(super) fn chosen_session(
    context: &Context,
    chosen_by: ChosenBy,
    session: &str,
) -> Result<ChosenBy, CommandError> {
    if chosen_by != ChosenBy::Agent || context.session().is_some() {
        return Ok(chosen_by);
    }
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let Some(process) = workspace::agent_around(&store) else { return Ok(chosen_by) };
    let is_agents = match store.agent_session(&process.session)? {
        Some(agent_session) => agent_session.summary()?.info.name == session,
        None => false,
    };
    Ok(if is_agents { ChosenBy::Agent } else { ChosenBy::Current })
}
