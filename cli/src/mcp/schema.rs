//! JSON schemas of arguments and answers, and types with a schema for the words of the store's
//! model.

use forge_store::model::Kind;
use forge_store::model::claim::VocabularyWord;
use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use std::borrow::Cow;

/// One of the words that a field may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct VocabularyTerm<W>(pub(super) W);

impl<'de, W: VocabularyWord> Deserialize<'de> for VocabularyTerm<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        W::from_word(&word).map(Self).ok_or_else(|| {
            let known = W::WORDS.join(", ");
            de::Error::custom(format!("'{word}' is no {}: it is one of {known}", W::WHAT))
        })
    }
}

impl<W: VocabularyWord> JsonSchema for VocabularyTerm<W> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        W::WHAT.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": W::WORDS })
    }
}

/// A kind of fact or claim.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct KindWord(pub(super) Kind);

impl JsonSchema for KindWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "kind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

/// Returns the schema of arguments: inlined, and without null for optional fields, so that every
/// client can read it.
pub(super) fn input<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = generate::<T>(settings.with(|settings| settings.inline_subschemas = true));
    schema.values_mut().for_each(without_null);
    schema
}

/// Returns the schema of an answer.
pub(super) fn output<T: JsonSchema>() -> JsonObject {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return JsonObject::new() };
    // Clients do not need the names and docs of types, the formats of numbers, and the line breaks
    // of docs.
    schema.remove("title");
    schema.remove("description");
    schema.values_mut().for_each(simplify);
    schema
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("type") && fields.get("format").is_some_and(Value::is_string) {
                fields.remove("format");
            }
            if let Some(Value::String(about)) = fields.get_mut("description") {
                *about = about.replace('\n', " ");
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(without_null);
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            let chosen = fields.get_mut("anyOf").and_then(Value::as_array_mut).and_then(|any| {
                any.retain(|one| one.get("type") != Some(&"null".into()));
                match any.as_mut_slice() {
                    [Value::Object(one)] => Some(std::mem::take(one)),
                    _ => None,
                }
            });
            if let Some(chosen) = chosen {
                fields.remove("anyOf");
                for (name, value) in chosen {
                    fields.entry(name).or_insert(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}
