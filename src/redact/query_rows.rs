//! Secrets among the values of a query, whose names are in the list of columns before them: `INSERT
//! INTO users (name, password) VALUES ('me', 'SECRET')`.

use super::byte_text::run;
use super::{MAX_SECRET_BYTES, SecretFinding, named_value, secret_heuristics, short, work_counter};
use std::ops::Range;

/// Maximum length of the list of columns, in bytes.
pub(super) const COLUMNS_BYTES: usize = 256;
/// Maximum length of the values of a row, in bytes.
const ROW_BYTES: usize = 1024;

/// The places of the values of a row; `None` for a value that is not in quotes.
type RowValues = Vec<Option<Range<usize>>>;

/// Returns the secrets in the rows after a hint, which is `values` and a bracket.
pub(super) fn find(text: &[u8], start: usize, end: usize) -> Vec<SecretFinding> {
    let columns = columns(text.get(start.saturating_sub(COLUMNS_BYTES)..start).unwrap_or_default());
    let mut found = Vec::new();
    // The hint ends with the bracket or with a line end before it.
    let mut open = match text.get(end - 1) {
        Some(b'(') => end - 1,
        _ => end + space(text, end),
    };
    let is_row = |open: usize| text.get(open) == Some(&b'(') && open + 1 < end + MAX_SECRET_BYTES;
    while !columns.is_empty() && is_row(open) {
        let Some((values, closed)) = row(text, open + 1) else { break };
        for &(column, kind, is_password) in &columns {
            let Some(range) = values.get(column).cloned().flatten() else { continue };
            let value = text.get(range.clone()).unwrap_or_default();
            let is_secret = if is_password {
                value.len() >= 6 && short::is_password(value)
            } else {
                secret_heuristics::is_secret(value)
            };
            if is_secret {
                found.push(SecretFinding { range, kind });
            }
        }
        let comma = closed + space(text, closed);
        if text.get(comma) != Some(&b',') {
            break;
        }
        open = comma + 1 + space(text, comma + 1);
    }
    found
}

/// Returns the numbers of the columns that have secrets, the kinds of these, and whether they are
/// certainly passwords. The text ends after the list of columns.
fn columns(before: &[u8]) -> Vec<(usize, &'static str, bool)> {
    let mut list = before.trim_ascii_end();
    while list.ends_with(b"\\n") || list.ends_with(b"\\r") {
        list = list.get(..list.len() - 2).unwrap_or_default().trim_ascii_end();
    }
    let Some(list) = list.strip_suffix(b")") else { return Vec::new() };
    let Some(open) = list.iter().rposition(|byte| *byte == b'(') else { return Vec::new() };
    let names = list.get(open + 1..).unwrap_or_default().split(|byte| *byte == b',');
    let kinds = names.enumerate().filter_map(|(number, name)| {
        let name = std::str::from_utf8(name).ok()?;
        let is_around = |sign: char| sign.is_whitespace() || "\"'`[]\\".contains(sign);
        let name = name.trim_matches(is_around);
        Some((number, named_value::kind_of(name)?, short::is_name_of_password(name)))
    });
    kinds.collect()
}

/// Returns the values of the row that begins at an offset, and the offset after its bracket.
fn row(text: &[u8], from: usize) -> Option<(RowValues, usize)> {
    let row = text.get(from..text.len().min(from + ROW_BYTES))?;
    let (mut values, mut value) = (RowValues::new(), None);
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match row.get(at)? {
            b'\'' => {
                let inside = row.get(at + 1..)?;
                let length = inside.iter().position(|byte| *byte == b'\'')?;
                // What a function makes of the text may be no secret.
                if depth == 0 {
                    value = Some(from + at + 1..from + at + 1 + length);
                }
                at += length + 1;
            }
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            b',' if depth == 0 => values.push(value.take()),
            _ => {}
        }
        at += 1;
    }
    work_counter::add(at);
    values.push(value);
    Some((values, from + at + 1))
}

/// Returns the length of the white space at an offset. A line end may be escaped.
fn space(text: &[u8], at: usize) -> usize {
    let mut length = 0;
    loop {
        let spaces = run(text, at + length, 64, |byte| byte.is_ascii_whitespace());
        let is_escape = text
            .get(at + length + spaces..)
            .is_some_and(|rest| rest.starts_with(b"\\n") || rest.starts_with(b"\\r"));
        length += spaces + if is_escape { 2 } else { 0 };
        if !is_escape || length > 128 {
            return length;
        }
    }
}
