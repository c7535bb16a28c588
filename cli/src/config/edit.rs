//! Changes one setting in a file and nothing else: comments, order and spaces stay.

use super::{ConfigLayer, SettingKey, SettingValue, read_settings_file, read_text};
use crate::error::CommandError;
use crate::private_files;
use std::io;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table, Value};

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
    // The user's layer knows every key, so this only checks that the edit had the intended effect.
    let has_value = |new: &String| {
        read_text(new, ConfigLayer::User).is_ok_and(|read| read.get(key.name) == Some(value))
    };
    let Some(new) = edited(&old, key, value).filter(has_value) else {
        let message = format!("cannot change '{}' in '{}'", key.name, path.display());
        return Err(CommandError::invalid(message).hinted("write it there by hand"));
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    private_files::create_directories(folder)
        .and_then(|()| private_files::replace_file(path, new.as_bytes()))
        .map_err(|error| CommandError::io(&format!("cannot write '{}'", path.display()), error))
}

/// Returns the text with the key set: in its line, or else at the end of its table, or else at the
/// end of the top-level part; `None` if only a person can change it.
fn edited(text: &str, key: &SettingKey, value: &SettingValue) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let mut value: Value = value.to_toml().parse().ok()?;
    value.decor_mut().set_prefix(" ");
    let mut names: Vec<&str> = key.name.split('.').collect();
    let name = names.pop()?;
    let mut table = document.as_table_mut();
    for part in names {
        let dotted = || {
            let mut made = Table::new();
            made.set_dotted(true);
            Item::Table(made)
        };
        table = table.entry(part).or_insert_with(dotted).as_table_mut()?;
    }
    if let Some(item) = table.get_mut(name) {
        let old = item.as_value_mut()?;
        // The comment after the value.
        if let Some(suffix) = old.decor().suffix().cloned() {
            value.decor_mut().set_suffix(suffix);
        }
        *old = value;
    } else {
        table.insert(name, Item::Value(value));
    }
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn after(text: &str, name: &str, value: &str) -> String {
        let key = SettingKey::find(name).unwrap();
        let value = key.parse(value).unwrap();
        let new = edited(text, key, &value).unwrap();
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
    }

    #[test]
    fn a_new_key_goes_into_its_table_or_above_all_tables() {
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

    #[test]
    fn what_cannot_be_edited_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        let text = "keep = { last = 1 }\n";
        fs::write(&path, text).unwrap();
        let key = SettingKey::find("keep.last").unwrap();
        assert!(set(&path, ConfigLayer::Project, key, &SettingValue::Count(2)).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
