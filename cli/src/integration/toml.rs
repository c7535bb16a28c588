//! TOML settings, which are edited in place: everything else stays as it was.

use super::json::UnusableSettings;
use toml_edit::{DocumentMut, Item, Table};

/// A table that the settings must have, with texts and lists of texts.
#[derive(Clone, Debug)]
pub struct WantedTable {
    /// Its path; the last part is its name.
    pub path: Vec<String>,
    /// Its entries.
    pub values: Vec<(&'static str, toml_edit::Value)>,
}

fn parse(text: &str) -> Result<DocumentMut, UnusableSettings> {
    text.parse::<DocumentMut>()
        .map_err(|error| UnusableSettings::Broken("TOML", error.message().to_owned()))
}

/// Returns the text of a document that was parsed from `text`. The parser changes all line ends to
/// LF; if all line ends in `text` are CRLF, so are those in the result.
fn written(document: &DocumentMut, text: &str) -> String {
    let written = document.to_string();
    let count = text.matches("\r\n").count();
    if count == 0 || count != text.matches('\n').count() {
        return written;
    }
    written.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns the text with this table; the same text if it already has the table with these entries.
///
/// # Errors
///
/// If the text is not TOML, the table has other entries, or something above it is not a table with
/// a header line.
pub fn apply_edit(text: &str, wanted: &WantedTable) -> Result<String, UnusableSettings> {
    let mut document = parse(text)?;
    let Some((name, above)) = wanted.path.split_last() else { return Ok(text.to_owned()) };
    let mut table = document.as_table_mut();
    for (depth, part) in above.iter().enumerate() {
        let item = table.entry(part).or_insert_with(|| {
            let mut made = Table::new();
            // Only the tables inside it get a header line.
            made.set_implicit(true);
            Item::Table(made)
        });
        table = item.as_table_mut().ok_or_else(|| UnusableSettings::Unlike {
            path: wanted.path[..=depth].join("."),
            wanted: "a table with a line of its own",
        })?;
    }
    if let Some(found) = table.get(name) {
        let equal = found.as_table_like().is_some_and(|found| {
            found.len() == wanted.values.len()
                && wanted.values.iter().all(|(name, value)| {
                    found.get(name).is_some_and(|item| item.to_string().trim() == value.to_string())
                })
        });
        return if equal {
            Ok(text.to_owned())
        } else {
            Err(UnusableSettings::Taken { path: wanted.path.join(".") })
        };
    }
    let mut made = Table::new();
    for (name, value) in &wanted.values {
        made.insert(name, Item::Value(value.clone()));
    }
    if !text.trim().is_empty() {
        made.decor_mut().set_prefix("\n");
    }
    table.insert(name, Item::Table(made));
    Ok(written(&document, text))
}

/// Returns the text without the table at this path, if it exists and is forge's.
pub fn without(
    text: &str,
    path: &[String],
    is_ours: &dyn Fn(&Item) -> bool,
) -> Result<String, UnusableSettings> {
    let mut document = parse(text)?;
    if remove(document.as_table_mut(), path, is_ours) {
        return Ok(written(&document, text));
    }
    Ok(text.to_owned())
}

fn remove(table: &mut Table, path: &[String], is_ours: &dyn Fn(&Item) -> bool) -> bool {
    match path {
        [] => false,
        [name] => {
            let found = table.get(name).is_some_and(is_ours);
            if found {
                table.remove(name);
            }
            found
        }
        [name, rest @ ..] => {
            let Some(inner) = table.get_mut(name).and_then(Item::as_table_mut) else {
                return false;
            };
            let found = remove(inner, rest, is_ours);
            if found && inner.is_empty() && inner.is_implicit() {
                table.remove(name);
            }
            found
        }
    }
}

/// Returns the item at this path, if there is one.
pub fn item(text: &str, path: &[String]) -> Result<Option<Item>, UnusableSettings> {
    let document = parse(text)?;
    Ok(path.iter().try_fold(document.as_item(), |item, name| item.get(name)).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> WantedTable {
        WantedTable {
            path: vec!["mcp_servers".to_owned(), "forge".to_owned()],
            values: vec![("command", "/opt/forge".into())],
        }
    }

    fn is_ours(item: &Item) -> bool {
        item.get("command").and_then(Item::as_str) == Some("/opt/forge")
    }

    #[test]
    fn a_toml_table_is_added_and_removed_without_other_changes() {
        for text in [
            "",
            "model = 'x' # mine\n",
            "# first\n[mcp_servers.other]\ncommand='a' # b\n\n[tui]\nx=1\n# last",
            "[projects.\"/a\"]\ntrust_level = \"trusted\"\n",
        ] {
            let with = apply_edit(text, &server()).unwrap();
            assert!(with.contains("[mcp_servers.forge]\ncommand = \"/opt/forge\"\n"), "{with}");
            assert_eq!(apply_edit(&with, &server()).unwrap(), with);
            let without = without(&with, &server().path, &is_ours).unwrap();
            assert_eq!(without.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn line_ends_with_a_carriage_return_stay() {
        let text = "model = \"x\" # mine\r\n\r\n[tui]\r\nx = 1\r\n";
        let with = apply_edit(text, &server()).unwrap();
        assert!(with.contains("[mcp_servers.forge]\r\ncommand = \"/opt/forge\"\r\n"), "{with:?}");
        assert!(with.contains("model = \"x\" # mine\r\n\r\n"), "{with:?}");
        assert!(!with.replace("\r\n", "").contains(['\r', '\n']), "{with:?}");
        assert_eq!(apply_edit(&with, &server()).unwrap(), with);
        let without = without(&with, &server().path, &is_ours).unwrap();
        assert_eq!(without.trim_end(), text.trim_end());
    }

    #[test]
    fn a_server_entry_of_another_program_is_not_replaced() {
        let taken =
            apply_edit("[mcp_servers.forge]\ncommand = \"smith\"\n", &server()).unwrap_err();
        assert_eq!(taken.to_string(), "'mcp_servers.forge' in it belongs to another program");
        let inline =
            apply_edit("mcp_servers = { a = { command = 'b' } }\n", &server()).unwrap_err();
        assert!(inline.to_string().contains("mcp_servers"), "{inline}");
        assert!(
            apply_edit("= 3", &server()).unwrap_err().to_string().starts_with("it is not TOML")
        );
    }
}
