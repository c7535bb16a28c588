//! Which session the records of a line belong to, and which records they follow.

use super::reader::TranscriptDialect;
use super::record_split::{LinePart, split, trimmed};
use crate::lenient::LenientText;
use serde::Deserialize;
use std::ops::Range;

/// The session of a record of Claude Code, and its place in the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLinks {
    /// The id of the session.
    pub session: Option<String>,
    /// The id of the record.
    pub uuid: Option<String>,
    /// The ids of the records that it follows.
    pub parents: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct LinkFields<'a> {
    session_id: LenientText<'a>,
    uuid: LenientText<'a>,
    parent_uuid: LenientText<'a>,
    logical_parent_uuid: LenientText<'a>,
}

/// Returns the ranges of the records of a line, with their links. Bytes between the ranges belong
/// to no record.
#[must_use]
pub fn record_links(line: &[u8]) -> Vec<(Range<usize>, RecordLinks)> {
    let links = |range: &Range<usize>| {
        let fields: LinkFields<'_> = serde_json::from_slice(line.get(range.clone())?).ok()?;
        let owned = |text: &LenientText<'_>| text.text().map(str::to_owned);
        let parents = [&fields.parent_uuid, &fields.logical_parent_uuid];
        Some(RecordLinks {
            session: owned(&fields.session_id),
            uuid: owned(&fields.uuid),
            parents: parents.into_iter().filter_map(owned).collect(),
        })
    };
    let whole = trimmed(line);
    if let Some(found) = links(&whole) {
        return vec![(whole, found)];
    }
    let parts = split(line, TranscriptDialect::ClaudeCode).into_iter();
    let ranges = parts.filter_map(|part| match part {
        LinePart::Record(range) => Some(range),
        LinePart::Lost(..) => None,
    });
    ranges.map(|range| (range.clone(), links(&range).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_of_a_line_has_its_own_links() {
        let one = r#"{"type":"user","sessionId":"a","uuid":"u1","parentUuid":null}"#;
        let two = r#"{"type":"user","sessionId":"b","uuid":"u2","logicalParentUuid":"u1"}"#;
        let line = format!("{one}{two}\n");
        let found = record_links(line.as_bytes());
        let named = |(range, links): &(Range<usize>, RecordLinks)| {
            (line[range.clone()].to_owned(), links.session.clone())
        };
        let sessions: Vec<_> = found.iter().map(named).collect();
        let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
        assert_eq!(sessions, [(one.to_owned(), a), (two.to_owned(), b)]);
        assert_eq!(found[1].1.parents, ["u1"]);
        assert_eq!(found[0].1.parents, [""; 0]);
    }
}
