//! Changes one setting in a file. Comments and all other settings stay as they are.

use super::{ConfigLayer, SettingKey, SettingValue, read_settings_file, read_text};
use crate::error::CommandError;
use crate::private_files;
use std::io;
use std::ops::Range;
use std::path::Path;
use toml_edit::{Document, Item, Table};

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
    let new = edited(&read(path, layer)?, key, value);
    // The user's layer accepts every key, so this only checks that the edit had the intended
    // effect.
    let took =
        read_text(&new, ConfigLayer::User).is_ok_and(|read| read.get(key.name) == Some(value));
    if took { write(path, &new) } else { Err(only_by_hand(path, key)) }
}

/// Removes a key from this file. Returns whether the file had it.
///
/// # Errors
///
/// If the file cannot be read or written, or holds the key in a form that only a person can change.
pub fn unset(path: &Path, layer: ConfigLayer, key: &SettingKey) -> Result<bool, CommandError> {
    let old = read(path, layer)?;
    let mut wanted = read_text(&old, ConfigLayer::User)?;
    if wanted.remove(key.name).is_none() {
        return Ok(false);
    }
    let new = without(&old, key).unwrap_or(old);
    let took = read_text(&new, ConfigLayer::User).is_ok_and(|read| read == wanted);
    if took { write(path, &new).map(|()| true) } else { Err(only_by_hand(path, key)) }
}

fn read(path: &Path, layer: ConfigLayer) -> Result<String, CommandError> {
    match read_settings_file(path, layer) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| CommandError::io_at("cannot read", path, error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    private_files::create_directories(folder)
        .and_then(|()| private_files::replace_file(path, text.as_bytes()))
        .map_err(|error| CommandError::io_at("cannot write", path, error))
}

fn only_by_hand(path: &Path, key: &SettingKey) -> CommandError {
    CommandError::invalid(format!("cannot change '{}' in '{}'", key.name, path.display()))
        .hinted("write it there by hand")
}

/// Returns the text with the key set: in its place, or else at the end of its table, or else at the
/// end of the top-level part. A text that is not TOML stays as it is.
fn edited(text: &str, key: &SettingKey, value: &SettingValue) -> String {
    let Ok(document) = Document::parse(text) else { return text.to_owned() };
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (root, value) = (document.as_table(), value.to_toml());
    let mut new = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        new.push_str(ending);
    }
    if let Some((name, old)) = spans(root, key) {
        let equals = text[name.end..old.start].find('=').map_or(old.start, |at| name.end + at + 1);
        new.replace_range(equals..old.end, &format!(" {value}"));
        return new;
    }
    let (table, short) = key.name.rsplit_once('.').unwrap_or(("", key.name));
    let table = root.get(table).and_then(Item::as_table).filter(|table| !table.is_dotted());
    let (name, end) = match table {
        Some(table) => (short, end_of(table).or_else(|| table.span().map(|span| span.end))),
        None => (key.name, end_of(root)),
    };
    let place = end.map_or(0, |end| end_of_line(&new, end));
    new.insert_str(place, &format!("{name} = {value}{ending}"));
    new
}

/// Returns the text without the lines of this key; `None` if it has none.
fn without(text: &str, key: &SettingKey) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let (name, value) = spans(document.as_table(), key)?;
    let start = text[..name.start].rfind('\n').map_or(0, |at| at + 1);
    Some(format!("{}{}", &text[..start], &text[end_of_line(text, value.end)..]))
}

/// Returns where a key has its name and its value, if it has a line of its own.
fn spans(root: &Table, key: &SettingKey) -> Option<(Range<usize>, Range<usize>)> {
    let (name, item) = match key.name.rsplit_once('.') {
        Some((table, short)) => root.get(table)?.as_table()?.get_key_value(short)?,
        None => root.get_key_value(key.name)?,
    };
    name.span().zip(item.span())
}

/// Returns the end of the last value of a table, without the tables that have a header.
fn end_of(table: &Table) -> Option<usize> {
    let end = |item: &Item| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) if inner.is_dotted() => end_of(inner),
        _ => None,
    };
    table.iter().filter_map(|(_, item)| end(item)).max()
}

/// Returns the end of the line in which this place is, after its line break.
fn end_of_line(text: &str, place: usize) -> usize {
    text[place..].find('\n').map_or(text.len(), |at| place + at + 1)
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

    fn after_unset(text: &str, name: &str) -> String {
        without(text, SettingKey::find(name).unwrap()).unwrap()
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

    /// Regression: a line of a text that looks like the key was changed instead of the key.
    #[test]
    fn the_lines_of_a_text_are_no_keys() {
        let text = "pager = \"\"\"\nmore\n[keep]\nlast = 1\n\"\"\"\n[keep]\nlast = 2 # few\n";
        assert_eq!(after(text, "keep.last", "3"), text.replace('2', "3"));
        let with_days = format!("{text}days = 9\n");
        assert_eq!(after(text, "keep.days", "9"), with_days);
        assert_eq!(after(text, "pager", "x"), "pager = \"x\"\n[keep]\nlast = 2 # few\n");
        assert_eq!(after_unset(text, "pager"), "[keep]\nlast = 2 # few\n");
    }

    #[test]
    fn only_the_line_of_a_key_is_removed() {
        let text = "# mine\ncolor = \"never\" # dull\n\n[keep]\n# few\nlast = 3\ndays = 9";
        assert_eq!(after_unset(text, "color"), text.replace("color = \"never\" # dull\n", ""));
        assert_eq!(after_unset(text, "keep.last"), text.replace("last = 3\n", ""));
        assert_eq!(after_unset(text, "keep.days"), text.replace("days = 9", ""));
        let dotted = "\"keep\" . last=1\r\nkeep.days = 2\r\n";
        assert_eq!(after_unset(dotted, "keep.last"), "keep.days = 2\r\n");
        assert_eq!(without(text, SettingKey::find("pager").unwrap()), None);
    }

    #[test]
    fn a_file_that_cannot_be_edited_stays_unchanged() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        let text = "keep = { last = 1 }\n";
        fs::write(&path, text).unwrap();
        let key = SettingKey::find("keep.last").unwrap();
        assert!(set(&path, ConfigLayer::Project, key, &SettingValue::Count(2)).is_err());
        assert!(unset(&path, ConfigLayer::Project, key).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
