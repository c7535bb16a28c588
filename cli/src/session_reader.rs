//! Reads for commands: opens the store and the session, resolves moments, and finds entities.

use crate::args::value::{EntityArg, MomentArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::id_match;
use crate::text::{TextLength, TextReader};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::error::Error;
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{ClaimEntry, Key, Kind, Timestamp};
use forge_store::store::{FactClock, ResolvedMoment, Session, SourcedFact, StateAt, Store};

/// A store and a session to read.
pub struct SessionReader {
    pub store: Store,
    pub session: Session,
}

impl SessionReader {
    /// Opens the store and the session.
    pub fn begin(context: &Context) -> Result<Self, CommandError> {
        let store = workspace::open_store(context, StoreAccess::Read)?;
        let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
        Ok(Self { store, session })
    }

    /// Resolves a moment; `None` is the head.
    pub fn moment(
        &self,
        context: &Context,
        at: Option<&MomentArg>,
    ) -> Result<ResolvedMoment, CommandError> {
        workspace::moment_or_head(context, &self.session, at)
    }

    /// Returns the head of a branch.
    pub fn head_of(&self, context: &Context, branch: &str) -> Result<ResolvedMoment, CommandError> {
        let moment = format!("branch:{branch}").parse().map_err(CommandError::invalid)?;
        workspace::resolved_moment(context, &self.session, &moment)
    }

    /// Returns the time of a moment; the greatest time for the head.
    pub fn time(&self, context: &Context, at: &MomentArg) -> Result<Timestamp, CommandError> {
        self.time_of(context, &workspace::parsed_moment(context, &self.session, at)?)
    }

    fn time_of(
        &self,
        context: &Context,
        moment: &MomentExpression,
    ) -> Result<Timestamp, CommandError> {
        // A given time is not moved to an event, even if it is before the first one.
        if let MomentExpression { base: MomentBase::Time(time), back: 0 } = moment {
            return Ok(self.session.time_by(time)?);
        }
        let resolved = workspace::resolve_here(context, &self.session, moment)?;
        Ok(resolved.time().unwrap_or(Timestamp::MAX))
    }

    /// Returns the range from one moment to another.
    ///
    /// # Errors
    /// If the first one is after the second one: an empty result would look as if nothing had been
    /// recorded.
    pub fn time_range(
        &self,
        context: &Context,
        since: Option<&MomentArg>,
        until: Option<&MomentArg>,
    ) -> Result<TimeRange, CommandError> {
        let time = |moment| self.time(context, moment);
        let range =
            TimeRange { since: since.map(time).transpose()?, until: until.map(time).transpose()? };
        check_order(since.zip(range.since), until.zip(range.until))?;
        Ok(range)
    }

    /// Returns the time at which a story begins, if it was given, and the moment at which it ends:
    /// the head, if no moment was given.
    ///
    /// # Errors
    /// As for [`SessionReader::time_range`].
    pub fn story_range(
        &self,
        context: &Context,
        since: Option<&MomentArg>,
        at: Option<&MomentArg>,
    ) -> Result<(Option<Timestamp>, ResolvedMoment), CommandError> {
        let begin = since.map(|since| self.time(context, since)).transpose()?;
        let Some(at) = at else { return Ok((begin, self.session.head()?)) };
        let hinted = |error| workspace::hint_moment(&self.session, at, error);
        // It is parsed once, because that may print a note.
        let moment = workspace::parsed_moment(context, &self.session, at).map_err(hinted)?;
        let end = self.time_of(context, &moment).map_err(hinted)?;
        check_order(since.zip(begin), Some((at, end)))?;
        let resolved = workspace::resolve_here(context, &self.session, &moment).map_err(hinted)?;
        Ok((begin, resolved))
    }

    pub fn state(
        &self,
        resolved: &ResolvedMoment,
        as_recorded: bool,
    ) -> Result<StateAt, CommandError> {
        let clock = if as_recorded { FactClock::Recorded } else { FactClock::Happened };
        Ok(self.session.state_by(resolved, clock)?)
    }

    /// Returns a reader of this session's texts.
    pub fn texts(&self, length: TextLength) -> TextReader<'_> {
        TextReader::new(&self.session, length)
    }
}

/// Checks that the first of two moments is not after the second one.
fn check_order(
    since: Option<(&MomentArg, Timestamp)>,
    until: Option<(&MomentArg, Timestamp)>,
) -> Result<(), CommandError> {
    let (Some((since, begin)), Some((until, end))) = (since, until) else { return Ok(()) };
    if begin <= end {
        return Ok(());
    }
    let (since, until) = (since.as_str(), until.as_str());
    Err(CommandError::invalid(format!("'{since}' is after '{until}'"))
        .hinted("exchange the two moments"))
}

/// The first and the last time of what is shown.
pub struct TimeRange {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl TimeRange {
    pub fn contains(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
    }
}

/// A claim or a fact.
#[derive(Clone, Debug)]
pub enum KnownEntity {
    Claim(Key, ClaimEntry),
    Fact(SourcedFact),
}

impl KnownEntity {
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Claim(key, _) => key.kind,
            Self::Fact(known) => known.fact.kind,
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Self::Claim(key, _) => &key.id,
            Self::Fact(known) => &known.fact.id,
        }
    }

    /// The own time of a fact; the time at which a claim was added.
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Claim(_, entry) => entry.added_at,
            Self::Fact(known) => known.fact.at,
        }
    }

    /// Its fields.
    pub const fn value(&self) -> &forge_store::model::Value {
        match self {
            Self::Claim(_, entry) => &entry.value,
            Self::Fact(known) => &known.fact.value,
        }
    }

    /// Its fields, as a mutable reference.
    pub const fn value_mut(&mut self) -> &mut forge_store::model::Value {
        match self {
            Self::Claim(_, entry) => &mut entry.value,
            Self::Fact(known) => &mut known.fact.value,
        }
    }

    pub fn into_id(self) -> String {
        match self {
            Self::Claim(key, _) => key.id,
            Self::Fact(known) => known.fact.id,
        }
    }
}

/// Returns all entities of a kind in a state, sorted by [`KnownEntity::at`], then id.
pub fn entities_of_kind(state: &StateAt, kind: Kind) -> Result<Vec<KnownEntity>, CommandError> {
    if kind.is_claim() {
        let claims = state.claims_of(kind)?.into_iter();
        return Ok(claims
            .map(|(id, entry)| KnownEntity::Claim(Key::new(kind, id), entry))
            .collect());
    }
    Ok(state.facts_of(kind)?.into_iter().map(KnownEntity::Fact).collect())
}

/// Finds an entity in a state. If it is known now, but not at the past moment of the state, the
/// error says so instead of naming the nearest ids.
fn find_at(
    state: &StateAt,
    find: impl Fn(&StateAt) -> Result<KnownEntity, CommandError>,
) -> Result<KnownEntity, CommandError> {
    let error = match find(state) {
        Err(error) if error.kind() == CommandErrorKind::NotFound => error,
        found => return found,
    };
    if state.moment().time().is_none() {
        return Err(error);
    }
    let session = state.session();
    Err(match find(&session.state(&session.head()?)?) {
        Ok(now) => CommandError::not_found(format!(
            "the {} '{}' is not known at that moment",
            now.kind(),
            now.id()
        ))
        .hinted("it is known now: name a later moment, or none"),
        Err(_) => error,
    })
}

/// Finds the entity of this kind by its id or a prefix of it.
///
/// # Errors
///
/// Not found, with the nearest ids; ambiguous.
pub fn find_entity(state: &StateAt, kind: Kind, name: &str) -> Result<KnownEntity, CommandError> {
    find_at(state, |state| entity_of_kind(state, kind, name))
}

fn entity_of_kind(state: &StateAt, kind: Kind, name: &str) -> Result<KnownEntity, CommandError> {
    let mut known = entities_of_kind(state, kind)?;
    let ids: Vec<String> = known.iter().map(|known| known.id().to_owned()).collect();
    let id = workspace::match_id_in(state, kind, name, ids)?;
    let place = known.iter().position(|known| known.id() == id).expect("it is one of these");
    Ok(known.swap_remove(place))
}

/// Finds the entity of any kind with this name.
///
/// # Errors
///
/// Not found, with the nearest ids; ambiguous, also if entities of several kinds have this id.
pub fn find_entity_of_any_kind(
    state: &StateAt,
    name: &EntityArg,
) -> Result<KnownEntity, CommandError> {
    find_at(state, |state| entity_of_any_kind(state, name))
}

fn entity_of_any_kind(state: &StateAt, name: &EntityArg) -> Result<KnownEntity, CommandError> {
    if let Some(kind) = name.kind {
        return entity_of_kind(state, kind, &name.id);
    }
    let mut all = Vec::new();
    for kind in Kind::claims() {
        all.extend(entities_of_kind(state, kind)?);
    }
    all.extend(state.facts()?.into_iter().map(KnownEntity::Fact));
    let ids: Vec<String> = all.iter().map(|known| known.id().to_owned()).collect();
    let mut begins = id_match::ids_beginning_with(&name.id, all, KnownEntity::id);
    match begins.len() {
        1 => Ok(begins.swap_remove(0)),
        0 => {
            let error = CommandError::from(Error::not_found("entity", name.id.clone()));
            let (session, moment) = (state.session(), state.moment());
            if let Some(key) = workspace::removed_claim(session, moment, Kind::claims(), &name.id) {
                return Err(error.hinted(workspace::removed_hint(&key)));
            }
            let nearest = id_match::nearest_names(&name.id, &ids);
            Err(match nearest.as_slice() {
                [] if ids.is_empty() => error.hinted("nothing is recorded here"),
                [] => error.hinted("'forge search' finds it by its words"),
                nearest => error.hinted(id_match::nearest_hint(nearest)),
            })
        }
        _ => {
            let named = |known: &KnownEntity| format!("{}:{}", known.kind(), known.id());
            let matches = begins.iter().map(named).collect();
            let error = CommandError::from(Error::Ambiguous { prefix: name.id.clone(), matches });
            let is_other = |known: &KnownEntity| known.kind() != begins[0].kind();
            Err(match begins.iter().any(is_other) {
                true => error.hinted("'KIND:ID' says which kind is meant"),
                false => error,
            })
        }
    }
}
