//! Edits JSON settings, with or without comments, in place: everything else in the text stays as it
//! was.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};

/// Settings that cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum UnusableSettings {
    /// They cannot be parsed.
    #[error("it is not {0}: {1}")]
    Broken(&'static str, String),
    /// They are not an object as a whole.
    #[error("it holds no JSON object")]
    NoObject,
    /// A value in them has another type than expected.
    #[error("'{path}' in it is not {wanted}")]
    Unlike {
        /// The path of the value.
        path: String,
        /// The expected type.
        wanted: &'static str,
    },
    /// A member with that name and another value exists.
    #[error("'{path}' in it belongs to another program")]
    Taken { path: String },
}

/// A wanted change of the settings.
#[derive(Clone, Debug)]
pub enum JsonEdit {
    /// Adds the member at `path` to its object, if the object has none with that name.
    Member {
        /// Its path, with its own name last.
        path: Vec<String>,
        value: CstInputValue,
        /// Whether a member with that name may exist with another value, which is then kept.
        keep: bool,
    },
    /// Adds an element to the end of the array at `path`, if it has no equal one.
    Element {
        /// The path of the array.
        path: Vec<String>,
        /// The element.
        value: CstInputValue,
    },
}

/// The accepted extensions of JSON: comments and trailing commas, which the agents accept too.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};
/// A mark that some editors write at the beginning of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Splits off the mark, which is empty if there is none.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 })
}

fn parse(text: &str) -> Result<CstRootNode, UnusableSettings> {
    CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| UnusableSettings::Broken("JSON", error.to_string()))
}

/// Returns the text after an edit; the same text if the entry exists.
pub fn apply_edit(text: &str, edit: &JsonEdit) -> Result<String, UnusableSettings> {
    let (mark, text) = split_mark(text);
    let root = parse(text)?;
    let top = match root.value() {
        None => root.object_value_or_set(),
        Some(_) => root.object_value().ok_or(UnusableSettings::NoObject)?,
    };
    match edit {
        JsonEdit::Member { path, value, keep } => {
            let (name, above) = path.split_last().ok_or(UnusableSettings::NoObject)?;
            let object = object_at(top, above)?;
            match object.get(name).map(|member| member.value()) {
                None => {
                    object.append(name, value.clone());
                }
                Some(found) => {
                    if *keep || found.is_some_and(|found| is_equal(&found, value)) {
                        return Ok([mark, text].concat());
                    }
                    return Err(UnusableSettings::Taken { path: path.join(".") });
                }
            }
        }
        JsonEdit::Element { path, value } => {
            let (name, above) = path.split_last().ok_or(UnusableSettings::NoObject)?;
            let object = object_at(top, above)?;
            let array = match object.get(name) {
                None => object.array_value_or_set(name),
                Some(member) => member.array_value().ok_or_else(|| unexpected(path, "an array"))?,
            };
            if array.elements().iter().any(|element| is_equal(element, value)) {
                return Ok([mark, text].concat());
            }
            array.append(value.clone());
        }
    }
    Ok(format!("{mark}{root}"))
}

fn unexpected(path: &[String], wanted: &'static str) -> UnusableSettings {
    UnusableSettings::Unlike { path: path.join("."), wanted }
}

/// Returns the object at this path; creates it if it is missing.
fn object_at(top: CstObject, path: &[String]) -> Result<CstObject, UnusableSettings> {
    let mut object = top;
    for (depth, name) in path.iter().enumerate() {
        object = match object.get(name) {
            None => object.object_value_or_set(name),
            Some(member) => {
                member.object_value().ok_or_else(|| unexpected(&path[..=depth], "an object"))?
            }
        };
    }
    Ok(object)
}

fn is_equal(node: &CstNode, value: &CstInputValue) -> bool {
    plain_value(node).is_some_and(|found| found == input_value(value))
}

/// Returns the value of a node, without comments and formatting.
fn plain_value(node: &CstNode) -> Option<serde_json::Value> {
    use serde_json::Value;
    if let Some(object) = node.as_object() {
        let member = |member: jsonc_parser::cst::CstObjectProp| {
            Some((member.decoded_name()?, plain_value(&member.value()?)?))
        };
        let members = object.properties().into_iter().map(member);
        return Some(Value::Object(members.collect::<Option<_>>()?));
    }
    if let Some(array) = node.as_array() {
        let elements = array.elements();
        return Some(Value::Array(elements.iter().map(plain_value).collect::<Option<_>>()?));
    }
    if let Some(text) = node.as_string_lit() {
        return Some(Value::String(text.decoded_value().ok()?));
    }
    serde_json::from_str(&node.to_string()).ok()
}

/// Converts an input to a value.
pub(super) fn input_value(value: &CstInputValue) -> serde_json::Value {
    use serde_json::Value;
    match value {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(flag) => Value::Bool(*flag),
        CstInputValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        CstInputValue::String(text) => Value::String(text.clone()),
        CstInputValue::Array(elements) => Value::Array(elements.iter().map(input_value).collect()),
        CstInputValue::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (name.clone(), input_value(value))).collect(),
        ),
    }
}

/// Returns the values in the settings, without comments and formatting; null for an empty file.
pub fn values(text: &str) -> Result<serde_json::Value, UnusableSettings> {
    let root = parse(split_mark(text).1)?;
    Ok(root.value().and_then(|value| plain_value(&value)).unwrap_or_default())
}

/// Returns the paths of the empty objects and arrays in the settings. Elements of arrays are not
/// searched.
pub fn empty_places(text: &str) -> Result<Vec<Vec<String>>, UnusableSettings> {
    let values = values(text)?;
    let mut places = Vec::new();
    let mut open = vec![(Vec::new(), &values)];
    while let Some((path, value)) = open.pop() {
        match value {
            serde_json::Value::Object(members) => {
                open.extend(members.iter().map(|(name, value)| {
                    ([path.as_slice(), std::slice::from_ref(name)].concat(), value)
                }));
                if members.is_empty() {
                    places.push(path);
                }
            }
            serde_json::Value::Array(elements) if elements.is_empty() => places.push(path),
            _ => {}
        }
    }
    Ok(places)
}

/// Returns the paths of the missing members that edits with `keep` would add. An existing member is
/// not forge's.
pub fn missing_members(
    text: &str,
    edits: &[JsonEdit],
) -> Result<Vec<Vec<String>>, UnusableSettings> {
    let values = values(text)?;
    let place = |edit: &JsonEdit| match edit {
        JsonEdit::Member { path, keep: true, .. } => {
            let found = path.iter().try_fold(&values, |value, name| value.get(name));
            found.is_none().then(|| path.clone())
        }
        _ => None,
    };
    Ok(edits.iter().filter_map(place).collect())
}

/// Returns the text without the array elements and object members that `is_ours` accepts. An object
/// or array that becomes empty is removed too, except at the paths in `kept`.
pub fn without(
    text: &str,
    is_ours: &dyn Fn(&[String], &serde_json::Value) -> bool,
    kept: &[Vec<String>],
) -> Result<String, UnusableSettings> {
    let (mark, text) = split_mark(text);
    let root = parse(text)?;
    let Some(top) = root.object_value() else { return Ok([mark, text].concat()) };
    let mut clearing = RemovalWalk { path: Vec::new(), is_ours, kept };
    if clearing.object(&top) == RemovalResult::Nothing {
        return Ok([mark, text].concat());
    }
    Ok(format!("{mark}{root}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RemovalResult {
    Nothing,
    Something,
    /// The whole value was removed.
    All,
}

/// A traversal of settings that removes forge's entries.
struct RemovalWalk<'c> {
    /// The current path; an element of an array has an empty name.
    path: Vec<String>,
    is_ours: &'c dyn Fn(&[String], &serde_json::Value) -> bool,
    kept: &'c [Vec<String>],
}

impl RemovalWalk<'_> {
    fn node(&mut self, name: String, node: &CstNode) -> RemovalResult {
        self.path.push(name);
        let cleared = if plain_value(node).is_some_and(|value| (self.is_ours)(&self.path, &value)) {
            RemovalResult::All
        } else if let Some(object) = node.as_object() {
            self.object(&object)
        } else if let Some(array) = node.as_array() {
            self.array(&array)
        } else {
            RemovalResult::Nothing
        };
        self.path.pop();
        cleared
    }

    fn object(&mut self, object: &CstObject) -> RemovalResult {
        let mut cleared = RemovalResult::Nothing;
        for member in object.properties() {
            let (Some(name), Some(value)) = (member.decoded_name(), member.value()) else {
                continue;
            };
            let inside = self.node(name, &value);
            if inside != RemovalResult::Nothing {
                cleared = RemovalResult::Something;
            }
            if inside == RemovalResult::All {
                member.remove();
            }
        }
        self.after_removal(cleared, object.properties().is_empty())
    }

    fn array(&mut self, array: &CstArray) -> RemovalResult {
        let mut cleared = RemovalResult::Nothing;
        for element in array.elements() {
            let inside = self.node(String::new(), &element);
            if inside != RemovalResult::Nothing {
                cleared = RemovalResult::Something;
            }
            if inside == RemovalResult::All {
                element.remove();
            }
        }
        self.after_removal(cleared, array.elements().is_empty())
    }

    fn after_removal(&self, cleared: RemovalResult, empty: bool) -> RemovalResult {
        let goes = cleared == RemovalResult::Something && empty && !self.kept.contains(&self.path);
        if goes { RemovalResult::All } else { cleared }
    }
}

#[cfg(test)]
mod tests;
