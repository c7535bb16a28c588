//! Resources: builds addresses `forge://...`, and reads the data at them.

use super::ServerSetup;
use super::answer::{self, TEXT_BYTES, cut};
use super::request::McpRequest;
use super::session_choice::SessionUse;
use super::tool::{self, BriefArguments, DiffArguments, StateArguments, TimelineArguments};
use crate::commands::session::SessionListArgs;
use crate::error::CommandError;
use crate::output::report_value;
use crate::report::moment::CheckpointJson;
use crate::verb::Verb;
use crate::workspace::{self, StoreAccess};
use forge_store::error::Error;
use forge_store::store::CheckpointFilter;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{JsonObject, Resource, ResourceTemplate};
use serde_json::{Value, json};

/// The characters that are not escaped in a part of an address.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');
/// The prefix of every address.
const SCHEME: &str = "forge://";
/// The media type of every resource.
const JSON: &str = "application/json";
/// The maximum number of sessions in the list.
const SESSIONS: usize = 50;

fn part(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Returns the address of a checkpoint.
pub(super) fn checkpoint(id: &str) -> String {
    format!("{SCHEME}checkpoint/{}", part(id))
}

/// Returns the address of an entity in its current state.
pub(super) fn entity(session: &str, kind: &str, id: &str) -> String {
    format!("{SCHEME}session/{}/entity/{}/{}", part(session), part(kind), part(id))
}

/// Returns the address of an entity at a moment.
pub(super) fn entity_at(session: &str, kind: &str, id: &str, moment: &str) -> String {
    format!("{}/{}", entity(session, kind, id), part(moment))
}

/// Returns the address of a comparison.
pub(super) fn diff(session: &str, from: &str, to: &str) -> String {
    format!("{SCHEME}session/{}/diff/{}/{}", part(session), part(from), part(to))
}

/// Returns the address of a session's timeline.
pub(super) fn timeline(session: &str) -> String {
    format!("{SCHEME}session/{}/timeline", part(session))
}

/// Returns the resources whose address is fixed.
pub(super) fn all() -> Vec<Resource> {
    [
        ("brief", "Brief", "What is known, rejected and open in the session that a request uses"),
        ("timeline", "Timeline", "The moments of that session, newest first"),
        (
            "sessions",
            "Sessions",
            "The debugging sessions of this store, the one last written to first",
        ),
    ]
    .into_iter()
    .map(|(name, title, about)| {
        let resource = Resource::new(format!("{SCHEME}{name}"), name);
        resource.with_title(title).with_description(about).with_mime_type(JSON)
    })
    .collect()
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    [
        (
            "checkpoint/{id}",
            "checkpoint",
            "Checkpoint",
            "A checkpoint, with the first page of the state it names",
        ),
        (
            "session/{session}/brief",
            "session-brief",
            "Brief of a session",
            "What is known, rejected and open",
        ),
        (
            "session/{session}/timeline", "session-timeline", "Timeline of a session",
            "Its moments, newest first",
        ),
        (
            "session/{session}/state/{moment}",
            "state",
            "State at a moment",
            "The first page of what was known at a moment: '#42', 'HEAD~3', '2 hours ago', a tag",
        ),
        (
            "session/{session}/diff/{from}/{to}",
            "diff",
            "What changed",
            "The first page of the changes between two moments",
        ),
        (
            "session/{session}/entity/{kind}/{id}",
            "entity",
            "Claim or fact",
            "One claim or fact as it is now, with whole texts",
        ),
        (
            "session/{session}/entity/{kind}/{id}/{moment}",
            "entity-at",
            "Claim or fact at a moment",
            "One claim or fact as it was at a moment, with whole texts",
        ),
    ]
    .into_iter()
    .map(|(path, name, title, about)| {
        let template = ResourceTemplate::new(format!("{SCHEME}{path}"), name);
        template.with_title(title).with_description(about).with_mime_type(JSON)
    })
    .collect()
}

/// Reads the resource at this address.
pub(super) fn read(uri: &str, setup: &ServerSetup) -> Result<Value, CommandError> {
    let path = uri.strip_prefix(SCHEME).ok_or_else(|| unknown_address(uri))?;
    let parts: Vec<String> = path
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8().map(|part| part.into_owned()))
        .collect::<Result<_, _>>()
        .map_err(|_| unknown_address(uri))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["brief"] => tool::run_to_json::<BriefArguments>(JsonObject::new(), setup),
        ["timeline"] => tool::run_to_json::<TimelineArguments>(JsonObject::new(), setup),
        ["sessions"] => sessions(setup),
        ["checkpoint", id] if !id.is_empty() => checkpoint_document(id, setup),
        ["session", session, "brief"] => {
            tool::run_to_json::<BriefArguments>(arguments([("session", session)]), setup)
        }
        ["session", session, "timeline"] => {
            tool::run_to_json::<TimelineArguments>(arguments([("session", session)]), setup)
        }
        ["session", session, "state", moment] => tool::run_to_json::<StateArguments>(
            arguments([("session", session), ("at", moment)]),
            setup,
        ),
        ["session", session, "diff", from, to] => {
            let given = arguments([("session", session), ("from", from), ("to", to)]);
            tool::run_to_json::<DiffArguments>(given, setup)
        }
        ["session", session, "entity", kind, id] => {
            entity_document(kind, arguments([("session", session), ("id", id)]), setup)
        }
        ["session", session, "entity", kind, id, moment] => {
            let given = arguments([("session", session), ("id", id), ("at", moment)]);
            entity_document(kind, given, setup)
        }
        _ => Err(unknown_address(uri)),
    }
}

fn arguments<const N: usize>(given: [(&str, &&str); N]) -> JsonObject {
    given.into_iter().map(|(name, text)| (name.to_owned(), (*text).into())).collect()
}

/// Returns one entity, with full texts.
fn entity_document(
    kind: &str,
    mut given: JsonObject,
    setup: &ServerSetup,
) -> Result<Value, CommandError> {
    given.insert("kinds".to_owned(), json!([kind]));
    given.insert("full".to_owned(), true.into());
    tool::run_to_json::<StateArguments>(given, setup)
}

fn unknown_address(uri: &str) -> CommandError {
    CommandError::not_found(format!("there is no resource '{uri}'"))
        .hinted("'resources/templates/list' says which there are")
}

fn sessions(setup: &ServerSetup) -> Result<Value, CommandError> {
    let mut request = McpRequest::begin(setup, None, SessionUse::Reads)?;
    let list = SessionListArgs {
        all: false,
        kind: Vec::new(),
        limit: Some(SESSIONS),
        format: None,
        remote: None,
    };
    let found = report_value(SessionListArgs::NAME, &request.run(&list)?)?;
    answer::json(&cut(found, TEXT_BYTES))
}

/// Returns a checkpoint of any session, with the first page of the state that it names.
fn checkpoint_document(id: &str, setup: &ServerSetup) -> Result<Value, CommandError> {
    let request = McpRequest::begin(setup, None, SessionUse::Reads)?;
    let store = workspace::open_store(&request.context, StoreAccess::Read)?;
    let mut found = store.checkpoints(&CheckpointFilter::default())?;
    found.retain(|(_, checkpoint)| checkpoint.id.to_string().starts_with(id));
    let (name, checkpoint) = match found.as_slice() {
        [one] => one,
        [] => return Err(Error::not_found("checkpoint", id).into()),
        several => {
            let matches = several.iter().map(|(_, one)| one.id.to_string()).collect();
            return Err(Error::Ambiguous { prefix: id.to_owned(), matches }.into());
        }
    };
    let session = store.session(name)?;
    let shown = CheckpointJson::with_body(&session, checkpoint, false)?;
    let moment = format!("#{}", checkpoint.sequence);
    let state = arguments([("session", &name.as_str()), ("at", &moment.as_str())]);
    let state = tool::run_to_json::<StateArguments>(state, setup)?;
    answer::json(&json!({ "checkpoint": shown, "state": state }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_addresses_are_percent_encoded() {
        assert_eq!(
            entity("a b/c#é", "note", "N1"),
            "forge://session/a%20b%2Fc%23%C3%A9/entity/note/N1"
        );
        assert_eq!(diff("s", "HEAD~3", "#7"), "forge://session/s/diff/HEAD~3/%237");
    }
}
