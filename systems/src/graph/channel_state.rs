//! The value of a channel with its elements, and the claims that store it.

use super::damaged;
use super::element_ids::element_ids;
use super::label::label;
use super::payload::{
    DividedPayload, PayloadElement, PayloadForm, elements_of, join_payload, split_payload_after,
};
use super::readable_value::{PLAIN_ENCODING, readable_title};
use super::typed_bytes::TypedBytes;
use forge_store::error::Result;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, StateAt};
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A channel of a namespace at one revision, with the elements of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChannelState {
    /// The framework's version of the value, as text.
    pub(super) version: String,
    /// The value.
    pub(super) payload: TypedBytes,
    form: PayloadForm,
    /// The elements, in their order.
    elements: Vec<PayloadElement>,
    /// The ids of the elements, ascending.
    ids: Vec<u64>,
}

/// The channels of a namespace at one revision, by name.
pub(super) type ChannelStates = BTreeMap<String, Arc<ChannelState>>;

/// The number of hexadecimal digits of an element's id in a key.
const ID_DIGITS: usize = 12;

impl ChannelState {
    /// Returns the channel `known` with another value, or a new channel, and adds the changes that
    /// store it to `changes`. `prefix` begins the ids of its claims.
    pub(super) fn with_value(
        known: Option<&Self>,
        prefix: &ClaimPrefix,
        version: String,
        payload: TypedBytes,
        changes: &mut Vec<ClaimChange>,
    ) -> Self {
        let bytes = payload.bytes.clone();
        let same_encoding = known.filter(|known| known.payload.encoding == payload.encoding);
        let older = same_encoding.map(Self::divided);
        let (split, common) = split_payload_after(older, &payload.encoding, &bytes);
        let (form, elements) = (split.form, split.elements);
        let mut new = Self { version, payload, form, elements, ids: Vec::new() };
        let same_form = known.filter(|known| known.form == form);
        let old_ids = same_form.map_or(&[][..], |known| &known.ids);
        let (begin, old_ids) = old_ids.split_at(common.count.min(old_ids.len()));
        let old = same_form.into_iter().flat_map(|known| known.identities_from(common.count));
        let old: Vec<(u64, &[u8])> = old_ids.iter().copied().zip(old).collect();
        let identities: Vec<&[u8]> = new.identities_from(common.count).collect();
        new.ids = element_ids(begin, &old, &identities, form != PayloadForm::Map);
        // If there was no room for new ids, all elements got new ones.
        let kept = if new.ids.starts_with(begin) { begin.len() } else { 0 };
        let changed = common.changed.iter().filter_map(|(place, bytes)| {
            let id = new.ids.get(..kept)?.get(*place)?;
            Some(new.element_change(*id, bytes, prefix))
        });
        changes.extend(changed);
        new.add_element_changes(known, kept, prefix, changes);
        changes.push(ClaimChange::put(prefix.channel(), new.claim(prefix)));
        new
    }

    fn divided(&self) -> DividedPayload<'_> {
        let bytes = &self.payload.bytes;
        DividedPayload { form: self.form, elements: &self.elements, bytes }
    }

    /// Returns the bytes that identify the elements from this place on.
    fn identities_from(&self, place: usize) -> impl Iterator<Item = &[u8]> {
        self.divided().parts_from(place).map(|(identity, _)| identity)
    }

    /// Returns the elements from this place on: their ids and their bytes.
    fn elements_from(&self, place: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let ids = self.ids.iter().skip(place).copied();
        ids.zip(self.divided().parts_from(place).map(|(_, bytes)| bytes))
    }

    /// Adds the changes that turn the elements of `known` from this place on into the elements of
    /// this channel. Both are sorted by id.
    fn add_element_changes(
        &self,
        known: Option<&Self>,
        place: usize,
        prefix: &ClaimPrefix,
        changes: &mut Vec<ClaimChange>,
    ) {
        let old = known.into_iter().flat_map(|known| known.elements_from(place));
        let (mut old, mut new) = (old.peekable(), self.elements_from(place).peekable());
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
            if before == after && !recoded {
                continue;
            }
            changes.extend(match (before, after) {
                (_, Some((id, bytes))) => Some(self.element_change(id, bytes, prefix)),
                (Some((id, _)), None) => Some(ClaimChange::remove(prefix.element(id))),
                (None, None) => None,
            });
        }
    }

    fn element_change(&self, id: u64, bytes: &[u8], prefix: &ClaimPrefix) -> ClaimChange {
        let encoding = self.payload.encoding.as_str();
        let value = Value::from([
            ("title", readable_title(encoding, bytes).into()),
            ("type", (encoding != PLAIN_ENCODING).then_some(encoding).into()),
            ("bytes", Value::Bytes(bytes.to_vec())),
        ]);
        ClaimChange::put(prefix.element(id), value)
    }

    /// Adds the changes that remove the channel.
    pub(super) fn add_removal(&self, prefix: &ClaimPrefix, changes: &mut Vec<ClaimChange>) {
        let elements = self.ids.iter().map(|id| prefix.element(*id));
        changes.extend(elements.map(ClaimChange::remove));
        changes.push(ClaimChange::remove(prefix.channel()));
    }

    fn claim(&self, prefix: &ClaimPrefix) -> Value {
        Value::from([
            ("channel", prefix.name_unless_label().into()),
            ("type", self.payload.encoding.as_str().into()),
            ("form", self.form.word().into()),
            ("count", (self.ids.len() as u64).into()),
            ("version", self.version.as_str().into()),
        ])
    }

    /// Returns about how much memory the channel takes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.payload.bytes.len() + self.ids.len() * size_of::<(u64, PayloadElement)>()
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

    /// Returns the name, if the label does not show it.
    fn name_unless_label(&self) -> Option<&str> {
        (self.name != self.label).then_some(self.name.as_str())
    }

    pub(super) fn channel(&self) -> Key {
        Key::new(Kind::Channel, self.id.as_str())
    }

    fn element(&self, id: u64) -> Key {
        Key::new(Kind::ChannelElement, format!("{}/{id:0ID_DIGITS$x}", self.id))
    }
}

/// The stored elements of a channel: their ids and their bytes.
type StoredElements<'a> = Vec<(u64, &'a [u8])>;

/// The field of an element's claim that is read: the title is made from the bytes, and the type is
/// that of the channel.
#[derive(Deserialize)]
struct ElementFields<'a> {
    bytes: &'a [u8],
}

/// The fields of a channel's claim.
#[derive(Deserialize)]
struct ChannelFields<'a> {
    channel: Option<&'a str>,
    #[serde(rename = "type")]
    encoding: Option<&'a str>,
    form: Option<&'a str>,
    count: Option<i64>,
    version: Option<&'a str>,
}

/// Reads the channels of the namespace with this label.
pub(super) fn read_channels(state: &StateAt, namespace: &str) -> Result<ChannelStates> {
    let prefix = format!("{namespace}/");
    let mut parts: BTreeMap<&str, StoredElements<'_>> = BTreeMap::new();
    for claim in state.claims().claims_with_prefix(Kind::ChannelElement, &prefix) {
        let broken = |why| damaged("an element of a channel", why);
        let id = claim.id()?.get(prefix.len()..).and_then(|id| id.rsplit_once('/'));
        let number = id.and_then(|(label, id)| Some((label, u64::from_str_radix(id, 16).ok()?)));
        let (label, number) = number.ok_or_else(|| broken("its id has no number"))?;
        let ElementFields { bytes } = claim.fields()?;
        parts.entry(label).or_default().push((number, bytes));
    }
    let mut channels = ChannelStates::new();
    for claim in state.claims().claims_with_prefix(Kind::Channel, &prefix) {
        let label = claim.id()?.get(prefix.len()..).unwrap_or_default();
        let parts = parts.remove(label).unwrap_or_default();
        let broken = |why| damaged(format!("the channel '{label}'"), why);
        let fields: ChannelFields<'_> = claim.fields()?;
        let form = fields.form.and_then(PayloadForm::from_word);
        let (Some(encoding), Some(form), Some(version)) = (fields.encoding, form, fields.version)
        else {
            return Err(broken("a field is missing"));
        };
        if fields.count != Some(parts.len() as i64) {
            return Err(broken("an element is missing"));
        }
        let elements: Vec<&[u8]> = parts.iter().map(|(_, bytes)| *bytes).collect();
        let bytes = join_payload(form, &elements).into();
        let elements = elements_of(form, &elements);
        let ids = parts.iter().map(|(id, _)| *id).collect();
        let payload = TypedBytes { encoding: encoding.to_owned(), bytes };
        let name = fields.channel.unwrap_or(label).to_owned();
        let channel = ChannelState { version: version.to_owned(), payload, form, elements, ids };
        channels.insert(name, Arc::new(channel));
    }
    Ok(channels)
}
