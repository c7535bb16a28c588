//! Templates for the lines of a list, such as `{id} {status}`.

use std::fmt::Write;
use std::str::FromStr;

/// A template with the names of fields in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFormat(Vec<FormatPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum FormatPart {
    Text(String),
    Field(String),
}

impl FromStr for ListFormat {
    type Err = String;

    /// Parses a template. `{{` and `}}` are braces, `\t` is a tab, `\n` a new line and `\\` a
    /// backslash. Any other backslash stays.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut text_part = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, characters.peek()) {
                ('{', Some('{')) | ('}', Some('}')) => text_part.extend(characters.next()),
                ('\\', Some(escaped @ ('t' | 'n' | '\\'))) => {
                    text_part.push(match escaped {
                        't' => '\t',
                        'n' => '\n',
                        _ => '\\',
                    });
                    characters.next();
                }
                ('{', _) => {
                    let mut ended = false;
                    let name: String = characters
                        .by_ref()
                        .take_while(|next| {
                            ended = *next == '}';
                            !ended
                        })
                        .collect();
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    if !ended || name.is_empty() || !name.chars().all(is_name) {
                        return Err(format!(
                            "'{{{name}' is not a field: write '{{id}}', and '{{{{' for a brace"
                        ));
                    }
                    parts.push(FormatPart::Text(std::mem::take(&mut text_part)));
                    parts.push(FormatPart::Field(name));
                }
                ('}', _) => return Err("'}' ends no field: write '}}' for a brace".to_owned()),
                (other, _) => text_part.push(other),
            }
        }
        parts.push(FormatPart::Text(text_part));
        let format = Self(parts);
        if format.fields().next().is_none() {
            return Err(format!(
                "'{text}' names no field: write a template such as '{{id}} {{says}}'; '--json' \
                 prints JSON"
            ));
        }
        Ok(format)
    }
}

impl ListFormat {
    /// Returns the names of its fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            FormatPart::Field(name) => Some(name.as_str()),
            FormatPart::Text(_) => None,
        })
    }

    /// Returns the line in which the text that `field` returns replaces each name.
    pub fn fill(&self, mut field: impl FnMut(&str) -> String) -> String {
        let mut filled = String::new();
        for part in &self.0 {
            let _ = match part {
                FormatPart::Text(text) => filled.write_str(text),
                FormatPart::Field(name) => filled.write_str(&field(name)),
            };
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_filled_and_double_braces_become_braces() {
        let format: ListFormat = r"{id}\t{{{status}}} \\n".parse().unwrap();
        assert_eq!(format.fields().collect::<Vec<_>>(), ["id", "status"]);
        assert_eq!(format.fill(|name| name.to_uppercase()), "ID\t{STATUS} \\n");
        for wrong in ["{", "{}", "{a b}", "}", "{id", "json", ""] {
            assert!(wrong.parse::<ListFormat>().is_err(), "{wrong}");
        }
    }
}
