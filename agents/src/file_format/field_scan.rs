//! Collects the field names and short texts of JSON that may be cut off or damaged, and that may
//! hold several records.

use std::collections::{BTreeMap, BTreeSet};

/// Deeper fields do not identify a format.
const MAX_LEVELS: usize = 4;
const MAX_PATHS: usize = 1024;
const MAX_RECORDS: usize = 256;
/// A longer text or name, in bytes, does not identify a format.
const MAX_WORD: usize = 40;
const MAX_WORDS: usize = 64;

/// The paths of the fields of a file's records, such as `info.version` or `messages[].role`. A
/// list around all records is not part of the paths.
#[derive(Debug, Default)]
pub(super) struct RecordFieldPaths {
    paths: BTreeSet<String>,
    /// The top-level field names of each record.
    records: Vec<BTreeSet<String>>,
    /// The short texts of each field, by path.
    words: BTreeMap<String, BTreeSet<String>>,
    pub(super) objects: usize,
    pub(super) lists: usize,
    /// Whether the records are in a list.
    pub(super) list: bool,
}

/// An object or a list that is not closed yet.
struct OpenContainer {
    object: bool,
    /// The length of the path before this container.
    length: usize,
    /// For an object: the length of the path before the name of the field whose value is next.
    named: Option<usize>,
}

struct FieldScanner<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<OpenContainer>,
    path: String,
    shape: RecordFieldPaths,
}

impl RecordFieldPaths {
    pub(super) fn from_bytes(head: &[u8]) -> Self {
        let bytes = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let open = Vec::new();
        let mut scan =
            FieldScanner { bytes, at: 0, open, path: String::new(), shape: Self::default() };
        while scan.step() {}
        scan.shape
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Whether one record has all the fields `names`, and lacks the field `not`.
    pub(super) fn record_has(&self, names: &[&str], not: &str) -> bool {
        let mut records = self.records.iter();
        records.any(|own| names.iter().all(|name| own.contains(*name)) && !own.contains(not))
    }

    /// Whether one of the short texts at this path matches.
    pub(super) fn has_word(&self, path: &str, matches: impl Fn(&str) -> bool) -> bool {
        self.words.get(path).is_some_and(|words| words.iter().any(|word| matches(word)))
    }
}

impl FieldScanner<'_> {
    /// Reads the next byte or string. Returns false when there is nothing left to read. A bracket
    /// that cannot belong to the record begins another record.
    fn step(&mut self) -> bool {
        let Some(byte) = self.bytes.get(self.at).copied() else { return false };
        let expects_name =
            self.open.last().is_some_and(|frame| frame.object && frame.named.is_none());
        match byte {
            b'{' | b'[' => {
                // A damaged record ended early: inside an object, a bracket follows a name, and is
                // never the first character of a line.
                let inside = self.open.last().is_some_and(|frame| frame.object);
                if expects_name
                    || (inside && self.bytes.get(self.at.wrapping_sub(1)) == Some(&b'\n'))
                {
                    self.start_record();
                }
                self.begin(byte == b'{');
            }
            b'}' | b']' => {
                if let Some(frame) = self.open.pop() {
                    self.path.truncate(frame.length);
                }
            }
            b'"' => return self.text(expects_name),
            b',' => {
                let named = self.open.last_mut().and_then(|frame| frame.named.take());
                self.path.truncate(named.unwrap_or(self.path.len()));
            }
            _ if self.open.is_empty() && !byte.is_ascii_whitespace() && byte != 0 => {
                self.skip_line();
            }
            _ => {}
        }
        self.at += 1;
        true
    }

    fn begin(&mut self, object: bool) {
        let top = self.open.is_empty();
        if object {
            if top || (self.shape.list && self.open.len() == 1) {
                self.shape.objects += 1;
                if self.shape.records.len() < MAX_RECORDS {
                    self.shape.records.push(BTreeSet::new());
                }
            }
        } else if top {
            self.shape.lists += 1;
            self.shape.list = true;
        }
        let length = self.path.len();
        // The list around all records is not part of a path.
        if !object && !top {
            self.path.push_str("[]");
        }
        self.open.push(OpenContainer { object, length, named: None });
    }

    /// Closes all open containers, because the record is incomplete and another record begins.
    fn start_record(&mut self) {
        self.open.clear();
        self.path.clear();
    }

    fn skip_line(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// Reads a string: the name of a field or a value. Returns false if the bytes end inside it.
    fn text(&mut self, expects_name: bool) -> bool {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                None => return false,
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                // A JSON string contains no raw line break, so the record is damaged.
                Some(b'\n') => {
                    self.start_record();
                    self.at = end + 1;
                    return true;
                }
                Some(_) => end += 1,
            }
        }
        let text = self.bytes.get(start..end).unwrap_or_default();
        self.at = end + 1;
        if self.open.is_empty() || self.open.len() > MAX_LEVELS || text.len() > MAX_WORD {
            if let (true, Some(frame)) = (expects_name, self.open.last_mut()) {
                frame.named = Some(self.path.len());
            }
            return true;
        }
        let text = String::from_utf8_lossy(text).into_owned();
        if expects_name {
            if let Some(frame) = self.open.last_mut() {
                frame.named = Some(self.path.len());
            }
            if self.path.is_empty() {
                if let Some(record) = self.shape.records.get_mut(self.shape.objects.wrapping_sub(1))
                {
                    record.insert(text.clone());
                }
            } else {
                self.path.push('.');
            }
            self.path.push_str(&text);
            if self.shape.paths.len() < MAX_PATHS {
                self.shape.paths.insert(self.path.clone());
            }
        } else if self.shape.words.len() < MAX_PATHS {
            let words = self.shape.words.entry(self.path.clone()).or_default();
            if words.len() < MAX_WORDS {
                words.insert(text);
            }
        }
        true
    }
}
