//! Reads the pages from the store.

use super::ServerParts;
use super::address::PageAddress;
use crate::args::value::EntityArg;
use crate::commands::status::session_count;
use crate::context::clock;
use crate::error::CommandError;
use crate::report::entity::field_text;
use crate::session_page::read_page;
use crate::session_reader::{KnownEntity, find_entity_of_any_kind};
use crate::text::{TextLength, TextReader};
use crate::workspace::{named_session, resolve};
use chrono::TimeZone;
use forge_report::html::served::{
    ChangeRow, FieldRow, HitRow, SessionCard, diff_page, entity_page, path_part, search_page,
    sessions_page,
};
use forge_report::html::{HtmlOptions, ServedPage, write_page, write_parts};
use forge_report::model::{ReportLimits, ReportModel};
use forge_report::{PageText, PageZone, TextCleaner};
use forge_store::diff::TypedChange;
use forge_store::model::time_grammar::parse_moment;
use forge_store::model::{Kind, SessionKind, Value};
use forge_store::store::{ResolvedMoment, SearchQuery, Session, SessionSummary, entity_title};
use forge_store::story::Story;

/// The maximum number of sessions in the list.
const MAX_SESSIONS: usize = 50;
/// The maximum number of changes in a comparison.
const MAX_CHANGES: usize = 500;
/// The maximum number of hits of a search.
const MAX_HITS: usize = 100;
/// The size in bytes above which a page of a session leaves out details.
const MAX_BYTES: usize = 4_000_000;

/// The changing parts of a page, by the ids of their elements.
pub(super) type PageParts = Vec<(&'static str, String)>;

/// Reads the page that an address names.
pub(super) fn read(parts: &ServerParts, address: &PageAddress) -> Result<String, CommandError> {
    match address {
        PageAddress::Sessions => sessions(parts),
        PageAddress::Session { session, at } => {
            let session = named_session(&parts.store, session)?;
            match at {
                None => page_of_now(parts, &session),
                Some(at) => page_as_of(parts, &session, at),
            }
        }
        PageAddress::Entity { session, name } => {
            entity(parts, &named_session(&parts.store, session)?, name)
        }
        PageAddress::Diff { session, from, to } => {
            diff(parts, &named_session(&parts.store, session)?, from, to)
        }
        PageAddress::Search { session, words } => {
            search(parts, &named_session(&parts.store, session)?, words)
        }
        PageAddress::Events { .. } | PageAddress::Moved(_) => {
            Err(CommandError::internal("this address has no page"))
        }
    }
}

/// Returns the path of the session with this name or id.
pub(super) fn session_path(parts: &ServerParts, session: &str) -> Result<String, CommandError> {
    page_path(&named_session(&parts.store, session)?)
}

fn page_path(session: &Session) -> Result<String, CommandError> {
    Ok(format!("/s/{}", session.summary()?.info.id))
}

fn limits(zone: PageZone) -> ReportLimits {
    ReportLimits { zone, ..ReportLimits::default() }
}

fn model_of_now(parts: &ServerParts, session: &Session) -> Result<ReportModel, CommandError> {
    read_page(session, &session.head()?, &parts.redactor, limits(parts.zone))
}

fn options(path: String, position: u64, live: bool) -> HtmlOptions {
    let served = Some(ServedPage { path, position, live });
    HtmlOptions { max_bytes: Some(MAX_BYTES), served, ..HtmlOptions::default() }
}

fn page_of_now(parts: &ServerParts, session: &Session) -> Result<String, CommandError> {
    // The position is read before the page, so that no write in between is missed.
    let position = parts.store.position()?;
    let model = model_of_now(parts, session)?;
    Ok(write_page(&model, None, &options(page_path(session)?, position, true)).html)
}

/// Reads the changing parts of a page as it is now.
pub(super) fn parts_of_now(parts: &ServerParts, session: &str) -> Result<PageParts, CommandError> {
    let session = named_session(&parts.store, session)?;
    let model = model_of_now(parts, &session)?;
    Ok(write_parts(&model, &options(page_path(&session)?, 0, true)))
}

fn moment(
    parts: &ServerParts,
    session: &Session,
    text: &str,
) -> Result<ResolvedMoment, CommandError> {
    match parts.zone {
        PageZone::Local => moment_in(session, text, &chrono::Local),
        PageZone::Fixed(offset) => moment_in(session, text, &offset),
        PageZone::Utc => moment_in(session, text, &chrono::Utc),
    }
}

fn moment_in<Z: TimeZone>(
    session: &Session,
    text: &str,
    zone: &Z,
) -> Result<ResolvedMoment, CommandError> {
    let now = clock();
    let moment = parse_moment(text, now, zone);
    let moment = moment.map_err(|error| CommandError::invalid(error.to_string()))?;
    resolve(session, &session.resolve_ambiguous(moment)?, now, zone, "forge")
}

fn page_as_of(parts: &ServerParts, session: &Session, at: &str) -> Result<String, CommandError> {
    let resolved = moment(parts, session, at)?;
    let as_of = session.time_of(&resolved)?;
    let limits = ReportLimits { as_of, ..limits(parts.zone) };
    let model = read_page(session, &resolved, &parts.redactor, limits)?;
    let whole = model_of_now(parts, session)?;
    let options = options(page_path(session)?, parts.store.position()?, false);
    Ok(write_page(&model, Some(&whole), &options).html)
}

fn sessions(parts: &ServerParts) -> Result<String, CommandError> {
    let found = parts.store.latest_sessions(&SessionKind::ALL, MAX_SESSIONS)?;
    let cards = found.iter().map(|summary| card(parts, summary));
    let cards = cards.collect::<Result<Vec<_>, _>>()?;
    Ok(sessions_page(&cards, session_count(&parts.store)?, &parts.zone.name()))
}

fn card(parts: &ServerParts, summary: &SessionSummary) -> Result<SessionCard, CommandError> {
    let cleaner = TextCleaner::new(&parts.redactor);
    let session = parts.store.session(&summary.info.id.to_string())?;
    let state = session.state(&session.head()?)?;
    let brief = Story::brief(&state, &forge_agents::resolve)?;
    let clean = |text: &str| cleaner.clean(text);
    Ok(SessionCard {
        name: clean(&summary.info.name),
        path: format!("/s/{}", summary.info.id),
        agent: summary.info.agent.as_deref().map(clean),
        last: summary.last_event.map(|at| parts.zone.date_and_clock(at)),
        last_prompt: brief
            .prompts
            .iter()
            .find(|line| line.kind == Kind::Prompt)
            .map(|line| clean(&line.text)),
        failing: brief.failing.iter().map(|line| clean(&line.text)).collect(),
        confirmed: brief
            .confirmed
            .iter()
            .map(|line| (clean(&line.id), clean(&line.text)))
            .collect(),
        open: brief.gaps.len(),
        uncommitted: brief.uncommitted.len(),
        current: summary.current,
    })
}

fn entity(parts: &ServerParts, session: &Session, name: &str) -> Result<String, CommandError> {
    let cleaner = TextCleaner::new(&parts.redactor);
    let state = session.state(&session.head()?)?;
    let name: EntityArg = name.parse().map_err(CommandError::invalid)?;
    let found = find_entity_of_any_kind(&state, &name)?;
    let source = match &found {
        KnownEntity::Fact(known) => known.source.clone(),
        KnownEntity::Claim(..) => None,
    };
    let mut texts = TextReader::new(session, TextLength::Whole);
    let value = texts.resolve(source.as_deref(), found.value().clone())?;
    let title = format!("{} {}", found.kind().name().replace('_', " "), found.id());
    let fields = value.as_map().into_iter().flatten();
    let rows = fields.filter(|(_, value)| **value != Value::Null).map(|(name, value)| {
        let may_be_markdown = matches!(found.kind(), Kind::Message | Kind::Prompt | Kind::Agent);
        FieldRow {
            markdown: may_be_markdown && matches!(name.as_str(), "text" | "result" | "prompt"),
            name: cleaner.clean(&name.replace('_', " ")),
            text: cleaner.clean(&value_text(name, value)),
        }
    });
    let at = format!("{} {}", parts.zone.date_and_clock(found.at()), parts.zone.name());
    let rows: Vec<FieldRow> = rows.collect();
    Ok(entity_page(&page_path(session)?, &cleaner.clean(&title), &at, &rows))
}

fn value_text(field: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Float(_) => field_text(field, value),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

fn diff(
    parts: &ServerParts,
    session: &Session,
    from: &str,
    to: &str,
) -> Result<String, CommandError> {
    let cleaner = TextCleaner::new(&parts.redactor);
    let moments = (moment(parts, session, from)?, moment(parts, session, to)?);
    let found = session.compare(&moments.0, &moments.1)?;
    let path = page_path(session)?;
    let now = session.state(&session.head()?)?;
    let listed: Vec<&TypedChange> =
        found.changes.iter().filter(|change| is_listed(change)).collect();
    let rows = listed.iter().take(MAX_CHANGES).map(|change| {
        let text = |value: &Option<Value>| side(&cleaner, change, value.as_ref());
        let is_there =
            !change.kind.is_claim() || now.claim(change.kind, &change.id).ok().flatten().is_some();
        let name = format!("{}:{}", change.kind.name(), change.id);
        ChangeRow {
            kind: change.kind.name(),
            id: cleaner.clean(&change.id),
            path: is_there.then(|| format!("{path}/e/{}", path_part(&name))),
            field: change.field.as_deref().map(|field| cleaner.clean(&field.replace('_', " "))),
            old: text(&change.old),
            new: text(&change.new),
        }
    });
    let rows: Vec<ChangeRow> = rows.collect();
    let left_out = listed.len() - rows.len();
    let moments = (cleaner.clean(from), cleaner.clean(to));
    let summary = cleaner.clean(&found.summary);
    Ok(diff_page(&path, (&moments.0, &moments.1), &summary, &rows, left_out))
}

/// Returns whether a change is listed. Messages that only call tools have no text.
fn is_listed(change: &TypedChange) -> bool {
    let mut values = [&change.old, &change.new].into_iter().flatten();
    change.kind != Kind::Message
        || change.field.is_some()
        || values.any(|value| !entity_title(change.kind, value).is_empty())
}

/// Returns one side of a change: the value of a field, or the title of an entity that was added or
/// removed. `None` if it is empty.
fn side(
    cleaner: &TextCleaner<'_>,
    change: &TypedChange,
    value: Option<&Value>,
) -> Option<PageText> {
    let value = value.filter(|value| **value != Value::Null)?;
    let text = match &change.field {
        Some(field) => value_text(field, &crate::text::with_previews(value)),
        None => entity_title(change.kind, value),
    };
    Some(cleaner.clean(&text)).filter(|text| !text.is_empty())
}

fn search(parts: &ServerParts, session: &Session, words: &str) -> Result<String, CommandError> {
    let cleaner = TextCleaner::new(&parts.redactor);
    let path = page_path(session)?;
    if words.trim().is_empty() {
        return Ok(search_page(&path, &cleaner.clean(""), Some(0), &[]));
    }
    let mut query = SearchQuery::parse(words)?;
    query.limit = MAX_HITS;
    let found =
        parts.store.search(std::slice::from_ref(session), &query, &forge_agents::resolve)?;
    let rows = found.hits.into_iter().map(|hit| {
        let name = hit.kind.map(|kind| format!("{}:{}", kind.name(), hit.id));
        HitRow {
            kind: hit.kind_word(),
            id: cleaner.clean(&hit.id),
            path: name.map(|name| format!("{path}/e/{}", path_part(&name))),
            at: parts.zone.date_and_clock(hit.at),
            snippet: cleaner.clean(&hit.snippet),
        }
    });
    let rows: Vec<HitRow> = rows.collect();
    Ok(search_page(&path, &cleaner.clean(words), found.total, &rows))
}
