//! The example of the README, as a session with the times of its events.

use forge_store::error::{Error, Result};
use forge_store::model::{
    BranchMetadata, BranchStatus, CheckpointTrigger, Fact, FactOrigin, Key, Kind, Timestamp, Value,
};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Session, Store, WriteContext};
use serde_json::Value as Json;

/// The events of the example, one JSON document per line.
pub const EVENTS: &str = include_str!("../../docs/example/session.jsonl");

/// Writes the example into a store, as a new session of the name `example`.
///
/// # Errors
/// If the example is invalid, or the store returns an error.
pub fn fill(store: &Store) -> Result<Session> {
    let bad = |what: &str| Error::invalid(format!("the example has a bad {what}"));
    let mut session: Option<Session> = None;
    for (place, line) in EVENTS.lines().enumerate() {
        let event: Json = serde_json::from_str(line).map_err(|_| bad("line"))?;
        let text = |value: &Json, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let at = Timestamp::parse_rfc3339(&text(&event, "at")).ok_or_else(|| bad("time"))?;
        let act = WriteContext::asked("import", at);
        let session = match &session {
            Some(session) => session,
            None => session.insert(store.create_session(&act, NewSession::named("example"))?),
        };
        let on = event["branch"].as_str();
        let write = || match on {
            Some(branch) => session.write(&act).on(branch),
            None => session.write(&act),
        };
        if let Some(put) = event.get("put") {
            let kind: Kind = text(put, "kind").parse().map_err(|_| bad("kind"))?;
            let id = text(put, "id");
            let value: Value =
                serde_json::from_value(put["value"].clone()).map_err(|_| bad("value"))?;
            if kind.is_claim() {
                write().change(ClaimChange::put(Key::new(kind, id), value)).commit()?;
            } else {
                let place = place as u64;
                let origin = FactOrigin::Recorded;
                let fact = Fact { kind, id, at, origin, place, recorded_at: at, value };
                write().fact(fact).commit()?;
            }
        } else if let Some(checkpoint) = event.get("checkpoint") {
            let trigger: Option<CheckpointTrigger> =
                serde_json::from_value(checkpoint["trigger"].clone())
                    .map_err(|_| bad("trigger"))?;
            let tags = checkpoint["tags"].as_array().into_iter().flatten();
            let tags = tags.filter_map(Json::as_str);
            let new = NewCheckpoint::new(
                text(checkpoint, "message"),
                trigger.unwrap_or(CheckpointTrigger::Manual),
            );
            write().checkpoint(new.tags(tags)).commit()?;
        } else if let Some(switch) = event.get("switch") {
            session.switch_branch(&act, &text(switch, "branch"), true)?;
        } else if let Some(branch) = event.get("branch").filter(|branch| branch.is_object()) {
            let name = text(branch, "name");
            if branch.get("from").is_some() {
                let metadata = BranchMetadata {
                    hypothesis: branch["hypothesis"].as_str().map(str::to_owned),
                    approach: branch["approach"].as_str().map(str::to_owned),
                    ..BranchMetadata::default()
                };
                session.create_branch(&act, &name, None, metadata)?;
            } else {
                session
                    .update_branch(&act, &name, |status, _| *status = BranchStatus::Abandoned)?;
            }
        }
    }
    session.ok_or_else(|| bad("length"))
}
