//! Tables that fit the screen: wide characters count twice, and long texts end with an ellipsis. On
//! a narrow screen the last columns are omitted, so that the rest can be read.

use super::screen::{Tone, push_styled, style_of};
use forge_store::model::text::{NewlineMode, sanitise};
use std::fmt::Display;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The space between two columns.
const GUTTER: usize = 2;
/// The minimum width of a column that is not flexible, once it is shortened.
const MIN_COLUMN: usize = 6;
/// The minimum width of a flexible column, once it is shortened.
const MIN_FLEXIBLE: usize = 12;

/// A text in a table.
#[derive(Clone, Debug)]
pub struct TableCell {
    tone: Tone,
    text: String,
}

impl TableCell {
    pub fn new(tone: Tone, text: impl Display) -> Self {
        Self { tone, text: sanitise(&text.to_string(), NewlineMode::Escape).into_owned() }
    }

    /// Creates a cell without a tone.
    pub fn plain(text: impl Display) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// Makes the cells of a row: `cells![Id: &one.name, one.count, (tone): word]`. A text may follow
/// its tone: the name of a [`Tone`], or an expression in parentheses. Without one it is plain.
macro_rules! cells {
    (@ [$($made:expr,)*]) => { vec![$($made,)*] };
    (@ [$($made:expr,)*] $tone:ident: $text:expr $(, $($rest:tt)*)?) => {
        $crate::output::cells!(@ [$($made,)* $crate::output::TableCell::new(
            $crate::output::Tone::$tone, $text
        ),] $($($rest)*)?)
    };
    (@ [$($made:expr,)*] ($tone:expr): $text:expr $(, $($rest:tt)*)?) => {
        $crate::output::cells!(@ [$($made,)* $crate::output::TableCell::new($tone, $text),]
            $($($rest)*)?)
    };
    (@ [$($made:expr,)*] $text:expr $(, $($rest:tt)*)?) => {
        $crate::output::cells!(@ [$($made,)* $crate::output::TableCell::plain($text),]
            $($($rest)*)?)
    };
    ($($cells:tt)+) => { $crate::output::cells!(@ [] $($cells)+) };
}
pub(crate) use cells;

/// A table: rows under titles.
#[derive(Clone, Debug)]
pub struct TextTable {
    titles: Vec<TableCell>,
    rows: Vec<Vec<TableCell>>,
    /// The columns that are aligned to the right.
    right: Vec<usize>,
    /// The columns that are shortened before the others.
    flexible: Vec<usize>,
}

impl TextTable {
    /// Creates an empty table with these titles.
    pub fn new(titles: &[&str]) -> Self {
        let titles = titles.iter().map(|title| TableCell::new(Tone::Heading, title)).collect();
        Self { titles, rows: Vec::new(), right: Vec::new(), flexible: Vec::new() }
    }

    /// Aligns this column to the right, as for numbers.
    pub fn right(mut self, column: usize) -> Self {
        self.right.push(column);
        self
    }

    /// Marks a column that is shortened before the others; the last column if none is marked. Of
    /// several marked columns, the widest is shortened first.
    pub fn flexible(mut self, column: usize) -> Self {
        self.flexible.push(column);
        self
    }

    /// Adds a row, one cell for each title.
    pub fn row(&mut self, cells: Vec<TableCell>) {
        debug_assert_eq!(cells.len(), self.titles.len(), "a cell for each title");
        self.rows.push(cells);
    }

    fn all_rows(&self) -> impl Iterator<Item = &Vec<TableCell>> {
        std::iter::once(&self.titles).chain(&self.rows)
    }

    /// Computes the width of each column; 0 for a column that is omitted.
    fn widths(&self, screen: Option<usize>) -> Vec<usize> {
        let mut widths = vec![0; self.titles.len()];
        for row in self.all_rows() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.text.width().max(*width);
            }
        }
        let Some(screen) = screen else { return widths };
        let last = [widths.len().saturating_sub(1)];
        let flexible = if self.flexible.is_empty() { &last } else { self.flexible.as_slice() };
        let minimum = |column: usize, width: usize| {
            width.min(if flexible.contains(&column) { MIN_FLEXIBLE } else { MIN_COLUMN })
        };
        let room = |widths: &[usize]| {
            let shown = widths.iter().filter(|width| **width > 0).count();
            screen.saturating_sub(GUTTER * shown.saturating_sub(1))
        };
        // Columns are omitted from the right until the minimum widths of the rest fit. The first
        // column and the flexible columns stay.
        for column in (1..widths.len()).rev().filter(|column| !flexible.contains(column)) {
            let needed: usize =
                widths.iter().enumerate().map(|(at, width)| minimum(at, *width)).sum();
            if needed <= room(&widths) {
                break;
            }
            if let Some(width) = widths.get_mut(column) {
                *width = 0;
            }
        }
        // The widest flexible column is shortened, one place at a time.
        let mut over = widths.iter().sum::<usize>().saturating_sub(room(&widths));
        while over > 0 {
            let widest = flexible.iter().filter_map(|column| widths.get(*column)).max().copied();
            let Some(widest) = widest.filter(|widest| *widest > MIN_FLEXIBLE) else { break };
            let column = flexible.iter().find(|column| widths.get(**column) == Some(&widest));
            if let Some(width) = column.and_then(|column| widths.get_mut(*column)) {
                *width -= 1;
                over -= 1;
            }
        }
        // If that is not enough, all columns are shortened, from the right.
        for column in (0..widths.len()).rev() {
            if let Some(width) = widths.get_mut(column) {
                let less = (*width - minimum(column, *width)).min(over);
                *width -= less;
                over -= less;
            }
        }
        widths
    }
}

/// Draws a table. No line ends with blanks. A column of width 0 is omitted.
pub(super) fn draw(table: &TextTable, screen: Option<usize>, colored: bool, to: &mut String) {
    let widths = table.widths(screen);
    for row in table.all_rows() {
        // How many blanks precede the next text. They are written with it, so none end a line.
        let mut blanks = 0;
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if *width == 0 {
                continue;
            }
            let text = shortened(&cell.text, *width);
            let pad = width.saturating_sub(text.width());
            let is_right = table.right.contains(&column);
            let before = blanks + if is_right { pad } else { 0 };
            blanks = GUTTER + if is_right { 0 } else { pad };
            if text.is_empty() {
                blanks += before;
                continue;
            }
            to.extend(std::iter::repeat_n(' ', before));
            push_styled(to, style_of(cell.tone, colored), &text);
        }
        to.push('\n');
    }
}

/// Returns the text, or as much of it as fits before an ellipsis.
pub(super) fn shortened(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    format!("{}…", prefix_within(text, room.saturating_sub(1)).trim_end())
}

/// Returns the longest prefix of a text that takes at most this many columns. Grapheme clusters
/// such as a joined emoji are not split.
pub(super) fn prefix_within(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.grapheme_indices(true).find_map(|(place, cluster)| {
        used += cluster.width();
        (used > room).then_some(place)
    });
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(table: &TextTable, screen: Option<usize>) -> String {
        let mut text = String::new();
        draw(table, screen, false, &mut text);
        text
    }

    fn sample() -> TextTable {
        let mut table = TextTable::new(&["Id", "Message", "N"]).flexible(1).right(2);
        table.row(vec![
            TableCell::plain("a1"),
            TableCell::plain("the tensor layout is wrong"),
            TableCell::plain("7"),
        ]);
        table.row(vec![
            TableCell::plain("b2"),
            TableCell::plain("日本語日本語日本語"),
            TableCell::plain("12"),
        ]);
        table.row(vec![TableCell::plain("c3"), TableCell::plain(""), TableCell::plain("")]);
        table
    }

    #[test]
    fn without_a_screen_nothing_is_shortened() {
        assert_eq!(
            drawn(&sample(), None),
            "Id  Message                      N\n\
             a1  the tensor layout is wrong   7\n\
             b2  日本語日本語日本語          12\n\
             c3\n"
        );
    }

    #[test]
    fn the_flexible_column_is_shortened_first() {
        assert_eq!(
            drawn(&sample(), Some(20)),
            "Id  Message        N\n\
             a1  the tensor…    7\n\
             b2  日本語日本…   12\n\
             c3\n"
        );
    }

    #[test]
    fn the_widest_of_two_flexible_columns_is_shortened_first() {
        let mut table = TextTable::new(&["Says", "Reason"]).flexible(0).flexible(1);
        table.row(vec![
            TableCell::plain("rows at midnight are dropped"),
            TableCell::plain("too small by far"),
        ]);
        assert_eq!(
            drawn(&table, Some(40)),
            "Says                    Reason\n\
             rows at midnight are…   too small by far\n"
        );
        assert_eq!(
            drawn(&table, Some(30)),
            "Says            Reason\n\
             rows at midni…  too small by…\n"
        );
    }

    #[test]
    fn on_a_narrow_screen_the_last_columns_are_left_out() {
        assert_eq!(
            drawn(&sample(), Some(16)),
            "Id  Message\n\
             a1  the tensor…\n\
             b2  日本語日本…\n\
             c3\n"
        );
    }

    #[test]
    fn joined_emoji_and_joined_letters_take_the_columns_they_are_seen_in() {
        let mut table = TextTable::new(&["Name", "N"]);
        for name in [
            "👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "क्\u{200d}ष", "1\u{fe0f}\u{20e3}",
            "abcdefgh",
        ] {
            table.row(vec![TableCell::plain(name), TableCell::plain("7")]);
        }
        let columns: Vec<usize> = drawn(&table, None)
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().0.width())
            .collect();
        assert!(columns.iter().all(|column| *column == columns[0]), "{columns:?}");
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(
            shortened(&format!("{family}{family}{family}"), 5),
            format!("{family}{family}…")
        );
        assert_eq!(prefix_within(&format!("a{family}b"), 2), "a");
        assert_eq!(prefix_within("می\u{200c}خواهم", 2), "می\u{200c}");
    }

    #[test]
    fn a_shortened_text_fits_its_width() {
        for room in 1..20 {
            assert!(shortened("日本 語abc 日本語", room).width() <= room);
        }
        assert_eq!(shortened("abc", 3), "abc");
    }
}
