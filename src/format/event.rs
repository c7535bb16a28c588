//! The event stream: one JSON object per line, for `forge import events` and `forge export events`.
//! `docs/events.md` specifies it.

use super::codec::{is_false, is_zero};
use crate::model::{BranchStatus, CheckpointTrigger, Kind, SessionKind, Timestamp, Value};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// One line of an event stream.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine {
    /// The time of the event.
    pub at: Timestamp,
    /// The name of the session, if the line has one.
    pub session: Option<String>,
    /// The name of the branch, if the line has one.
    pub branch: Option<String>,
    /// The event.
    pub event: StreamEvent,
}

/// The event of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A claim has these fields from now on, or a fact happened.
    Put(PutEvent),
    /// A claim is removed.
    Remove(RemoveEvent),
    /// A checkpoint names a moment.
    Checkpoint(CheckpointEvent),
    /// A branch is created, or its status or metadata change.
    Branch(BranchEvent),
    /// Another branch becomes the current one.
    Switch(BranchReference),
    /// A branch gets the status `merged`. The changes of the merge are in lines of their own.
    Merge(BranchReference),
    /// The branch has the claims of an earlier revision again.
    Restore(RevisionSelector),
    /// The tags of a checkpoint change.
    Tag(TagEvent),
    /// The session of the following lines that name no session.
    Session(SessionEvent),
    /// The revision ends here: later lines with the same time belong to another revision.
    Revision,
}

/// A claim with new fields, or a fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with kind, id and value")]
pub struct PutEvent {
    /// The kind of the entity.
    pub kind: Kind,
    /// The id of the entity.
    pub id: String,
    /// The fields of the entity.
    pub value: Value,
    /// The claim's own time, if it differs from the time of the revision that adds the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// A claim that is removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with kind and id")]
pub struct RemoveEvent {
    /// The kind of the claim.
    pub kind: Kind,
    /// The id of the claim.
    pub id: String,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a message")]
pub struct CheckpointEvent {
    /// The message of the checkpoint.
    pub message: String,
    /// The tags of the checkpoint.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Why the checkpoint was made.
    #[serde(default = "manual", skip_serializing_if = "is_manual")]
    pub trigger: CheckpointTrigger,
    /// Further data, in any form.
    #[serde(default, skip_serializing_if = "is_null")]
    pub body: Value,
    /// The key of the event to which the checkpoint belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The revision of the checkpoint; by default the last one of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub of: Option<RevisionSelector>,
}

fn manual() -> CheckpointTrigger {
    CheckpointTrigger::Manual
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_manual(trigger: &CheckpointTrigger) -> bool {
    *trigger == CheckpointTrigger::Manual
}

fn is_null(value: &Value) -> bool {
    *value == Value::Null
}

/// A branch that is created or changed. The fields that are present get new values; the others
/// stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with a name")]
pub struct BranchEvent {
    /// The name of the branch.
    pub name: String,
    /// The branch from which it was forked; by default `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The revision from which it was forked; by default the last one of `from`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub base: Option<RevisionSelector>,
    /// The status of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BranchStatus>,
    /// The hypothesis it tests; null for none.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub hypothesis: Option<Option<String>>,
    /// The approach it takes; null for none.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub approach: Option<Option<String>>,
    /// The criteria for success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_criteria: Option<Vec<String>>,
    /// The results of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<String>>,
    /// Further fields.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub extra: Option<Value>,
    /// Whether the creation of the branch was undone (`true`), or that undo was undone (`false`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_back: Option<bool>,
}

/// Deserialises a field that is present, even if it is null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The name of a branch, as an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a branch")]
pub struct BranchReference {
    /// The name of the branch.
    pub branch: String,
}

/// A revision. Exactly one of `at`, `tag` and `nothing` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with tag, at or nothing")]
pub struct RevisionSelector {
    /// The last revision of the branch at or before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The name of the branch; by default the branch of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The number of revisions to go back from the revision that `at` selects.
    #[serde(skip_serializing_if = "is_zero")]
    pub back: u64,
    /// The revision of the newest checkpoint with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// No revision: the state before the first one.
    #[serde(skip_serializing_if = "is_false")]
    pub nothing: bool,
}

/// A change of a checkpoint's tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a checkpoint")]
pub struct TagEvent {
    /// The message or a tag of the checkpoint. It selects the newest checkpoint that matches.
    pub checkpoint: String,
    /// Tags to add.
    #[serde(default)]
    pub add: Vec<String>,
    /// Tags to remove.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// A session of an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with a name")]
pub struct SessionEvent {
    /// The name of the session.
    pub name: String,
    /// The kind of the session.
    #[serde(skip_serializing_if = "is_debug")]
    pub kind: SessionKind,
    /// The agent that works in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's own id for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// The start time of the session; by default the line's `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_debug(kind: &SessionKind) -> bool {
    *kind == SessionKind::Debug
}

/// The fields of a line. `session` and `branch` may be names on any line. As objects they are the
/// event of the line.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = ""), expecting = "an object with an event")]
struct EventLineFields {
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<NameOrEvent<SessionEvent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<NameOrEvent<BranchEvent>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    put: Option<PutEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    remove: Option<RemoveEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    checkpoint: Option<CheckpointEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    switch: Option<BranchReference>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    merge: Option<BranchReference>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    restore: Option<RevisionSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    tag: Option<TagEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    revision: Option<EmptyJsonObject>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object without fields")]
struct EmptyJsonObject {}

/// A struct that is read from an object only. The code that serde derives also accepts a list, with
/// the fields by their order.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(ObjectDeserializer(deserializer)).map(Self)
    }
}

/// Deserialises a field that may be null from an object only.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<JsonObject<T>>::deserialize(from)?.map(|JsonObject(object)| object))
}

struct ObjectDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectDeserializer<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, ObjectVisitor(visitor))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Accepts what its visitor accepts, except lists.
struct ObjectVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum NameOrEvent<T> {
    Name(String),
    Event(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOrEvent<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrEventVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for NameOrEventVisitor<T> {
            type Value = NameOrEvent<T>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a name or an object")
            }
            fn visit_str<E>(self, name: &str) -> Result<NameOrEvent<T>, E> {
                Ok(NameOrEvent::Name(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameOrEvent<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(NameOrEvent::Event)
            }
        }
        deserializer.deserialize_any(NameOrEventVisitor(PhantomData))
    }
}

/// The error for a line that is not an event.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The line is not JSON, or its fields are wrong.
    #[error("{}", not_an_event(.0))]
    Json(#[from] serde_json::Error),
    /// The line contains no event, or several.
    #[error(
        "a line must have exactly one event: put, remove, checkpoint, branch, switch, merge, restore, tag, session or revision"
    )]
    NotOne,
    /// A revision is not selected by exactly one of `at`, `tag` and `nothing`.
    #[error("a revision needs exactly one of 'at', 'tag' and 'nothing'")]
    NoTarget,
    /// The name of a session or branch is missing or empty.
    #[error("'name' is missing")]
    NoName,
}

/// Describes an error without the parser's line number, which is always 1.
fn not_an_event(error: &serde_json::Error) -> String {
    if error.is_syntax() {
        return format!("it is not JSON (column {})", error.column());
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().replace(&place, "")
}

impl EventError {
    /// Whether the line ends too early: more bytes might make it valid.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Json(error) if error.is_eof())
    }
}

impl EventLine {
    /// Parses a line.
    ///
    /// # Errors
    /// [`EventError`] if it is not a valid line.
    pub fn parse(text: &str) -> Result<Self, EventError> {
        let JsonObject::<EventLineFields>(fields) = serde_json::from_str(text)?;
        let mut events = Vec::new();
        let session = match fields.session {
            Some(NameOrEvent::Event(event)) => {
                check_name(&event.name)?;
                events.push(StreamEvent::Session(event));
                None
            }
            Some(NameOrEvent::Name(name)) => Some(name),
            None => None,
        };
        let branch = match fields.branch {
            Some(NameOrEvent::Event(event)) => {
                check_name(&event.name)?;
                event.base.as_ref().map_or(Ok(()), check_selector)?;
                events.push(StreamEvent::Branch(event));
                None
            }
            Some(NameOrEvent::Name(name)) => Some(name),
            None => None,
        };
        fields.checkpoint.iter().filter_map(|it| it.of.as_ref()).try_for_each(check_selector)?;
        fields.restore.iter().try_for_each(check_selector)?;
        events.extend(fields.put.map(StreamEvent::Put));
        events.extend(fields.remove.map(StreamEvent::Remove));
        events.extend(fields.checkpoint.map(StreamEvent::Checkpoint));
        events.extend(fields.switch.map(StreamEvent::Switch));
        events.extend(fields.merge.map(StreamEvent::Merge));
        events.extend(fields.restore.map(StreamEvent::Restore));
        events.extend(fields.tag.map(StreamEvent::Tag));
        events.extend(fields.revision.map(|_| StreamEvent::Revision));
        match (events.pop(), events.is_empty()) {
            (Some(event), true) => Ok(Self { at: fields.at, session, branch, event }),
            _ => Err(EventError::NotOne),
        }
    }

    /// Encodes the line, with a line break at the end.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut fields = EventLineFields {
            at: self.at,
            session: self.session.clone().map(NameOrEvent::Name),
            branch: self.branch.clone().map(NameOrEvent::Name),
            ..EventLineFields::default()
        };
        match self.event.clone() {
            StreamEvent::Put(put) => fields.put = Some(put),
            StreamEvent::Remove(remove) => fields.remove = Some(remove),
            StreamEvent::Checkpoint(checkpoint) => fields.checkpoint = Some(checkpoint),
            StreamEvent::Branch(branch) => fields.branch = Some(NameOrEvent::Event(branch)),
            StreamEvent::Switch(switch) => fields.switch = Some(switch),
            StreamEvent::Merge(merge) => fields.merge = Some(merge),
            StreamEvent::Restore(target) => fields.restore = Some(target),
            StreamEvent::Tag(tag) => fields.tag = Some(tag),
            StreamEvent::Session(session) => fields.session = Some(NameOrEvent::Event(session)),
            StreamEvent::Revision => fields.revision = Some(EmptyJsonObject {}),
        }
        let mut line = serde_json::to_vec(&fields).expect("an event can be written as JSON");
        line.push(b'\n');
        line
    }
}

fn check_name(name: &str) -> Result<(), EventError> {
    if name.is_empty() { Err(EventError::NoName) } else { Ok(()) }
}

fn check_selector(target: &RevisionSelector) -> Result<(), EventError> {
    let is_set = [target.at.is_some(), target.tag.is_some(), target.nothing];
    if is_set.iter().filter(|is_set| **is_set).count() == 1 {
        Ok(())
    } else {
        Err(EventError::NoTarget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_line_is_written_as_it_was_read() {
        for text in [
            r#"{"at":"2026-01-01T00:00:00Z","put":{"kind":"note","id":"n","value":{"text":"x"}}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","session":"s","branch":"b","remove":{"kind":"note","id":"n"}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","checkpoint":{"message":"m","tags":["t"],"trigger":{"automatic":"gap_filled"}}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","branch":{"name":"b","from":"main","hypothesis":null}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","restore":{"at":"2025-01-01T00:00:00Z","branch":"main","back":2}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","session":{"name":"s","agent":"a"}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","revision":{}}"#,
        ] {
            let line = EventLine::parse(text).unwrap();
            assert_eq!(String::from_utf8(line.to_line()).unwrap().trim_end(), text);
        }
    }

    /// Regression test: an error named the Rust type that was expected.
    #[test]
    fn an_error_names_the_expected_json_and_no_rust_type() {
        for (event, expected) in [
            (r#""put":"note:n""#, "an object with kind, id and value"),
            (r#""remove":7"#, "an object with kind and id"),
            (r#""checkpoint":"m""#, "an object with a message"),
            (r#""tag":"t""#, "an object with a checkpoint"),
        ] {
            let line = format!(r#"{{"at":"2026-01-01T00:00:00Z",{event}}}"#);
            let error = EventLine::parse(&line).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("struct"), "{error}");
        }
    }

    /// A list was read as an object, with the fields by their order.
    #[test]
    fn a_list_in_place_of_an_object_is_refused() {
        let selector = "an object with tag, at or nothing";
        for (event, expected) in [
            (r#""put":["note","n",{"text":"x"}]"#, "an object with kind, id and value"),
            (r#""remove":["note","n"]"#, "an object with kind and id"),
            (r#""checkpoint":["m",[]]"#, "an object with a message"),
            (r#""checkpoint":{"message":"m","of":[null,null,0,"t"]}"#, selector),
            (r#""branch":["b"]"#, "a name or an object"),
            (r#""branch":{"name":"b","base":[null,null,0,"t"]}"#, selector),
            (r#""switch":["b"]"#, "an object with a branch"),
            (r#""merge":["b"]"#, "an object with a branch"),
            (r#""restore":[null,null,0,"t"]"#, selector),
            (r#""tag":["m",["t"]]"#, "an object with a checkpoint"),
            (r#""session":["s"]"#, "a name or an object"),
            (r#""revision":[]"#, "an object without fields"),
        ] {
            let line = format!(r#"{{"at":"2026-01-01T00:00:00Z",{event}}}"#);
            let error = EventLine::parse(&line).unwrap_err().to_string();
            assert_eq!(error, format!("invalid type: sequence, expected {expected}"), "{event}");
        }
        let line = r#"["2026-01-01T00:00:00Z","s","b",{"kind":"note","id":"n","value":{}}]"#;
        let error = EventLine::parse(line).unwrap_err().to_string();
        assert_eq!(error, "invalid type: sequence, expected an object with an event");
    }

    #[test]
    fn a_text_that_is_no_event_line_is_refused() {
        for text in [
            r#"{"at":"2026-01-01T00:00:00Z"}"#,
            r#"{"at":"2026-01-01T00:00:00Z","switch":{"branch":"b"},"merge":{"branch":"b"}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","put":{"kind":"theory","id":"n","value":{}}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","put":{"kind":"note","id":"n","value":{},"x":1}}"#,
            r#"{"at":"yesterday","revision":{}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","restore":{}}"#,
            r#"{"at":"2026-01-01T00:00:00Z","branch":{"from":"main"}}"#,
            "[]",
            "nonsense",
        ] {
            assert!(EventLine::parse(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", r#"{"at":"#, "[".repeat(100_000));
        assert!(EventLine::parse(&deep).is_err());
    }
}
