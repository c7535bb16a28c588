//! Redaction of secrets in the values of claims and facts.

use super::{Redactor, TextForm, mark, named_value, secret_heuristics, short};
use crate::model::{FieldMap, Value};
use std::collections::BTreeMap;
use std::mem;

/// The field with environment variables. Only the values of variables on an allow list are stored.
const VARIABLES: &str = "env_vars";
/// The kind in the mark that replaces the value of a variable that is not on the allow list.
const ENVIRONMENT: &str = "environment";

/// Harmless variables that describe how a program ran. A name may end with `*`.
const HARMLESS_VARIABLES: [&str; 44] = [
    "CARGO_BUILD_*", "CARGO_HOME", "CARGO_INCREMENTAL", "CARGO_PROFILE_*", "CARGO_TARGET_DIR",
    "CC", "CFLAGS", "CI", "COLUMNS", "CONDA_DEFAULT_ENV", "CXX", "CXXFLAGS", "DEBUG", "EDITOR",
    "GOARCH", "GOFLAGS", "GOOS", "GOPATH", "HOME", "HOSTTYPE", "JAVA_HOME", "LANG", "LANGUAGE",
    "LC_*", "LDFLAGS", "LD_LIBRARY_PATH", "LINES", "LOGNAME", "MAKEFLAGS", "NODE_ENV", "OSTYPE",
    "PATH", "PWD", "PYTHONHASHSEED", "PYTHONPATH", "RUSTFLAGS", "RUST_BACKTRACE", "RUST_LOG",
    "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
];

impl Redactor {
    /// Returns whether the value of an environment variable is kept. It is then redacted like any
    /// other text.
    #[must_use]
    pub fn keeps_variable(&self, name: &str) -> bool {
        let matches = |listed: &str| match listed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == listed,
        };
        HARMLESS_VARIABLES.iter().any(|listed| matches(listed))
            || self.variables.iter().any(|listed| matches(listed))
    }

    /// Removes the secrets in the texts and field names of a value, at any depth. Returns how many
    /// of each kind were removed.
    pub fn clean_value(&self, value: &mut Value) -> BTreeMap<&'static str, u64> {
        let mut found = BTreeMap::new();
        self.inside(value, "", &mut found);
        found
    }

    /// Removes the secrets in a plain text (not JSON), and adds them to the counts by kind in
    /// `found`.
    pub fn clean_text(&self, text: &mut String, found: &mut BTreeMap<&'static str, u64>) {
        let findings = self.find(text.as_bytes(), TextForm::Plain);
        if findings.is_empty() {
            return;
        }
        for finding in &findings {
            *found.entry(finding.kind).or_default() += 1;
        }
        *text = String::from_utf8_lossy(&super::replace_findings(text.as_bytes(), &findings))
            .into_owned();
    }

    fn inside(&self, value: &mut Value, field: &str, found: &mut BTreeMap<&'static str, u64>) {
        match value {
            Value::Text(text) => {
                self.clean_text(text, found);
                // The name of the field may show that the whole text is a secret.
                let is_secret = |text: &str| {
                    secret_heuristics::is_secret(text.as_bytes())
                        || short::is_secret_field(field, text.as_bytes())
                };
                if !text.contains(char::is_whitespace)
                    && let Some(kind) = named_value::kind_of(field)
                    && is_secret(text)
                    && !self.is_allowed(kind, text.as_bytes())
                {
                    *text = mark(kind);
                    *found.entry(kind).or_default() += 1;
                }
            }
            Value::List(items) => {
                self.arguments(items, found);
                for item in items {
                    self.inside(item, field, found);
                }
            }
            Value::Map(fields) => {
                // A redacted name may indicate a secret that the original name did not.
                self.names(fields, found);
                for (name, value) in fields.iter_mut() {
                    if name == VARIABLES
                        && let Value::Map(variables) = value
                    {
                        self.variables(variables, found);
                        continue;
                    }
                    self.inside(value, name, found);
                }
            }
            _ => {}
        }
    }

    /// Redacts the arguments of a command, which are scanned as one text: `["--password", "..."]`.
    /// A list without a flag is not changed.
    fn arguments(&self, items: &mut [Value], found: &mut BTreeMap<&'static str, u64>) {
        const JOINT: &str = "\",\"";
        let is_flag = |item: &Value| matches!(item, Value::Text(text) if text.starts_with('-'));
        if !items.iter().any(is_flag) {
            return;
        }
        let mut joined = String::new();
        let mut places = Vec::new();
        for (number, item) in items.iter().enumerate() {
            // An item in which a private key begins or ends is left out. Otherwise the key would
            // seem to go on in the next item, and hide the secrets there, or to begin in the item
            // before it.
            if let Value::Text(text) = item
                && !text.contains('"')
                && !text.contains("BEGIN ")
                && !text.contains("-----END ")
            {
                joined.push_str(JOINT);
                places.push((number, joined.len()..joined.len() + text.len()));
                joined.push_str(text);
            }
        }
        joined.push_str(JOINT);
        // From the last to the first, so that the offsets in an item stay valid.
        for finding in self.find(joined.as_bytes(), TextForm::Plain).into_iter().rev() {
            let item = places.partition_point(|(_, place)| place.end < finding.range.end);
            let Some((number, place)) = places.get(item) else { continue };
            let within = finding
                .range
                .start
                .checked_sub(place.start)
                .zip(finding.range.end.checked_sub(place.start));
            if let (Some((start, end)), Some(Value::Text(text))) = (within, items.get_mut(*number))
            {
                text.replace_range(start..end, &mark(finding.kind));
                *found.entry(finding.kind).or_default() += 1;
            }
        }
    }

    fn variables(&self, variables: &mut FieldMap, found: &mut BTreeMap<&'static str, u64>) {
        self.names(variables, found);
        let mark: Value = mark(ENVIRONMENT).into();
        for (name, value) in variables.iter_mut() {
            if self.keeps_variable(name) {
                self.inside(value, name, found);
            } else if *value != Value::Null && *value != mark {
                *value = mark.clone();
                *found.entry(ENVIRONMENT).or_default() += 1;
            }
        }
    }

    /// Redacts the field names that contain a secret.
    fn names(&self, fields: &mut FieldMap, found: &mut BTreeMap<&'static str, u64>) {
        let has_secret = |name: &str| name.len() >= 8 && self.secret_in_name(name).is_some();
        if !fields.keys().any(|name| has_secret(name)) {
            return;
        }
        // All at once, because each removal or insertion would move all fields after it.
        let (secret, kept): (Vec<_>, Vec<_>) =
            mem::take(fields).into_iter().partition(|(name, _)| has_secret(name));
        let cleaned = secret.into_iter().map(|(mut name, value)| {
            self.clean_text(&mut name, found);
            (name, value)
        });
        *fields = kept.into_iter().chain(cleaned).collect();
    }
}
