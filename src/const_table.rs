//! Reads tables when the program is compiled, so that no process has to read them.
//!
//! A table is a text. Its rows are lines, with a tab between two columns. A line that begins with
//! `#` is a comment.

/// Returns the number of rows of a table.
#[must_use]
pub const fn count(text: &str) -> usize {
    let (mut rest, mut count) = (text, 0);
    while !rest.is_empty() {
        let (line, after) = split(rest, b'\n');
        if is_row(line) {
            count += 1;
        }
        rest = after;
    }
    count
}

/// Returns the first `ROWS` rows of a table. The last column has the rest of the line; a column
/// that is missing is empty.
#[must_use]
pub const fn rows<const ROWS: usize, const COLUMNS: usize>(
    text: &'static str,
) -> [[&'static str; COLUMNS]; ROWS] {
    let mut rows = [[""; COLUMNS]; ROWS];
    let (mut rest, mut row) = (text, 0);
    while row < ROWS && !rest.is_empty() {
        let (mut line, after) = split(rest, b'\n');
        rest = after;
        if is_row(line) {
            let mut column = 0;
            while column + 1 < COLUMNS {
                (rows[row][column], line) = split(line, b'\t');
                column += 1;
            }
            rows[row][column] = line;
            row += 1;
        }
    }
    rows
}

/// Returns the first `PARTS` parts of the first column, each with the index of its row, and the
/// number of all parts. `separator` is between two parts; blanks after it are left out.
#[must_use]
pub const fn parts<const PARTS: usize, const COLUMNS: usize>(
    rows: &[[&'static str; COLUMNS]],
    separator: u8,
) -> ([(&'static str, usize); PARTS], usize) {
    let mut parts = [("", 0); PARTS];
    let (mut count, mut row) = (0, 0);
    while row < rows.len() {
        let mut rest = rows[row][0];
        while !rest.is_empty() {
            let (part, after) = split(rest, separator);
            if count < PARTS {
                parts[count] = (part, row);
            }
            count += 1;
            rest = after.trim_ascii_start();
        }
        row += 1;
    }
    (parts, count)
}

const fn is_row(line: &str) -> bool {
    !matches!(line.as_bytes(), [] | [b'#', ..])
}

/// Splits a text at the first such ASCII character, which is in neither part. Without one, all is
/// in the first part.
pub const fn split(text: &str, at: u8) -> (&str, &str) {
    assert!(at.is_ascii());
    let bytes = text.as_bytes();
    let mut before = 0;
    while before < bytes.len() && bytes[before] != at {
        before += 1;
    }
    let (first, rest) = text.split_at(before);
    if rest.is_empty() { (first, rest) } else { (first, rest.split_at(1).1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_columns_of_its_lines_without_comments() {
        const TEXT: &str = "# a comment\na\tb c\td\te\n\nf\n";
        const COUNT: usize = count(TEXT);
        assert_eq!(rows::<COUNT, 3>(TEXT), [["a", "b c", "d\te"], ["f", "", ""]]);
    }

    #[test]
    fn the_first_column_has_parts() {
        const ROWS: &[[&str; 2]] = &[["a, b c", "x, y"], ["d", ""]];
        assert_eq!(parts::<0, 2>(ROWS, b',').1, 3);
        assert_eq!(parts::<3, 2>(ROWS, b',').0, [("a", 0), ("b c", 0), ("d", 1)]);
    }
}
