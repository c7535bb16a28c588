//! Converts the descriptions of edits to unified patches.

use crate::lenient::{LenientInteger, LenientList, LenientText};
use serde::Deserialize;

/// The description of an edit in the input of a call or in its result.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(crate) struct EditDescription<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    #[serde(borrow, alias = "filePath", alias = "notebook_path")]
    file_path: LenientText<'a>,
    #[serde(borrow, alias = "structuredPatch")]
    structured_patch: LenientList<PatchHunk<'a>>,
    content: LenientText<'a>,
    edits: LenientList<TextReplacement<'a>>,
    #[serde(borrow, alias = "oldString")]
    old_string: LenientText<'a>,
    #[serde(borrow, alias = "newString")]
    new_string: LenientText<'a>,
    new_source: LenientText<'a>,
    // The names of OpenHands. Its calls also have an empty `content`.
    path: LenientText<'a>,
    file_text: LenientText<'a>,
    old_str: LenientText<'a>,
    new_str: LenientText<'a>,
}

/// A hunk of a structured patch. Each of its lines begins with a mark: space, `+` or `-`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PatchHunk<'a> {
    old_start: LenientInteger,
    old_lines: LenientInteger,
    new_start: LenientInteger,
    new_lines: LenientInteger,
    #[serde(borrow)]
    lines: LenientList<LenientText<'a>>,
}

/// The replacement of a text in a file by another one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TextReplacement<'a> {
    #[serde(borrow, alias = "oldString")]
    old_string: LenientText<'a>,
    #[serde(borrow, alias = "newString")]
    new_string: LenientText<'a>,
}

/// A unified patch, with the numbers of lines that it adds and removes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnifiedPatch {
    pub(crate) text: String,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl EditDescription<'_> {
    /// Returns the path of the changed file, if the description has one.
    pub(crate) fn path(&self) -> Option<&str> {
        self.file_path.text().or(self.path.text())
    }

    /// Returns the change as a unified patch; `None` if this describes no change.
    ///
    /// The header of a hunk has `?` for each number that is not known.
    pub(crate) fn patch(&self) -> Option<UnifiedPatch> {
        let path = self.path().unwrap_or("file");
        let mut patch = UnifiedPatch::default();
        // An element of a list that cannot be read has neither lines nor texts: it is skipped.
        let hunks = self.structured_patch.0.iter().filter(|hunk| !hunk.lines.0.is_empty());
        let mut hunks = hunks.peekable();
        let edits = self
            .edits
            .0
            .iter()
            .filter(|edit| edit.old_string.0.is_some() || edit.new_string.0.is_some());
        let mut edits = edits.peekable();
        if hunks.peek().is_some() {
            patch.begin(path, path);
            hunks.for_each(|hunk| patch.hunk(hunk));
        } else if let Some(content) = self.file_text.text() {
            patch.begin("/dev/null", path);
            patch.whole_file('+', content);
        } else if self.old_str.0.is_some() || self.new_str.0.is_some() {
            patch.begin(path, path);
            patch.replacement(self.old_str.text(), self.new_str.text());
        } else if self.kind.is("update") {
            // A file that was written again with the same content.
        } else if let (Some(kind @ ("add" | "delete")), Some(content)) =
            (self.kind.text(), &self.content.0)
        {
            // Codex names the file outside of this description, so the patch has no paths.
            let mark = if kind == "add" { '+' } else { '-' };
            patch.whole_file(mark, content);
        } else if let Some(content) = &self.content.0 {
            patch.begin("/dev/null", path);
            patch.whole_file('+', content);
        } else if edits.peek().is_some() {
            patch.begin(path, path);
            for edit in edits {
                patch.replacement(edit.old_string.text(), edit.new_string.text());
            }
        } else if self.old_string.0.is_some() || self.new_string.0.is_some() {
            patch.begin(path, path);
            patch.replacement(self.old_string.text(), self.new_string.text());
        } else if let Some(source) = &self.new_source.0 {
            patch.begin(path, path);
            patch.replacement(None, Some(source));
        } else {
            return None;
        }
        Some(patch)
    }
}

impl UnifiedPatch {
    /// Begins the patch with the paths of the old and the new file.
    fn begin(&mut self, old: &str, new: &str) {
        self.text = format!("--- {old}\n+++ {new}\n");
    }

    /// Adds a line with its mark, and counts it.
    fn line(&mut self, mark: char, line: &str) {
        match mark {
            '+' => self.added += 1,
            '-' => self.removed += 1,
            _ => {}
        }
        self.text.push(mark);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a hunk of a structured patch.
    fn hunk(&mut self, hunk: &PatchHunk<'_>) {
        let [old_start, old_lines, new_start, new_lines] =
            [hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines]
                .map(|number| number.0.map_or_else(|| "?".to_owned(), |number| number.to_string()));
        let place = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@\n");
        self.text.push_str(&place);
        for line in hunk.lines.0.iter().filter_map(|line| line.0.as_deref()) {
            let mut characters = line.chars();
            if let Some(mark) = characters.next() {
                self.line(mark, characters.as_str());
            } else {
                self.line(' ', "");
            }
        }
    }

    /// Adds all lines of a file that was added or deleted.
    fn whole_file(&mut self, mark: char, content: &str) {
        let lines = content.lines().count();
        if lines == 0 {
            return;
        }
        let hunk =
            if mark == '+' { format!("-0,0 +1,{lines}") } else { format!("-1,{lines} +0,0") };
        self.text.push_str(&format!("@@ {hunk} @@\n"));
        content.lines().for_each(|line| self.line(mark, line));
        if !content.ends_with('\n') {
            self.text.push_str("\\ No newline at end of file\n");
        }
    }

    /// Adds the replacement of one text by another, at an unknown place in the file. Common lines
    /// at the beginning and the end are context.
    fn replacement(&mut self, old: Option<&str>, new: Option<&str>) {
        let old: Vec<&str> = old.unwrap_or_default().lines().collect();
        let new: Vec<&str> = new.unwrap_or_default().lines().collect();
        let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let after = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take(old.len().min(new.len()) - before)
            .take_while(|(old, new)| old == new)
            .count();
        self.text.push_str(&format!("@@ -?,{} +?,{} @@\n", old.len(), new.len()));
        let (context, rest) = old.split_at(before);
        let (removed, ending) = rest.split_at(rest.len() - after);
        let added = new.get(before..new.len() - after).unwrap_or_default();
        context.iter().for_each(|line| self.line(' ', line));
        removed.iter().for_each(|line| self.line('-', line));
        added.iter().for_each(|line| self.line('+', line));
        ending.iter().for_each(|line| self.line(' ', line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(json: &str) -> Option<UnifiedPatch> {
        serde_json::from_str::<EditDescription<'_>>(json).unwrap().patch()
    }

    #[test]
    fn hunks_become_a_unified_patch() {
        let made = patch(
            r#"{"filePath":"/a.rs","structuredPatch":[{"oldStart":3,"oldLines":2,"newStart":3,"newLines":2,
                "lines":[" same","-old \"x\"","+new"]}]}"#,
        )
        .unwrap();
        assert_eq!(made.text, "--- /a.rs\n+++ /a.rs\n@@ -3,2 +3,2 @@\n same\n-old \"x\"\n+new\n");
        assert_eq!((made.added, made.removed), (1, 1));
    }

    #[test]
    fn a_bad_element_does_not_lose_the_others() {
        let hunks = patch(
            r#"{"filePath":"/a","edits":[null],"structuredPatch":[null,3,{"oldStart":null,"oldLines":1,
                "newStart":7,"newLines":1,"lines":["-a",null,"+b"]},{"lines":null}]}"#,
        );
        assert_eq!(hunks.unwrap().text, "--- /a\n+++ /a\n@@ -?,1 +7,1 @@\n-a\n+b\n");
        let edits = patch(
            r#"{"file_path":"/a","edits":[null,{"old_string":"a","new_string":"b"},"x"],
                "structuredPatch":[null]}"#,
        );
        assert_eq!(edits.unwrap().text, "--- /a\n+++ /a\n@@ -?,1 +?,1 @@\n-a\n+b\n");
        assert_eq!(patch(r#"{"edits":[null],"structuredPatch":{}}"#), None);
    }

    #[test]
    fn a_new_file_is_all_added() {
        let made =
            patch(r#"{"type":"create","filePath":"/n","content":"a\nb","structuredPatch":[]}"#)
                .unwrap();
        assert_eq!(
            made.text,
            "--- /dev/null\n+++ /n\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
        );
        assert_eq!((made.added, made.removed), (2, 0));
    }

    #[test]
    fn a_replacement_shows_what_both_sides_share_as_context() {
        let made =
            patch(r#"{"file_path":"/a","old_string":"a\nb\nc","new_string":"a\nx\nc"}"#).unwrap();
        assert_eq!(made.text, "--- /a\n+++ /a\n@@ -?,3 +?,3 @@\n a\n-b\n+x\n c\n");
        let same = patch(r#"{"old_string":"a\na","new_string":"a"}"#).unwrap();
        assert_eq!(same.text, "--- file\n+++ file\n@@ -?,2 +?,1 @@\n a\n-a\n");
        let several = patch(
            r#"{"file_path":"/a","edits":[{"old_string":"1","new_string":"2"},{"old_string":"3","new_string":""}]}"#,
        )
        .unwrap();
        assert_eq!((several.added, several.removed), (1, 2));
    }

    #[test]
    fn a_cell_is_added_and_an_equal_file_changes_nothing() {
        let cell = patch(r#"{"notebook_path":"/n.ipynb","new_source":"x = 1"}"#).unwrap();
        assert!(cell.text.ends_with("@@ -?,0 +?,1 @@\n+x = 1\n"));
        let same = patch(r#"{"type":"update","content":"a","structuredPatch":[]}"#);
        assert_eq!(same, Some(UnifiedPatch::default()));
        assert_eq!(patch(r#"{"stdout":"x"}"#), None);
    }
}
