//! Edits that are shown as one line, until something else happens.

use super::item::{StoryItem, StoryKind};
use super::patch_line::changed_line_counts;
use crate::model::claim::{CodeState, FactText};
use crate::model::{Fact, Kind};

/// The maximum number of files that a line of edits names.
const NAMED: usize = 4;

/// The edits that one line of the story shows.
#[derive(Debug, Default)]
pub(super) struct EditGroup {
    files: Vec<EditedFile>,
}

#[derive(Debug)]
struct EditedFile {
    path: String,
    /// The lines added and removed; `None` if that is not known of one of its edits.
    lines: Option<(u64, u64)>,
}

impl EditGroup {
    /// Adds an edit of the file with this shown path.
    pub(super) fn add(&mut self, path: &str, code: &CodeState) {
        let lines = changed_lines(code);
        match self.files.iter_mut().find(|file| file.path == path) {
            Some(file) => {
                file.lines = file.lines.zip(lines).map(|((a, b), (c, d))| (a + c, b + d));
            }
            None => self.files.push(EditedFile { path: path.to_owned(), lines }),
        }
    }

    /// Sets the text and the paths of the line: `lease.rs +4 −1, expire.rs +1 −1`.
    pub(super) fn write_to(&self, item: &mut StoryItem) {
        let named: Vec<String> = self.files.iter().take(NAMED).map(EditedFile::shown).collect();
        let more = self.files.len().saturating_sub(NAMED);
        item.text = named.join(", ");
        if more > 0 {
            item.text.push_str(&format!(", and {more} more"));
        }
        item.paths = self.files.iter().map(|file| file.path.clone()).collect();
    }
}

impl EditedFile {
    fn shown(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        let mut shown = name.to_owned();
        if let Some((added, removed)) = self.lines {
            for (sign, count) in [('+', added), ('−', removed)] {
                if count > 0 {
                    shown.push_str(&format!(" {sign}{count}"));
                }
            }
        }
        shown
    }
}

/// Returns how many lines an edit added and removed, if the record says so.
fn changed_lines(code: &CodeState) -> Option<(u64, u64)> {
    if let (Some(added), Some(removed)) = (code.lines_added, code.lines_removed) {
        return Some((added, removed));
    }
    let patch = code.patch.as_ref().filter(|patch| patch.whole().is_none())?;
    Some(changed_line_counts(patch.preview()))
}

/// Returns the line of one edit.
pub(super) fn edit_item(fact: &Fact, path: &str, code: &CodeState) -> StoryItem {
    let mut group = EditGroup::default();
    group.add(path, code);
    let mut item = StoryItem::loud(fact.at, StoryKind::Edit, "").about(Kind::Code, &fact.id);
    group.write_to(&mut item);
    item.by(code.agent.clone())
}

/// Returns the path of an edit; `None` for a captured state of the code.
pub(super) fn edited_path(code: &CodeState) -> Option<&str> {
    code.path.as_ref().map(FactText::preview).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn edit(lines: Option<(u64, u64)>, patch: &str) -> CodeState {
        CodeState {
            lines_added: lines.map(|it| it.0),
            lines_removed: lines.map(|it| it.1),
            patch: (!patch.is_empty()).then(|| patch.into()),
            ..CodeState::default()
        }
    }

    fn line_of(edits: &[(&str, CodeState)]) -> String {
        let mut group = EditGroup::default();
        edits.iter().for_each(|(path, code)| group.add(path, code));
        let mut item = StoryItem::loud(Timestamp::from_micros(0), StoryKind::Edit, "");
        group.write_to(&mut item);
        assert!(item.paths.len() <= edits.len());
        item.text
    }

    #[test]
    fn edits_of_one_file_are_added_up() {
        let patch = "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n";
        let edits = [("src/a.rs", edit(Some((3, 1)), "")), ("src/a.rs", edit(None, patch))];
        assert_eq!(line_of(&edits), "a.rs +5 −2");
        assert_eq!(line_of(&[("a.rs", edit(Some((0, 2)), ""))]), "a.rs −2");
    }

    #[test]
    fn a_changed_line_that_looks_like_the_name_of_a_file_is_counted() {
        let patch = "--- q.sql\n+++ q.sql\n@@ -1,2 +1 @@\n--- a comment\n-x\n+++ more\n";
        assert_eq!(line_of(&[("q.sql", edit(None, patch))]), "q.sql +1 −2");
    }

    #[test]
    fn an_edit_that_does_not_say_how_much_it_changed_has_no_count() {
        assert_eq!(line_of(&[("a.rs", edit(None, ""))]), "a.rs");
        assert_eq!(line_of(&[("a.rs", edit(None, "")), ("a.rs", edit(Some((1, 0)), ""))]), "a.rs");
    }

    #[test]
    fn the_first_files_are_named_and_the_others_counted() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let edits: Vec<_> = names.iter().map(|name| (*name, edit(Some((1, 0)), ""))).collect();
        assert_eq!(line_of(&edits), "a +1, b +1, c +1, d +1, and 2 more");
    }
}
