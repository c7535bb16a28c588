//! The sessions in the refs. Every process reads all of them before it answers, but usually needs
//! only one. So their bytes are only validated at first, and a session is decoded when it is
//! requested.

use super::SessionRefs;
use super::session_codec::{SESSION_BYTES, check_session, decode, encode};
use crate::model::{SessionId, SessionNumber};
use memchr::memmem::Finder;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The sessions of a store by number.
#[derive(Clone, Default)]
pub struct SessionTable {
    /// The encoded sessions that the table was read from.
    bytes: Arc<Vec<u8>>,
    slots: Vec<SessionSlot>,
    names: NameIndex,
}

/// The sessions of each name. It is made after some lookups: a command that looks up one name finds
/// it faster in the bytes.
#[derive(Default)]
struct NameIndex {
    lookups: AtomicUsize,
    made: OnceLock<Arc<HashMap<String, Vec<SessionNumber>>>>,
}

impl Clone for NameIndex {
    fn clone(&self) -> Self {
        let lookups = self.lookups.load(Ordering::Relaxed).into();
        Self { lookups, made: self.made.clone() }
    }
}

#[derive(Clone)]
struct SessionSlot {
    /// The range of its bytes; `None` if it was changed since.
    place: Option<Range<u32>>,
    /// The decoded session, if it was requested before.
    made: OnceLock<Arc<SessionRefs>>,
}

impl SessionSlot {
    fn of(session: SessionRefs) -> Self {
        Self { place: None, made: OnceLock::from(Arc::new(session)) }
    }

    fn bytes<'a>(&self, all: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.place.as_ref()?;
        all.get(place.start as usize..place.end as usize)
    }

    fn get(&self, all: &[u8]) -> &Arc<SessionRefs> {
        self.made.get_or_init(|| {
            let bytes = self.bytes(all).expect("what was not made stands in the bytes");
            Arc::new(decode::<true>(bytes).expect("it was looked through when it was read"))
        })
    }
}

impl SessionTable {
    /// Returns the number of sessions, including removed ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there are no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the session with this number.
    #[must_use]
    pub fn get(&self, number: SessionNumber) -> Option<&SessionRefs> {
        self.slots.get(number as usize).map(|slot| &**slot.get(&self.bytes))
    }

    /// Returns the session with this number for modification. Its name must not be changed.
    pub fn get_mut(&mut self, number: SessionNumber) -> Option<&mut SessionRefs> {
        let slot = self.slots.get_mut(number as usize)?;
        slot.get(&self.bytes);
        slot.place = None;
        slot.made.get_mut().map(Arc::make_mut)
    }

    /// Replaces the session with this number, if there is one.
    pub fn replace(&mut self, number: SessionNumber, session: SessionRefs) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            *slot = SessionSlot::of(session);
            self.names = NameIndex::default();
        }
    }

    /// Adds a session; its number is the count of sessions before it.
    pub fn push(&mut self, session: SessionRefs) {
        if let Some(names) = self.names.made.get_mut() {
            let number = self.slots.len() as SessionNumber;
            Arc::make_mut(names).entry(session.info.name.clone()).or_default().push(number);
        }
        self.slots.push(SessionSlot::of(session));
    }

    /// Iterates over all sessions.
    pub fn all(&self) -> impl Iterator<Item = (SessionNumber, &SessionRefs)> {
        (0..).zip(&self.slots).map(|(number, slot)| (number, &**slot.get(&self.bytes)))
    }

    /// Iterates over the sessions for which `wanted` is true, for modification. The others are not
    /// touched.
    pub fn filter_mut(
        &mut self,
        wanted: impl Fn(&SessionRefs) -> bool,
    ) -> impl Iterator<Item = (SessionNumber, &mut SessionRefs)> {
        // A sweep and a purge change names.
        self.names = NameIndex::default();
        let bytes = &self.bytes;
        (0..).zip(&mut self.slots).filter_map(move |(number, slot)| {
            if !wanted(slot.get(bytes)) {
                return None;
            }
            slot.place = None;
            Some((number, Arc::make_mut(slot.made.get_mut()?)))
        })
    }

    /// Iterates over the sessions that may contain this text or id: all that do, and perhaps
    /// others. The rest need not be decoded.
    pub fn mentioning<'refs>(
        &'refs self,
        text: &[u8],
    ) -> impl Iterator<Item = (SessionNumber, &'refs SessionRefs)> + use<'refs> {
        let finder = Finder::new(text).into_owned();
        let may = move |slot: &SessionSlot| {
            slot.bytes(&self.bytes).is_none_or(|bytes| finder.find(bytes).is_some())
        };
        let found = (0..).zip(&self.slots).filter(move |(_, slot)| may(slot));
        found.map(|(number, slot)| (number, &**slot.get(&self.bytes)))
    }

    /// Returns the sessions with exactly this name. After a few lookups the cost of one does not
    /// depend on the number of sessions.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<(SessionNumber, &SessionRefs)> {
        const LOOKUPS_IN_BYTES: usize = 16;
        let has_name = |(_, session): &(SessionNumber, &SessionRefs)| session.info.name == name;
        let names = &self.names;
        if names.made.get().is_none()
            && names.lookups.fetch_add(1, Ordering::Relaxed) < LOOKUPS_IN_BYTES
        {
            return self.mentioning(name.as_bytes()).filter(has_name).collect();
        }
        let made = names.made.get_or_init(|| {
            let mut made: HashMap<String, Vec<SessionNumber>> = HashMap::new();
            for (number, session) in self.all() {
                made.entry(session.info.name.clone()).or_default().push(number);
            }
            Arc::new(made)
        });
        let numbers = made.get(name).into_iter().flatten();
        numbers.filter_map(|number| Some((*number, self.get(*number)?))).collect()
    }

    /// Returns the sessions with this id. At most one is live; the others are removed.
    pub fn of_id(&self, id: SessionId) -> impl Iterator<Item = (SessionNumber, &SessionRefs)> {
        self.mentioning(id.as_bytes()).filter(move |(_, session)| session.info.id == id)
    }
}

impl FromIterator<SessionRefs> for SessionTable {
    fn from_iter<I: IntoIterator<Item = SessionRefs>>(sessions: I) -> Self {
        let slots = sessions.into_iter().map(SessionSlot::of).collect();
        Self { slots, ..Self::default() }
    }
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.all()).finish()
    }
}

impl PartialEq for SessionTable {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, two): (&SessionSlot, &SessionSlot)| {
            let bytes = (one.bytes(&self.bytes), two.bytes(&other.bytes));
            matches!(bytes, (Some(one), Some(two)) if one == two)
                || one.get(&self.bytes) == two.get(&other.bytes)
        };
        self.len() == other.len() && self.slots.iter().zip(&other.slots).all(same)
    }
}

impl Serialize for SessionTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct EncodedSession<'a>(&'a SessionTable, &'a SessionSlot);
        impl Serialize for EncodedSession<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Self(SessionTable { bytes, .. }, slot) = self;
                match slot.bytes(bytes) {
                    Some(bytes) => serializer.serialize_bytes(bytes),
                    None => serializer.serialize_bytes(&encode(slot.get(bytes))),
                }
            }
        }
        serializer.collect_seq(self.slots.iter().map(|slot| EncodedSession(self, slot)))
    }
}

impl<'de> Deserialize<'de> for SessionTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SessionTableVisitor;
        impl<'de> Visitor<'de> for SessionTableVisitor {
            type Value = SessionTable;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("sessions")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SessionTable, A::Error> {
                let count = list.size_hint().unwrap_or(0).min(MAX_EXPECTED);
                let mut bytes = Vec::with_capacity(count * SESSION_BYTES);
                let mut slots = Vec::with_capacity(count);
                while let Some(slot) = list.next_element_seed(SessionSeed { bytes: &mut bytes })? {
                    slots.push(slot);
                }
                Ok(SessionTable { bytes: Arc::new(bytes), slots, names: NameIndex::default() })
            }
        }
        deserializer.deserialize_seq(SessionTableVisitor)
    }
}

/// Maximum number of slots allocated ahead: a damaged count must not allocate without limit.
const MAX_EXPECTED: usize = 4096;

/// Reads one session and appends its bytes to a buffer.
struct SessionSeed<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for SessionSeed<'_> {
    type Value = SessionSlot;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SessionSlot, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SessionSeed<'_> {
    type Value = SessionSlot;
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a session")
    }
    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<SessionSlot, E> {
        check_session(bytes).map_err(E::custom)?;
        let place = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(E::custom);
        let start = place(self.bytes)?;
        self.bytes.extend_from_slice(bytes);
        Ok(SessionSlot { place: Some(start..place(self.bytes)?), made: OnceLock::new() })
    }
    // The first version of the format encoded sessions as maps.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SessionSlot, A::Error> {
        let session = SessionRefs::deserialize(MapAccessDeserializer::new(map))?;
        check_session(&encode(&session)).map_err(A::Error::custom)?;
        Ok(SessionSlot::of(session))
    }
}

#[cfg(test)]
mod tests {
    use super::super::session_codec::tests::session;
    use super::*;
    use crate::format::codec::{pack, unpack};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> SessionTable {
        unpack("sessions", bytes).unwrap()
    }

    proptest! {
        #[test]
        fn sessions_come_back_whether_they_were_asked_for_or_not(
            all in prop::collection::vec(session(), 0..5),
            asked in prop::collection::vec(0..5_u32, 0..5),
        ) {
            let written = pack(&all.iter().cloned().collect::<SessionTable>());
            let mut found = read(&written);
            prop_assert_eq!(&read(&written), &found);
            for number in &asked {
                prop_assert_eq!(found.get(*number), all.get(*number as usize));
            }
            prop_assert_eq!(&pack(&found), &written);
            prop_assert_eq!(&read(&written), &found);
            for number in asked {
                if let Some(session) = found.get_mut(number) {
                    session.facts += 1;
                }
            }
            let again = read(&pack(&found));
            prop_assert_eq!(&again, &found);
            prop_assert!(again.all().map(|(_, session)| session).eq(found.all().map(|(_, session)| session)));
            let as_first: Vec<_> = found.all().map(|(_, session)| session.clone()).collect();
            prop_assert_eq!(&read(&pack(&as_first)), &found);
        }

        #[test]
        fn sessions_are_found_by_name_however_often_names_are_looked_up(
            all in prop::collection::vec(session(), 1..5),
            more in session(),
            place in 0..5_usize,
        ) {
            let mut table = read(&pack(&all.iter().cloned().collect::<SessionTable>()));
            let named = |table: &SessionTable, name: &str| -> Vec<SessionNumber> {
                table.named(name).into_iter().map(|(number, _)| number).collect()
            };
            let wanted = |table: &SessionTable, name: &str| -> Vec<SessionNumber> {
                table.all().filter(|(_, one)| one.info.name == name).map(|(number, _)| number).collect()
            };
            for round in 0..40 {
                if round == 20 {
                    table.push(more.clone());
                }
                if round == 30 {
                    for (_, session) in table.filter_mut(|_| true) {
                        session.info.name.push('x');
                    }
                }
                let name = match table.get((place % table.len()) as SessionNumber) {
                    Some(session) if round % 3 > 0 => session.info.name.clone(),
                    _ => more.info.name.clone(),
                };
                prop_assert_eq!(named(&table, &name), wanted(&table, &name), "{}", round);
                prop_assert_eq!(named(&table.clone(), &name), wanted(&table, &name));
            }
        }

        #[test]
        fn who_mentions_a_text_or_an_id_is_found(all in prop::collection::vec(session(), 1..5), place: prop::sample::Index) {
            let wanted = place.get(&all);
            let sessions = read(&pack(&all.iter().cloned().collect::<SessionTable>()));
            for text in [wanted.info.id.as_bytes(), wanted.info.name.as_bytes()] {
                let mut found = sessions.mentioning(text);
                prop_assert!(found.any(|(_, session)| session == wanted));
            }
            let source = wanted.bookmarks.iter().map(|bookmark| &bookmark.source);
            for text in wanted.info.agent_session.iter().chain(source) {
                prop_assert!(sessions.mentioning(text.as_bytes()).any(|(_, session)| session == wanted));
            }
        }
    }
}
