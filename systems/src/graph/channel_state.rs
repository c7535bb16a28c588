//! The value of a channel with its elements, and the claims that store it.

use super::damaged;
use super::element_ids::element_ids;
use super::label::label;
use super::payload::{PayloadElement, PayloadForm, elements_of, join_payload, split_payload};
use super::readable_value::{PLAIN_ENCODING, readable_title};
use super::typed_bytes::TypedBytes;
use forge_store::error::Result;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, FieldRef, StateAt};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A channel of a namespace at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChannelState {
    /// The framework's version of the value, as text.
    pub(super) version: String,
    /// The value.
    pub(super) payload: TypedBytes,
    form: PayloadForm,
    /// The ids and places of the elements, in their order.
    elements: Vec<(u64, PayloadElement)>,
}

/// The channels of a namespace at one revision, by name.
pub(super) type ChannelStates = BTreeMap<String, Arc<ChannelState>>;

/// Digits of an element's id in a key.
const ID_DIGITS: usize = 12;

impl ChannelState {
    /// Returns the channel with another value, and the changes that store it. `prefix` begins the
    /// ids of its claims.
    pub(super) fn with_value(
        known: Option<&Self>,
        prefix: &ClaimPrefix,
        version: String,
        payload: TypedBytes,
        changes: &mut Vec<ClaimChange>,
    ) -> Self {
        let split = split_payload(&payload.encoding, &payload.bytes);
        let same_form = known.filter(|known| known.form == split.form);
        let old: Vec<(u64, &[u8])> = same_form.map_or_else(Vec::new, |known| {
            let elements = known.elements.iter();
            elements.map(|(id, element)| (*id, known.bytes(&element.identity))).collect()
        });
        let identities: Vec<&[u8]> = split
            .elements
            .iter()
            .map(|element| payload.bytes.get(element.identity.clone()).unwrap_or_default())
            .collect();
        let ids = element_ids(&old, &identities, split.form != PayloadForm::Map);
        let elements = ids.into_iter().zip(split.elements).collect();
        let new = Self { version, payload, form: split.form, elements };
        new.element_changes(known, prefix, changes);
        changes.push(ClaimChange::put(prefix.channel(), new.claim(prefix)));
        new
    }

    fn bytes(&self, range: &std::ops::Range<usize>) -> &[u8] {
        self.payload.bytes.get(range.clone()).unwrap_or_default()
    }

    /// Adds the changes that turn the elements of `known` into these. Both are sorted by id.
    fn element_changes(
        &self,
        known: Option<&Self>,
        prefix: &ClaimPrefix,
        changes: &mut Vec<ClaimChange>,
    ) {
        let mut old = known.map(|known| known.elements.iter()).into_iter().flatten().peekable();
        let mut new = self.elements.iter().peekable();
        let recoded = known.is_some_and(|known| known.payload.encoding != self.payload.encoding);
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((one, _)), Some((other, _))) => one.cmp(other),
            };
            let before = if order.is_le() { old.next() } else { None };
            let after = if order.is_ge() { new.next() } else { None };
            let was = before.zip(known).map(|((_, element), known)| known.bytes(&element.range));
            let is = after.map(|(_, element)| self.bytes(&element.range));
            let Some((id, _)) = before.or(after).filter(|_| was != is || recoded) else { continue };
            let key = prefix.element(*id);
            changes.push(match is {
                Some(bytes) => ClaimChange::put(key, self.element_value(bytes)),
                None => ClaimChange::remove(key),
            });
        }
    }

    fn element_value(&self, bytes: &[u8]) -> Value {
        let encoding = self.payload.encoding.as_str();
        Value::from([
            ("title", readable_title(encoding, bytes).into()),
            ("type", (encoding != PLAIN_ENCODING).then_some(encoding).into()),
            ("bytes", Value::Bytes(bytes.to_vec())),
        ])
    }

    /// Adds the changes that remove the channel.
    pub(super) fn remove(&self, prefix: &ClaimPrefix, changes: &mut Vec<ClaimChange>) {
        let elements = self.elements.iter().map(|(id, _)| prefix.element(*id));
        changes.extend(elements.map(ClaimChange::remove));
        changes.push(ClaimChange::remove(prefix.channel()));
    }

    fn claim(&self, prefix: &ClaimPrefix) -> Value {
        Value::from([
            ("channel", prefix.hidden_name().into()),
            ("type", self.payload.encoding.as_str().into()),
            ("form", self.form.word().into()),
            ("count", (self.elements.len() as u64).into()),
            ("version", self.version.as_str().into()),
        ])
    }

    /// Returns how much memory it takes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.payload.bytes.len() + self.elements.len() * size_of::<(u64, PayloadElement)>()
    }
}

/// The beginning of the ids of a channel's claims.
#[derive(Clone, Debug)]
pub(super) struct ClaimPrefix {
    name: String,
    label: String,
    id: String,
}

impl ClaimPrefix {
    /// Makes the prefix of a channel, in the namespace with this label.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let label = label(name);
        let id = format!("{namespace}/{label}");
        Self { name: name.to_owned(), label, id }
    }

    /// Returns the name, if the label does not say it.
    fn hidden_name(&self) -> Option<&str> {
        (self.name != self.label).then_some(self.name.as_str())
    }

    pub(super) fn channel(&self) -> Key {
        Key::new(Kind::Channel, self.id.as_str())
    }

    fn element(&self, id: u64) -> Key {
        Key::new(Kind::ChannelElement, format!("{}/{id:0ID_DIGITS$x}", self.id))
    }
}

/// The elements of a channel as they are read: their ids and their bytes.
type StoredElements<'a> = Vec<(u64, &'a [u8])>;

/// Reads the channels of a namespace. `namespace` is its label.
pub(super) fn read_channels(state: &StateAt, namespace: &str) -> Result<ChannelStates> {
    let prefix = format!("{namespace}/");
    let mut parts: BTreeMap<&str, StoredElements<'_>> = BTreeMap::new();
    for claim in state.claims().claims_with_prefix(Kind::ChannelElement, &prefix) {
        let broken = |why| damaged("an element of a channel", why);
        let id = claim.id()?.get(prefix.len()..).and_then(|id| id.rsplit_once('/'));
        let number = id.and_then(|(label, id)| Some((label, u64::from_str_radix(id, 16).ok()?)));
        let (label, number) = number.ok_or_else(|| broken("its id has no number"))?;
        let [Some(FieldRef::Bytes(bytes))] = claim.fields(["bytes"])? else {
            return Err(broken("it has no bytes"));
        };
        parts.entry(label).or_default().push((number, bytes));
    }
    let mut channels = ChannelStates::new();
    for claim in state.claims().claims_with_prefix(Kind::Channel, &prefix) {
        let label = claim.id()?.get(prefix.len()..).unwrap_or_default();
        let parts = parts.remove(label).unwrap_or_default();
        let broken = |why| damaged(format!("the channel '{label}'"), why);
        let fields = claim.fields(["channel", "type", "form", "count", "version"])?;
        let [name, encoding, form, count, version] = fields;
        let form = text_of(form).and_then(PayloadForm::of_word);
        let (Some(encoding), Some(form), Some(version)) =
            (text_of(encoding), form, text_of(version))
        else {
            return Err(broken("a field is missing"));
        };
        if count != Some(FieldRef::Int(parts.len() as i64)) {
            return Err(broken("an element is missing"));
        }
        let elements: Vec<&[u8]> = parts.iter().map(|(_, bytes)| *bytes).collect();
        let bytes = join_payload(form, &elements);
        let places = elements_of(form, &elements);
        let elements = parts.iter().map(|(id, _)| *id).zip(places).collect();
        let payload = TypedBytes { encoding: encoding.to_owned(), bytes };
        let name = text_of(name).unwrap_or(label).to_owned();
        let channel = ChannelState { version: version.to_owned(), payload, form, elements };
        channels.insert(name, Arc::new(channel));
    }
    Ok(channels)
}

/// Returns the text of a field.
const fn text_of(field: Option<FieldRef<'_>>) -> Option<&str> {
    if let Some(FieldRef::Text(text)) = field { Some(text) } else { None }
}
