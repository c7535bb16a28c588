//! Changes one setting in a file. Comments and all other settings stay as they are; every line then
//! ends with CRLF if one did before, otherwise with LF.

use super::{ConfigLayer, SettingKey, SettingValue, read_settings_file, read_text};
use crate::error::CommandError;
use crate::private_files;
use std::io;
use std::path::Path;

/// Sets a key in this file, which is created if it is missing.
///
/// # Errors
///
/// If the file cannot be read or written, or holds the key in a form that only a person can change.
pub fn set(
    path: &Path,
    layer: ConfigLayer,
    key: &SettingKey,
    value: &SettingValue,
) -> Result<(), CommandError> {
    let old = match read_settings_file(path, layer) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(CommandError::io(&format!("cannot read '{}'", path.display()), error));
        }
    };
    let new = edited(&old, key, value);
    // The user's layer accepts every key, so this only checks that the edit had the intended
    // effect.
    let took =
        read_text(&new, ConfigLayer::User).is_ok_and(|read| read.get(key.name) == Some(value));
    if !took {
        let message = format!("cannot change '{}' in '{}'", key.name, path.display());
        return Err(CommandError::invalid(message).hinted("write it there by hand"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    private_files::create_directories(folder)
        .and_then(|()| private_files::replace_file(path, new.as_bytes()))
        .map_err(|error| CommandError::io(&format!("cannot write '{}'", path.display()), error))
}

/// Returns the text with the key set: in its line, or else at the end of its table, or else at the
/// end of the top-level part.
fn edited(text: &str, key: &SettingKey, value: &SettingValue) -> String {
    let (table_wanted, short) = key.name.rsplit_once('.').unwrap_or(("", key.name));
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut table = String::new();
    let mut end_of_table = None;
    let mut end_of_top = 0;
    for (number, line) in lines.iter_mut().enumerate() {
        if let Some(header) = table_name(line) {
            table = header;
        } else if let Some((name, _)) = line.split_once('=') {
            let name: String = name.split('.').map(unquoted).collect::<Vec<_>>().join(".");
            let full = if table.is_empty() { name } else { format!("{table}.{name}") };
            if full == key.name {
                *line = with_value(line, value);
                return joined(&lines, ending);
            }
        }
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if table.is_empty() {
            end_of_top = number + 1;
        } else if table == table_wanted {
            end_of_table = Some(number + 1);
        }
    }
    match end_of_table {
        Some(place) => lines.insert(place, format!("{short} = {}", value.to_toml())),
        None => lines.insert(end_of_top, format!("{} = {}", key.name, value.to_toml())),
    }
    joined(&lines, ending)
}

/// Returns the name in a table header; `None` for any other line.
fn table_name(line: &str) -> Option<String> {
    let inside = line.trim_start().strip_prefix('[')?.split_once(']')?.0;
    Some(inside.split('.').map(unquoted).collect::<Vec<_>>().join("."))
}

/// Returns a part of a key without spaces and quotes around it.
fn unquoted(part: &str) -> &str {
    part.trim().trim_matches(['"', '\''])
}

/// Returns a line `name = old # comment` with another value.
fn with_value(line: &str, value: &SettingValue) -> String {
    let (name, old) = line.split_once('=').unwrap_or((line, ""));
    let comment = trailing_comment(old).map(|comment| format!(" {comment}")).unwrap_or_default();
    format!("{}= {}{comment}", name, value.to_toml())
}

/// Returns the comment after a value: from the first `#` outside quotes.
fn trailing_comment(text: &str) -> Option<&str> {
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match (quote, character) {
            (None, '#') => return Some(&text[place..]),
            (None, '"' | '\'') => quote = Some(character),
            // A backslash keeps the next character from ending the text.
            (Some('"'), '\\') => {
                characters.next();
            }
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

fn joined(lines: &[String], ending: &str) -> String {
    lines.iter().flat_map(|line| [line.as_str(), ending]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn after(text: &str, name: &str, value: &str) -> String {
        let key = SettingKey::find(name).unwrap();
        let value = key.parse(value).unwrap();
        let new = edited(text, key, &value);
        assert_eq!(read_text(&new, ConfigLayer::User).unwrap().get(name), Some(&value), "{new}");
        new
    }

    #[test]
    fn only_the_line_of_the_key_changes() {
        let text = "# mine\nlock_timeout  = 5 # long\n\n[keep]\n# few\nlast = 3\n";
        assert_eq!(
            after(text, "lock_timeout", "0.5"),
            "# mine\nlock_timeout  = 0.5 # long\n\n[keep]\n# few\nlast = 3\n"
        );
        assert_eq!(
            after(text, "keep.last", "4"),
            "# mine\nlock_timeout  = 5 # long\n\n[keep]\n# few\nlast = 4\n"
        );
        // A writer of TOML gathers the keys of a table.
        let text = "keep.last = 3\n# colours\ncolor = \"never\"\nkeep.days = 9\n";
        assert_eq!(after(text, "color", "always"), text.replace("never", "always"));
    }

    #[test]
    fn a_new_setting_is_inserted_into_its_table_or_above_all_tables() {
        let text = "color = \"never\"\n\n[keep]\nlast = 3\n\n[schedule]\nevery = \"10m\"\n";
        assert_eq!(
            after(text, "keep.days", "9"),
            "color = \"never\"\n\n[keep]\nlast = 3\ndays = 9\n\n[schedule]\nevery = \"10m\"\n"
        );
        assert_eq!(
            after(text, "auto_checkpoint.enabled", "false"),
            "color = \"never\"\nauto_checkpoint.enabled = false\n\n[keep]\nlast = 3\n\n\
             [schedule]\nevery = \"10m\"\n"
        );
        assert_eq!(after("", "pager", "less \"-R\" # x"), "pager = 'less \"-R\" # x'\n");
    }

    #[test]
    fn dotted_and_quoted_names_are_found() {
        assert_eq!(after("keep.last = 1\n", "keep.last", "2"), "keep.last = 2\n");
        assert_eq!(after("\"keep\" . last=1", "keep.last", "2"), "\"keep\" . last= 2\n");
        assert_eq!(after("[ 'keep' ]\nlast = 1\n", "keep.last", "2"), "[ 'keep' ]\nlast = 2\n");
        assert_eq!(after("pager = 'a#b' # c\n", "pager", "x"), "pager = \"x\" # c\n");
    }

    /// Regression: a quotation mark after a backslash counted as the end of a value, so that a part
    /// of the old value stayed as a comment.
    #[test]
    fn a_quotation_mark_after_a_backslash_does_not_end_a_value() {
        for (old, new) in [
            (r#"pager = "it's \"x\" # y""#, "pager = \"more\"\n"),
            (r#"pager = "\\" # "y""#, "pager = \"more\" # \"y\"\n"),
            (r"pager = '\' # y", "pager = \"more\" # y\n"),
        ] {
            assert_eq!(after(old, "pager", "more"), new, "{old}");
        }
    }

    /// Regression: a file with CRLF at the end of its lines was changed in all of them.
    #[test]
    fn line_ends_with_a_carriage_return_stay() {
        let text = "# mine\r\ncolor = \"never\" # dull\r\n\r\n[keep]\r\nlast = 3\r\n";
        assert_eq!(after(text, "color", "always"), text.replace("never", "always"));
        assert_eq!(after(text, "keep.days", "9"), format!("{text}days = 9\r\n"));
    }

    #[test]
    fn a_file_that_cannot_be_edited_stays_unchanged() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        let text = "keep = { last = 1 }\n";
        fs::write(&path, text).unwrap();
        let key = SettingKey::find("keep.last").unwrap();
        assert!(set(&path, ConfigLayer::Project, key, &SettingValue::Count(2)).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
