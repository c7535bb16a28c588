//! Compares two texts line by line.

use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// Whether a line is in both of two texts, or in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// It is in both texts.
    Kept,
    /// It is only in the old text.
    Removed,
    /// It is only in the new text.
    Added,
}

/// Returns the lines of both texts with their line breaks, in order. Where the texts differ, the
/// removed lines come before the added ones.
#[must_use]
pub fn compare_lines<'t>(old: &'t str, new: &'t str) -> Vec<(LineChange, &'t str)> {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut lines = Vec::with_capacity(input.before.len().max(input.after.len()));
    let mut add = |change, tokens: Option<&[Token]>| {
        lines.extend(tokens.into_iter().flatten().map(|line| (change, input.interner[*line])));
    };
    let mut kept_from = 0;
    for hunk in diff.hunks() {
        let (before, after) = (indices(hunk.before), indices(hunk.after));
        add(LineChange::Kept, input.before.get(kept_from..before.start));
        kept_from = before.end;
        add(LineChange::Removed, input.before.get(before));
        add(LineChange::Added, input.after.get(after));
    }
    add(LineChange::Kept, input.before.get(kept_from..));
    lines
}

const fn indices(range: std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

#[cfg(test)]
mod tests {
    use super::LineChange::{Added, Kept, Removed};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn removed_lines_come_before_the_added_ones() {
        let lines = compare_lines("a\nb\nc\n", "a\nB\nc\nd");
        let expected = [(Kept, "a\n"), (Removed, "b\n"), (Added, "B\n"), (Kept, "c\n")];
        assert_eq!(lines, [&expected[..], &[(Added, "d")]].concat());
        assert_eq!(compare_lines("", ""), []);
        assert_eq!(compare_lines("a", ""), [(Removed, "a")]);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_put_together_from_the_lines(
            old in "[ab\r\n]{0,30}",
            new in "[ab\r\n]{0,30}",
        ) {
            let lines = compare_lines(&old, &new);
            let without = |left_out| -> String {
                let kept = lines.iter().filter(|(change, _)| *change != left_out);
                kept.map(|(_, line)| *line).collect()
            };
            prop_assert_eq!(&without(Added), &old);
            prop_assert_eq!(&without(Removed), &new);
        }
    }
}
