//! Reads and writes a memory: items under keys.

use super::exact_value::{put_nulls, take_nulls, without_bytes};
use super::item_id::{HASH_MARK, NAME_ID, id_of, is_plain};
use forge_store::ClaimEntry;
use forge_store::error::{Error, Result};
use forge_store::model::claim::check_id;
use forge_store::model::{FieldMap, Key, Kind, SessionKind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, ResolvedMoment, Session, Store, WriteContext,
};
use std::collections::{BTreeMap, BTreeSet};

/// An item of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryItem {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// How often it was written, counting the write that added it.
    pub version: u64,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// Which items to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ItemQuery<'a> {
    /// Only items whose key begins with this text.
    pub prefix: &'a str,
    /// Only items whose key comes after this one.
    pub after: Option<&'a str>,
    /// The maximum number of items.
    pub limit: Option<usize>,
}

/// What a write changes.
#[derive(Clone, Debug, Default)]
pub struct MemoryChanges {
    /// The new values of items.
    pub puts: BTreeMap<String, Value>,
    /// The keys of the items to remove. A key without an item changes nothing.
    pub deletes: BTreeSet<String>,
    /// The version that each of these items must have before; `None` if there must be no such item.
    pub expected: BTreeMap<String, Option<u64>>,
    /// The message of a checkpoint after the write.
    pub message: Option<String>,
}

/// A memory of a store: values under keys. Its session begins with the first write.
#[derive(Clone, Debug)]
pub struct KeyedMemory {
    store: Store,
    name: String,
    session_name: String,
}

impl KeyedMemory {
    /// Returns the memory with this name, which need not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is empty or too long.
    pub fn new(store: Store, name: &str) -> Result<Self> {
        // The store removes secrets from names, too.
        let name = store.without_secrets(name);
        let is_valid = check_id(&name).is_ok() && is_plain(&name);
        let session_name = if is_valid { name.clone() } else { id_of("the name", &name)? };
        Ok(Self { store, name, session_name })
    }

    /// Returns the session of the memory, if something was written to it.
    pub fn session(&self) -> Result<Option<Session>> {
        self.store.session_by_kind(SessionKind::Memory, &self.session_name)
    }

    /// Returns an item; with `at` as it was at that moment of the session.
    pub fn get(&self, key: &str, at: Option<&ResolvedMoment>) -> Result<Option<MemoryItem>> {
        let id = Key::new(Kind::MemoryItem, id_of("the key", key)?);
        let Some(session) = self.session()? else { return Ok(None) };
        let moment = at.cloned().map_or_else(|| session.head(), Ok)?;
        let entry = session.claim(&moment, &id)?;
        Ok(entry.map(|entry| item_of(&id.id, entry)))
    }

    /// Returns items in the order of their keys; with `at` as they were at that moment.
    pub fn items(
        &self,
        query: ItemQuery<'_>,
        at: Option<&ResolvedMoment>,
    ) -> Result<Vec<MemoryItem>> {
        let Some(session) = self.session()? else { return Ok(Vec::new()) };
        let moment = at.cloned().map_or_else(|| session.head(), Ok)?;
        let state = session.state(&moment)?;
        let limit = query.limit.unwrap_or(usize::MAX);
        let is_after = |key: &str| query.after.is_none_or(|after| key > after);
        let mut found = Vec::new();
        for claim in state.claims().claims_with_prefix(Kind::MemoryItem, query.prefix) {
            if found.len() >= limit {
                break;
            }
            let id = claim.id()?;
            if is_after(id) && !id.starts_with(HASH_MARK) {
                found.push(item_of(id, claim.decode()?.1));
            }
        }
        // An item whose id is a hash has its key, and so its place in the order, only in its value.
        let hidden = HASH_MARK.to_string();
        for claim in state.claims().claims_with_prefix(Kind::MemoryItem, &hidden) {
            let id = claim.id()?;
            if id != NAME_ID {
                let item = item_of(id, claim.decode()?.1);
                if item.key.starts_with(query.prefix) && is_after(&item.key) {
                    found.push(item);
                }
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.truncate(limit);
        Ok(found)
    }

    /// Writes all these changes in one record, or none of them.
    ///
    /// # Errors
    /// [`Error::Conflict`] if an item has another version than expected; [`Error::Invalid`] for a
    /// key that is not valid, or that is both put and deleted; or any error of a write.
    pub fn write(&self, act: &WriteContext, changes: &MemoryChanges) -> Result<()> {
        if let Some(key) = changes.deletes.iter().find(|key| changes.puts.contains_key(*key)) {
            return Err(Error::invalid(format!("'{key}' is both put and deleted: do one of both")));
        }
        let names = changes.puts.keys().chain(&changes.deletes).chain(changes.expected.keys());
        let names: BTreeSet<&String> = names.collect();
        let keys = names.iter().map(|name| self.claim_key(name)).collect::<Result<Vec<_>>>()?;
        if changes.puts.is_empty() && self.session()?.is_none() {
            // There is nothing to delete, so no session begins.
            return names.iter().try_for_each(|name| check_version(changes, name, None));
        }
        let kept: BTreeMap<&String, FieldMap> =
            changes.puts.iter().map(|(key, value)| (key, kept_fields(key, value))).collect();
        let new = NewSession {
            name: self.session_name.clone(),
            kind: SessionKind::Memory,
            ..NewSession::default()
        };
        let mut write = self.store.write_to(act, new)?;
        if self.session_name != self.name {
            let value = Value::from([("name", self.name.as_str().into())]);
            write = write.change(ClaimChange::put(Key::new(Kind::MemoryItem, NAME_ID), value));
        }
        write = write.edit(keys.clone(), |known| {
            let mut edits = Vec::new();
            for ((name, key), old) in names.iter().zip(&keys).zip(known) {
                let version = old.as_ref().map(version_of);
                check_version(changes, name, version)?;
                if let Some(fields) = kept.get(*name) {
                    let mut fields = fields.clone();
                    fields.insert("version".to_owned(), (version.unwrap_or(0) + 1).into());
                    if version.is_some() {
                        fields.insert("updated_at".to_owned(), act.now.to_string().into());
                    }
                    edits.push(ClaimChange::put(key.clone(), Value::Map(fields)));
                } else if changes.deletes.contains(*name) && old.is_some() {
                    edits.push(ClaimChange::remove(key.clone()));
                }
            }
            Ok(edits)
        });
        if let Some(message) = &changes.message {
            write = write.checkpoint(NewCheckpoint::manual(message));
        }
        write.commit().map(drop)
    }

    /// Drops the memory; `undo` brings it back until a sweep. Returns whether there was one.
    ///
    /// # Errors
    /// Any error of a write.
    pub fn drop_all(&self, act: &WriteContext) -> Result<bool> {
        let Some(session) = self.session()? else { return Ok(false) };
        self.store.drop_session(act, &session)?;
        Ok(true)
    }

    fn claim_key(&self, key: &str) -> Result<Key> {
        let id = id_of("the key", key)?;
        if id != key && self.store.without_secrets(key) != key {
            return Err(Error::invalid("the key contains a secret: use another key"));
        }
        Ok(Key::new(Kind::MemoryItem, id))
    }
}

/// Returns the names of the memories of a store that begin with `prefix`, in order.
pub fn memory_names(store: &Store, prefix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for one in store.sessions_by_kind(SessionKind::Memory)? {
        let name = if one.name.starts_with(HASH_MARK) {
            let key = Key::new(Kind::MemoryItem, NAME_ID);
            let entry = one.session.claim(&one.session.head()?, &key)?;
            let name = entry.as_ref().and_then(|entry| entry.value.field("name")?.as_text());
            name.map_or(one.name, str::to_owned)
        } else {
            one.name
        };
        if name.starts_with(prefix) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Refuses a write that expects another version of an item.
fn check_version(changes: &MemoryChanges, key: &str, version: Option<u64>) -> Result<()> {
    let version_text = |version: Option<u64>| match version {
        Some(version) => format!("version {version}"),
        None => "no value".to_owned(),
    };
    match changes.expected.get(key) {
        Some(expected) if *expected != version => Err(Error::Conflict(format!(
            "the item '{key}' has {} now, and the write expects {}: read it again",
            version_text(version),
            version_text(*expected)
        ))),
        _ => Ok(()),
    }
}

/// Returns the fields of the claim for an item, without version and time.
fn kept_fields(key: &str, value: &Value) -> FieldMap {
    let mut value = value.clone();
    let nulls = take_nulls(&mut value);
    let mut fields = FieldMap::new();
    if !is_plain(key) {
        fields.insert("key".to_owned(), key.into());
    }
    // A value that is null is an absent field.
    if value != Value::Null {
        fields.insert("value".to_owned(), value);
    }
    if !nulls.is_empty() {
        fields.insert("nulls".to_owned(), nulls.into());
    }
    fields
}

fn version_of(value: &Value) -> u64 {
    let version = value.field("version").and_then(Value::as_i64).unwrap_or(1);
    u64::try_from(version).unwrap_or(1)
}

fn item_of(id: &str, entry: ClaimEntry) -> MemoryItem {
    let text = |name: &str| entry.value.field(name).and_then(Value::as_text);
    let key = text("key").unwrap_or(id).to_owned();
    let version = version_of(&entry.value);
    let updated = text("updated_at").and_then(Timestamp::parse_rfc3339);
    let created_at = entry.added_at;
    let nulls = entry.value.field("nulls").cloned();
    let mut value = match entry.value {
        Value::Map(mut fields) => fields.remove("value").unwrap_or_default(),
        _ => Value::Null,
    };
    value = without_bytes(value);
    let nulls = nulls.as_ref().and_then(Value::as_list).unwrap_or_default();
    put_nulls(&mut value, nulls.iter().filter_map(Value::as_text));
    let updated_at = updated.unwrap_or(created_at).max(created_at);
    MemoryItem { key, value, version, created_at, updated_at }
}
