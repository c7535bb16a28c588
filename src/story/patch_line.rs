//! Classifies the lines of a unified patch.

/// The kind of a line of a unified patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchLineKind {
    /// The name of a file, after `---` or `+++`.
    Header,
    /// The header of a hunk, which says its place: `@@ -1,3 +1,4 @@`.
    Hunk,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// Any other line: context, or a line that only git writes.
    Context,
}

/// Returns the lines of a patch, each with its kind.
///
/// A changed line can look like the name of a file: if the SQL comment `-- a` is removed, the patch
/// has the line `--- a`. Names of files are only outside of hunks, so the lines of each hunk are
/// counted. A hunk without numbers ends at the first line that cannot be in a hunk.
pub fn patch_lines(patch: &str) -> impl Iterator<Item = (PatchLineKind, &str)> {
    let mut rest = HunkRest::default();
    patch.lines().map(move |line| (rest.kind_of(line), line))
}

/// Returns how many lines a patch adds and removes.
#[must_use]
pub fn changed_line_counts(patch: &str) -> (u64, u64) {
    patch_lines(patch).fold((0, 0), |(added, removed), (kind, _)| match kind {
        PatchLineKind::Added => (added + 1, removed),
        PatchLineKind::Removed => (added, removed + 1),
        _ => (added, removed),
    })
}

/// How many lines of each side are left in a hunk.
#[derive(Debug, Default)]
struct HunkRest {
    old: u64,
    new: u64,
}

impl HunkRest {
    /// Reads the header of a hunk. `None` if it does not say how many lines the hunk has.
    fn from_place(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let count = |range: &str| {
            let (_, count) = range.split_once(',').unwrap_or((range, "1"));
            count.parse::<u64>().ok()
        };
        Some(Self { old: count(old)?, new: count(new)? })
    }

    /// Returns the kind of the next line, and counts it.
    fn kind_of(&mut self, line: &str) -> PatchLineKind {
        match line.as_bytes().first() {
            Some(b'-') if self.old > 0 || !line.starts_with("--- ") => {
                self.old = self.old.saturating_sub(1);
                PatchLineKind::Removed
            }
            Some(b'+') if self.new > 0 || !line.starts_with("+++ ") => {
                self.new = self.new.saturating_sub(1);
                PatchLineKind::Added
            }
            Some(b' ') | None => {
                self.old = self.old.saturating_sub(1);
                self.new = self.new.saturating_sub(1);
                PatchLineKind::Context
            }
            // It says that the line before has no line break.
            Some(b'\\') => PatchLineKind::Context,
            Some(b'@') if line.starts_with("@@") => {
                let unknown = Self { old: u64::MAX, new: u64::MAX };
                *self = Self::from_place(line).unwrap_or(unknown);
                PatchLineKind::Hunk
            }
            // Any other line ends the hunk.
            first => {
                *self = Self::default();
                match first {
                    Some(b'-' | b'+') => PatchLineKind::Header,
                    _ => PatchLineKind::Context,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of the lines: `n` is the name of a file.
    fn kinds(patch: &str) -> String {
        let sign = |kind| match kind {
            PatchLineKind::Header => 'n',
            PatchLineKind::Hunk => '@',
            PatchLineKind::Added => '+',
            PatchLineKind::Removed => '-',
            PatchLineKind::Context => ' ',
        };
        patch_lines(patch).map(|(kind, _)| sign(kind)).collect()
    }

    #[test]
    fn a_changed_line_can_look_like_the_name_of_a_file() {
        let first = "diff --git a/q b/q\nindex 1..2\n--- a/q\n+++ b/q\n@@ -1,3 +1,3 @@\n one\n\
            --- a comment\n-two\n+++ more\n+2\n\\ No newline at end of file\n";
        let second = "--- a/r\n+++ b/r\n@@ -1 +1 @@ fn r()\n-x\n+y\n";
        assert_eq!(kinds(first), "  nn@ --++ ");
        assert_eq!(kinds(&format!("{first}{second}")), "  nn@ --++ nn@-+");
        assert_eq!(changed_line_counts(&format!("{first}{second}")), (3, 3));
        // An edit at an unknown place has `?` for its line numbers.
        let placeless = "--- a\n+++ a\n@@ -?,1 +?,2 @@\n--- a\n+++ b\n+x\n--- b\n+++ b\n";
        assert_eq!(kinds(placeless), "nn@-++nn");
    }

    #[test]
    fn a_patch_without_numbers_is_read_by_its_signs() {
        assert_eq!(kinds("@@ fn a()\n-x\n--- a comment\n+++ more\n"), "@--+");
        assert_eq!(kinds("@@\n-x\n*** Update File: b\n--- b\n+++ b\n@@\n+y\n"), "@- nn@+");
        assert_eq!(kinds("--- a\n+++ a\n-x\n+y\n---\n"), "nn-+-");
        assert_eq!(kinds(""), "");
    }

    #[test]
    fn a_hunk_with_wrong_numbers_does_not_spoil_the_next_one() {
        let next = "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(kinds(&format!("@@ -1,9 +1,9 @@\n-x\n+y\n{next}")), "@-+ nn@-+");
        assert_eq!(kinds("@@ -1 +1 @@\n-x\n-y\n+z\n+w\n--- b\n+++ b\n"), "@--++nn");
    }
}
