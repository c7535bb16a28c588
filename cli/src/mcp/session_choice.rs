//! Which session a request lands in, and why that one.

use crate::context::Context;
use crate::error::CommandError;
use crate::hook::agent_process;
use crate::workspace::{self, StoreAccess};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why it is this session. The variants have no documentation, so that the schema stays a list of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum ChosenBy {
    // The request named it.
    Request,
    // FORGE_SESSION or '--session' of the server named it.
    Server,
    // It is that of the agent whose process this server runs in.
    Agent,
    // It is the current session of the store.
    Current,
    // There was none yet: this begins it.
    New,
}

/// What a request does with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// It reads.
    Reads,
    /// It may write, and so begin it.
    Writes,
}

/// Settles the session of a request and puts it into its context, in the order in which [`workspace::choose_session`]
/// looks for one: that of the request or the server, the agent's, the current one.
///
/// # Errors
///
/// Not found if there is no store.
pub(super) fn choose_session(
    context: &mut Context,
    asked: Option<&str>,
    to: SessionUse,
) -> Result<ChosenBy, CommandError> {
    if let Some(asked) = asked.filter(|asked| !asked.is_empty()) {
        context.global.session = Some(asked.to_owned());
        return Ok(ChosenBy::Request);
    }
    if context.session().is_some() {
        return Ok(ChosenBy::Server);
    }
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let around = store.notes().as_deref().and_then(agent_process::surrounding_agent);
    let agents = match &around {
        Some(process) => store.agent_session(&process.session)?,
        None => None,
    };
    let (session, chosen_by) = match (agents, &around) {
        (Some(session), _) => (session, ChosenBy::Agent),
        // The command that writes begins it.
        (None, Some(_)) if to == SessionUse::Writes => return Ok(ChosenBy::Agent),
        (None, _) => match store.current_session()? {
            Some(session) => (session, ChosenBy::Current),
            None => return Ok(ChosenBy::New),
        },
    };
    // Named here, so that nobody who changes what is current meanwhile sends this request elsewhere.
    context.global.session = Some(session.summary()?.info.id.to_string());
    Ok(chosen_by)
}

/// Why it is this session, once a command has written to it: where an agent had no session yet, one that needs what is
/// there already went to the current one.
///
/// # Errors
///
/// As every read.
pub(super) fn chosen_session(
    context: &Context,
    chosen_by: ChosenBy,
    session: &str,
) -> Result<ChosenBy, CommandError> {
    if chosen_by != ChosenBy::Agent || context.session().is_some() {
        return Ok(chosen_by);
    }
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let Some(process) = store.notes().as_deref().and_then(agent_process::surrounding_agent) else {
        return Ok(chosen_by);
    };
    let agents = store.agent_session(&process.session)?;
    let is_agents = match agents {
        Some(agents) => agents.summary()?.info.name == session,
        None => false,
    };
    Ok(if is_agents { ChosenBy::Agent } else { ChosenBy::Current })
}
