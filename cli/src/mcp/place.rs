//! Which session a request lands in, and why that one.

use crate::context::Context;
use crate::error::CommandError;
use crate::workplace::{self, Access};
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
    // It is the current session of the store.
    Current,
    // There was none yet: this begins it.
    New,
}

/// Settles the session of a request and puts it into its context.
///
/// # Errors
///
/// Not found if there is no store.
pub(super) fn settle(context: &mut Context, asked: Option<&str>) -> Result<ChosenBy, CommandError> {
    if let Some(asked) = asked.filter(|asked| !asked.is_empty()) {
        context.global.session = Some(asked.to_owned());
        return Ok(ChosenBy::Request);
    }
    if context.session().is_some() {
        return Ok(ChosenBy::Server);
    }
    let store = workplace::open(context, Access::Read)?;
    Ok(match store.current_session()? {
        Some(session) => {
            // Named here, so that nobody who changes it meanwhile sends this request elsewhere.
            context.global.session = Some(session.summary()?.info.id.to_string());
            ChosenBy::Current
        }
        None => ChosenBy::New,
    })
}
