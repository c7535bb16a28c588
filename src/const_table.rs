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
}
