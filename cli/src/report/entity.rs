//! Reports of claims and facts: lists, and one entity with all its fields.

use crate::error::CommandError;
use crate::output::{Report, ReportForm, Screen, TableCell, TextTable, Tone, cells};
use crate::session_reader::KnownEntity;
use crate::text::{TextReader, common_folder, in_one_line, name_title};
use forge_store::model::{FieldMap, Kind, Timestamp, Value, claim};
use forge_store::store::entity_title;
use forge_systems::graph;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::borrow::Cow;
use std::mem;

/// The name by which a template refers to the title of an entity.
const TITLE: &str = "says";

/// An entity with all its fields, in the order in which they are shown.
#[derive(Clone, Debug)]
pub struct EntityJson {
    pub kind: Kind,
    pub id: String,
    /// The own time of a fact; the time at which a claim was added.
    pub at: Timestamp,
    /// Its title in one line.
    pub title: String,
    /// All fields, even null ones, beginning with the id.
    pub fields: Vec<(Cow<'static, str>, Value)>,
}

impl EntityJson {
    /// Creates the report of an entity. `texts` reads the texts that its fields refer to.
    pub fn new(mut known: KnownEntity, texts: &mut TextReader<'_>) -> Result<Self, CommandError> {
        let title = entity_title(known.kind(), known.value());
        let source = match &known {
            KnownEntity::Claim(..) => None,
            KnownEntity::Fact(fact) => fact.source.clone(),
        };
        let value = texts.resolve(source.as_deref(), mem::take(known.value_mut()))?;
        let readable = match known.kind() {
            Kind::ChannelElement => graph::readable_element(&value),
            _ => None,
        };
        let mut fields = fields_of(&known, value);
        if let Some(values) = readable {
            add_field(&mut fields, "value", Value::List(values));
        }
        Ok(Self { kind: known.kind(), at: known.at(), id: known.into_id(), title, fields })
    }

    /// Returns the field with this name, unless it is null.
    pub fn field(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).filter(|value| **value != Value::Null)
    }

    /// Returns the text of a field for a template, in one line; empty if the field is null.
    pub fn template_text(&self, name: &str) -> String {
        match self.field(name) {
            Some(value) => field_text(name, value).replace('\n', " "),
            None if name == TITLE => self.title.clone(),
            None => String::new(),
        }
    }

    /// Whether a template can name this field.
    pub fn has_field(&self, name: &str) -> bool {
        name == TITLE || self.fields.iter().any(|(known, _)| known == name)
    }

    /// Prints the kind and the id, then all fields that are not null.
    pub fn print_fields(&self, screen: &mut Screen) {
        screen.put(Tone::Heading, &format!("{} ", self.kind.name().replace('_', " ")));
        screen.line(Tone::Id, &self.id);
        for (name, value) in self.fields.iter().skip(1) {
            let is_time = name == "at" || name == "created_at";
            let text = match value {
                Value::Null => continue,
                Value::Text(text) => match Timestamp::parse_rfc3339(text) {
                    Some(time) if is_time => screen.time(time),
                    _ => text.clone(),
                },
                // The values of an agent framework are nested, and hard to read in one line.
                Value::List(values) if name == "value" && self.kind == Kind::ChannelElement => {
                    let values = values.iter().map(serde_json::to_string_pretty);
                    values.map(Result::unwrap_or_default).collect::<Vec<_>>().join("\n")
                }
                other => field_text(name, other),
            };
            let label = name.replace('_', " ");
            if text.contains('\n') {
                screen.dim(&format!("  {label}:"));
                screen.paragraph(Tone::Plain, 4, &text);
            } else {
                screen.put(Tone::Dim, &format!("  {label}: "));
                screen.line(word_tone(name, &text), &text);
            }
        }
    }
}

impl Serialize for EntityJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Returns the fields to show: the fields of the entity, and those that are computed.
fn fields_of(known: &KnownEntity, value: Value) -> Vec<(Cow<'static, str>, Value)> {
    let schema = claim::fields(known.kind());
    let mut own = match value {
        Value::Map(fields) => fields,
        _ => FieldMap::new(),
    };
    let mut fields = Vec::with_capacity(3 + schema.len() + own.len());
    add_field(&mut fields, "id", known.id().into());
    if let KnownEntity::Fact(fact) = known {
        add_field(&mut fields, "at", fact.fact.at.to_string().into());
    }
    for field in schema {
        add_field(&mut fields, field.name, own.remove(field.name).unwrap_or_default());
    }
    let is_fact = matches!(known, KnownEntity::Fact(_));
    own.retain(|name, _| name != "id" && !(is_fact && name == "at"));
    fields.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
    match known {
        KnownEntity::Claim(_, entry) => {
            add_field(&mut fields, "created_at", entry.added_at.to_string().into());
        }
        KnownEntity::Fact(_) => add_field(&mut fields, "source", Value::Null),
    }
    fields
}

/// Adds a field unless its name is used: a field of the entity may have the name of a computed
/// field.
fn add_field(fields: &mut Vec<(Cow<'static, str>, Value)>, name: &'static str, value: Value) {
    if fields.iter().all(|(known, _)| known != name) {
        fields.push((name.into(), value));
    }
}

/// Formats a value: in one line, unless it contains a text of several lines.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Text(text) => text.clone(),
        Value::List(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::Float(number) => format!("{number}"),
        Value::Bytes(bytes) => super::import::size_text(bytes.len() as u64),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// Formats a field like [`value_text`]; a confidence or strength has two decimals.
pub fn field_text(field: &str, value: &Value) -> String {
    match value {
        Value::Float(share) if matches!(field, "confidence" | "strength") => format!("{share:.2}"),
        other => value_text(other),
    }
}

fn word_tone(field: &str, word: &str) -> Tone {
    if !matches!(field, "status" | "criticality" | "outcome") {
        return Tone::Plain;
    }
    match word {
        "confirmed" | "passed" | "filled" | "completed" => Tone::Good,
        "rejected" | "failed" | "error" | "timed_out" | "critical" | "unfillable" => Tone::Bad,
        "under_test" | "high" | "filling" | "refused" | "interrupted" => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// The columns of a kind's table besides id, time and title.
const fn columns(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Hypothesis => &["status", "confidence", "parent", "reason"],
        Kind::Evidence => &["hypothesis", "kind", "strength"],
        Kind::Belief => &["kind", "confidence", "in_doubt"],
        Kind::Dependency => &["from", "type", "to", "strength"],
        Kind::Gap => &["criticality", "status", "type"],
        Kind::Command => &["exit_code", "outcome"],
        Kind::Verification => &["status", "exit_code"],
        Kind::Measurement => &["value", "unit"],
        Kind::Message => &["role"],
        Kind::Task => &["status", "owner"],
        Kind::Agent => &["type", "status"],
        Kind::Inference => &["rule", "promoted"],
        Kind::Tool => &["outcome"],
        Kind::Notice => &["type"],
        Kind::Code => &["lines_added", "lines_removed"],
        _ => &[],
    }
}

fn column_text(entity: &EntityJson, column: &str) -> String {
    match (column, entity.field(column)) {
        ("in_doubt", Some(Value::Bool(true))) => "in doubt".to_owned(),
        ("in_doubt", _) => String::new(),
        // This is the usual outcome.
        ("outcome", Some(Value::Text(word))) if word == "finished" => String::new(),
        (name, value) => value.map(|value| field_text(name, value)).unwrap_or_default(),
    }
}

/// Prints entities of one kind as a table. A column that is empty in all rows is omitted.
pub fn table(kind: Kind, entities: &[EntityJson], screen: &mut Screen) {
    let is_used = |column: &&str| entities.iter().any(|one| !column_text(one, column).is_empty());
    let columns: Vec<&str> = columns(kind).iter().copied().filter(is_used).collect();
    let (reason, columns): (Vec<&str>, Vec<&str>) =
        columns.into_iter().partition(|column| *column == "reason");
    let names = ["id", "time"].into_iter().chain(columns.iter().copied()).chain(["says"]);
    let titles: Vec<String> = names.chain(reason.iter().copied()).map(name_title).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let says = columns.len() + 2;
    let mut table = TextTable::new(&titles).flexible(says);
    if !reason.is_empty() {
        table = table.flexible(says + 1);
    }
    let ids: Vec<&str> = entities.iter().map(|entity| entity.id.as_str()).collect();
    let ids = if screen.width().is_some() { short_ids(&ids) } else { ids };
    let (folder, titles) = titles_without_folder(kind, entities);
    for ((entity, id), title) in entities.iter().zip(ids).zip(titles) {
        let mut row = cells![Id: id, Dim: screen.column_time(entity.at)];
        for column in &columns {
            let text = column_text(entity, column);
            row.push(TableCell::new(word_tone(column, &text), text));
        }
        row.push(TableCell::plain(in_one_line(&title)));
        row.extend(reason.iter().map(|name| TableCell::new(Tone::Dim, column_text(entity, name))));
        table.row(row);
    }
    screen.table(&table);
    if !folder.is_empty() {
        screen.dim(&format!("(files in {folder})"));
    }
}

/// The minimum length of a shortened id, in bytes.
const MIN_SHORT_ID: usize = 12;

/// Shortens each id to a prefix that no other id begins with. An id is not shortened if another id
/// begins with it, or if that would save fewer than 3 bytes.
fn short_ids<'i>(ids: &[&'i str]) -> Vec<&'i str> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let short = |id: &&'i str| {
        let place = sorted.binary_search(id).unwrap_or_default();
        let before = place.checked_sub(1).and_then(|before| sorted.get(before));
        let others = [before, sorted.get(place + 1)].into_iter().flatten();
        let shared = others.map(|other| common(id, other)).max().unwrap_or_default();
        let end = (MIN_SHORT_ID.max(shared + 1)..id.len()).find(|end| id.is_char_boundary(*end));
        end.filter(|end| end + 2 < id.len()).and_then(|end| id.get(..end)).unwrap_or(id)
    };
    ids.iter().map(short).collect()
}

/// Returns the common folder of the files that the entities name, and the titles without this
/// folder. With the folder, a long path would be cut at its end, where the paths differ.
fn titles_without_folder(kind: Kind, entities: &[EntityJson]) -> (String, Vec<String>) {
    let names_file = matches!(kind, Kind::Code | Kind::Tool);
    let path = |entity: &EntityJson| match entity.field("path") {
        Some(Value::Text(path)) if names_file && path.starts_with('/') => Some(path.clone()),
        _ => None,
    };
    let paths: Vec<String> = entities.iter().filter_map(path).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let folder = common_folder(&paths).to_owned();
    let title = |entity: &EntityJson| match folder.as_str() {
        "" => entity.title.clone(),
        folder => entity.title.replacen(folder, "", 1),
    };
    let titles = entities.iter().map(title).collect();
    (folder, titles)
}

/// Entities of one kind.
#[derive(Debug)]
pub struct EntityListReport {
    pub session: String,
    pub kind: Kind,
    /// The moment; null if nothing has happened.
    pub at: Option<Timestamp>,
    pub entities: Vec<EntityJson>,
    /// How many entities of this kind there are, with those that the options left out.
    pub total: usize,
    /// How many matching entities `--limit` left out.
    pub more: usize,
    /// The lines that a template makes of the entities. They are printed instead of a table.
    pub lines: Option<String>,
}

impl Serialize for EntityListReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("session", &self.session)?;
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry(self.kind.plural(), &self.entities)?;
        if self.more > 0 {
            map.serialize_entry("more", &self.more)?;
        }
        map.end()
    }
}

/// Returns the noun for several entities of a kind, as in the help of its verbs.
fn plural_noun(kind: Kind) -> String {
    match kind {
        Kind::Agent => "sub-agents".to_owned(),
        Kind::Tool => "tool calls".to_owned(),
        kind => kind.plural().replace('_', " "),
    }
}

impl Report for EntityListReport {
    fn form(&self) -> ReportForm<'_> {
        self.lines.as_deref().map_or(ReportForm::Screen, ReportForm::Text)
    }

    fn human(&self, screen: &mut Screen) {
        if self.entities.is_empty() && self.more == 0 {
            let what = plural_noun(self.kind);
            let session = &self.session;
            screen.plain(&match self.total {
                0 => format!("No {what} in the session '{session}'."),
                total => format!(
                    "No matching {what} in the session '{session}'; the whole list has {total}."
                ),
            });
            return;
        }
        if !self.entities.is_empty() {
            table(self.kind, &self.entities, screen);
        }
        if self.more > 0 {
            screen.dim(&format!("{} more with a greater '--limit'", self.more));
        }
    }
}

#[derive(Debug)]
pub struct EntityShowReport {
    pub session: String,
    /// The moment.
    pub at: Option<Timestamp>,
    pub entity: EntityJson,
    /// For a hypothesis: the evidence for or against it.
    pub evidence: Option<Vec<EntityJson>>,
}

impl Serialize for EntityShowReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("session", &self.session)?;
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry(self.entity.kind.name(), &self.entity)?;
        if let Some(evidence) = &self.evidence {
            map.serialize_entry("evidence", evidence)?;
        }
        map.end()
    }
}

impl Report for EntityShowReport {
    fn human(&self, screen: &mut Screen) {
        self.entity.print_fields(screen);
        if let Some(evidence) = self.evidence.as_ref().filter(|evidence| !evidence.is_empty()) {
            screen.heading("Evidence");
            table(Kind::Evidence, evidence, screen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::{ClaimEntry, Fact, FactOrigin, Key};
    use forge_store::store::SourcedFact;

    /// Returns the values that are shown under each of these names.
    fn shown(known: &KnownEntity, names: &[&str]) -> Vec<Vec<String>> {
        let fields = fields_of(known, known.value().clone());
        let of = |name| fields.iter().filter(move |(found, _)| found == name);
        names.iter().map(|&name| of(name).map(|(_, value)| value_text(value)).collect()).collect()
    }

    #[test]
    fn ids_of_a_list_are_shortened_but_stay_different() {
        for (ids, short) in [
            (&["H1", "H12"][..], &["H1", "H12"][..]),
            (&["toolu_01YHNT5v5uDg79", "toolu_01E3Ku89zV1faQ"], &["toolu_01YHNT", "toolu_01E3Ku"]),
            (
                &["toolu_01DUo8oVrFih", "toolu_01DUo8oVrFih/2", "toolu_01DUo8oXrFih"],
                &["toolu_01DUo8oVrFih", "toolu_01DUo8oVrFih/2", "toolu_01DUo8oX"],
            ),
            (&["eine längere Kennung", "eine längert"], &["eine längere", "eine längert"]),
        ] {
            assert_eq!(short_ids(ids), short);
        }
    }

    #[test]
    fn a_field_with_the_name_of_a_computed_field_is_shown_once() {
        let time = Timestamp::from_micros(0);
        let value = Value::from([
            ("at", "own".into()),
            ("created_at", "own".into()),
            ("id", "own".into()),
            ("source", "own".into()),
            ("says", "this".into()),
        ]);
        let key = Key::new(Kind::Note, "n1");
        let claim = KnownEntity::Claim(key, ClaimEntry { added_at: time, value: value.clone() });
        assert_eq!(
            shown(&claim, &["id", "at", "created_at", "source", "says"]),
            [vec!["n1"], vec!["own"], vec!["own"], vec!["own"], vec!["this"]]
        );
        let fact = Fact {
            kind: Kind::Program,
            id: "p1".to_owned(),
            at: time,
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: time,
            value,
        };
        let fact = KnownEntity::Fact(SourcedFact { fact, source: None });
        assert_eq!(
            shown(&fact, &["id", "at", "created_at", "source", "says"]),
            [vec!["p1"], vec!["1970-01-01T00:00:00Z"], vec!["own"], vec!["own"], vec!["this"]]
        );
    }
}
