//! Detectors that find secrets in stored texts without knowing the secrets.

use super::known_secrets::TextPieces;
use super::{HashedSecrets, PartEnding, Redactor, TextForm, TextMasker};
use regex::bytes::Regex;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// A way to find secrets whose values are not known in advance.
#[derive(Clone, Debug)]
pub enum SecretDetector {
    /// Uses the built-in redaction rules.
    Rules(Redactor),
    /// Finds everything that the regular expression matches.
    Pattern(Regex),
    /// Finds the secrets that have one of these hashes.
    Hashes(HashedSecrets),
}

impl SecretDetector {
    /// Creates a detector that finds every match of a regular expression.
    ///
    /// # Errors
    /// Returns a message of one line if the expression is invalid.
    pub fn pattern(text: &str) -> Result<Self, String> {
        let found = Regex::new(text).map(Self::Pattern);
        found.map_err(|error| {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim().to_owned();
            format!("the pattern is not a regular expression: {last}")
        })
    }

    /// Returns whether a text can be searched in pieces. A pattern that can match a line end, or
    /// the beginning or end of a text, needs the whole text.
    pub(crate) fn reads_pieces(&self) -> bool {
        match self {
            Self::Rules(_) | Self::Hashes(_) => true,
            Self::Pattern(pattern) => {
                let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
                parser.parse(pattern.as_str()).is_ok_and(|hir| stays_in_line(&hir))
            }
        }
    }

    /// Adds the secrets in a text to `found`, without escapes. Some may be too short to purge.
    pub(crate) fn find(&self, text: &[u8], found: &mut BTreeSet<String>) {
        match self {
            Self::Pattern(pattern) => {
                pattern.find_iter(text).for_each(|one| put(one.as_bytes(), found));
            }
            Self::Rules(redactor) => {
                for one in redactor.find(text, form_of(text)) {
                    put(text.get(one.range).unwrap_or_default(), found);
                }
            }
            Self::Hashes(hashes) => hashes.find(text, found),
        }
    }
}

/// A line of this many bytes or more is searched in parts, except by a pattern.
const LONG_LINE_BYTES: usize = 1 << 20;

/// Returns whether no match contains a line end or depends on where the text begins or ends.
fn stays_in_line(hir: &Hir) -> bool {
    let ends = hir.properties().look_set();
    if ends.contains(Look::Start) || ends.contains(Look::End) {
        return false;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => !literal.0.contains(&b'\n'),
        HirKind::Class(Class::Unicode(class)) => {
            !class.iter().any(|range| range.start() <= '\n' && '\n' <= range.end())
        }
        HirKind::Class(Class::Bytes(class)) => {
            !class.iter().any(|range| range.start() <= b'\n' && b'\n' <= range.end())
        }
        HirKind::Repetition(repetition) => stays_in_line(&repetition.sub),
        HirKind::Capture(capture) => stays_in_line(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(stays_in_line),
    }
}

/// Searches a text that is read in pieces.
pub(crate) struct DetectorStream<'a> {
    collector: &'a SecretCollector<'a>,
    /// The bytes that are needed again: the last line, or a possible beginning of a secret.
    held: Vec<u8>,
    form: Option<TextForm>,
    /// The number of held bytes in which the last line end was looked for already.
    seen: usize,
}

impl<'a> DetectorStream<'a> {
    pub(crate) const fn new(collector: &'a SecretCollector<'a>) -> Self {
        Self { collector, held: Vec::new(), form: None, seen: 0 }
    }

    /// Adds a piece, and searches the lines that are complete with it.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
        let Some(line) = self.held.get(self.seen..).and_then(|new| memchr::memrchr(b'\n', new))
        else {
            self.seen = self.held.len();
            // Only a pattern needs whole lines.
            if self.seen >= LONG_LINE_BYTES
                && !matches!(self.collector.detector, SecretDetector::Pattern(_))
            {
                let taken = self.search(self.seen, PartEnding::More);
                self.held.drain(..taken);
                self.seen = self.held.len();
            }
            return;
        };
        let end = self.seen + line + 1;
        let taken = self.search(end, PartEnding::Line);
        self.held.drain(..taken);
        self.seen = self.held.len();
    }

    /// Searches the bytes that are still held. The text has ended.
    pub(crate) fn finish(mut self) {
        let end = self.held.len();
        self.search(end, PartEnding::End);
    }

    /// Searches the held bytes up to `end`. Returns how many of them are not needed any more.
    fn search(&mut self, end: usize, ending: PartEnding) -> usize {
        let text = self.held.get(..end).unwrap_or_default();
        let form = *self.form.get_or_insert_with(|| form_of(text));
        let mut found = self.collector.found.borrow_mut();
        match self.collector.detector {
            SecretDetector::Pattern(_) => {
                self.collector.detector.find(text, &mut found);
                end
            }
            SecretDetector::Hashes(hashes) => {
                hashes.find(text, &mut found);
                match ending {
                    PartEnding::End => end,
                    // A secret that begins in the last bytes may end in the next piece.
                    _ => end.saturating_sub(hashes.max_bytes()),
                }
            }
            SecretDetector::Rules(redactor) => {
                let part = redactor.clean_part(text, form, ending);
                for one in part.findings {
                    put(text.get(one.range).unwrap_or_default(), &mut found);
                }
                part.taken
            }
        }
    }
}

/// Returns the form of a text, judged by its first byte.
fn form_of(text: &[u8]) -> TextForm {
    let json = text.first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    if json { TextForm::Json } else { TextForm::Plain }
}

/// Adds a secret, with its escapes decoded.
fn put(bytes: &[u8], found: &mut BTreeSet<String>) {
    let Ok(plain) = std::str::from_utf8(bytes) else { return };
    let mut text = plain.to_owned();
    // A text inside a text is escaped twice.
    while text.contains('\\')
        && let Ok(inner) = serde_json::from_str::<String>(&format!("\"{text}\""))
        && inner != text
    {
        text = inner;
    }
    found.insert(text);
}

/// Collects the secrets that a detector finds in texts. It masks nothing.
pub(crate) struct SecretCollector<'a> {
    pub(crate) detector: &'a SecretDetector,
    pub(crate) found: RefCell<BTreeSet<String>>,
}

impl TextMasker for SecretCollector<'_> {
    fn masked(&self, text: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)> {
        self.detector.find(text, &mut self.found.borrow_mut());
        None
    }

    fn pieces(&self) -> Option<TextPieces<'_>> {
        self.detector.reads_pieces().then(|| TextPieces::Sought(DetectorStream::new(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(seek: &SecretDetector, text: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        seek.find(text.as_bytes(), &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn matches_are_found_with_their_escapes_decoded() {
        let seek = SecretDetector::pattern(r#"key-[0-9]+(\\+n|\n)?x"#).unwrap();
        assert_eq!(found(&seek, "a key-12345x key-1x"), ["key-12345x", "key-1x"]);
        assert_eq!(found(&SecretDetector::pattern("48[0-9]{3}").unwrap(), "pin 48151"), ["48151"]);
        assert_eq!(found(&seek, r#"{"a":"key-12345\nx"}"#), ["key-12345\nx"]);
        assert_eq!(found(&seek, r#"{"a":"key-12345\\nx"}"#), ["key-12345\nx"]);
        assert!(
            SecretDetector::pattern("(")
                .unwrap_err()
                .starts_with("the pattern is not a regular expression")
        );
    }

    #[test]
    fn rules_find_a_secret_in_plain_text_and_in_json() {
        let token = format!("ghp_{}", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
        let seek = SecretDetector::Rules(Redactor::new());
        assert_eq!(found(&seek, &format!("token {token}.")), vec![token.clone()]);
        assert_eq!(found(&seek, &serde_json::json!({ "t": token }).to_string()), [token]);
    }

    #[test]
    fn a_search_in_pieces_finds_the_same_as_a_search_of_the_whole_text() {
        let token = |seed: usize| format!("ghp_{seed:02}{}", "1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
        let lines = (0..60).map(|line| match line % 4 {
            0 => format!("use {} now\n", token(line)),
            1 => format!("pin is 48{line:03}{}\n", "x".repeat(line * 7)),
            2 => format!("{}\\n{}", "y".repeat(line * 90), token(line)),
            _ => "\n".to_owned(),
        });
        let text: String = lines.collect();
        let pattern = |text: &str| SecretDetector::pattern(text).unwrap();
        for seek in [SecretDetector::Rules(Redactor::new()), pattern("48[0-9]{3}x*")] {
            assert!(seek.reads_pieces());
            for size in [1, 7, 100, 5000] {
                let collector = SecretCollector { detector: &seek, found: RefCell::default() };
                let mut stream = DetectorStream::new(&collector);
                text.as_bytes().chunks(size).for_each(|piece| stream.push(piece));
                stream.finish();
                let wanted: BTreeSet<String> = found(&seek, &text).into_iter().collect();
                assert!(wanted.len() >= 15);
                assert_eq!(collector.found.into_inner(), wanted);
            }
        }
        for whole in ["a[^b]c", "(?s)a.c", "a\\s+b", "\\Aa", "a\n?b", "^a"] {
            assert!(!pattern(whole).reads_pieces(), "{whole}");
        }
        for lines in ["key-[0-9a-z]{4,}", "a.*b", "(?m)^pin", "\\bword\\b", "[^\\s\"]{8}"] {
            assert!(pattern(lines).reads_pieces(), "{lines}");
        }
    }

    #[test]
    fn a_long_line_is_not_held_by_the_rules() {
        let seek = SecretDetector::Rules(Redactor::new());
        let collector = SecretCollector { detector: &seek, found: RefCell::default() };
        let mut stream = DetectorStream::new(&collector);
        for _ in 0..40 {
            stream.push(&[b' '; 100_000]);
            assert!(stream.held.len() <= LONG_LINE_BYTES + 100_000);
        }
        stream.finish();
        assert_eq!(collector.found.into_inner().len(), 0);
    }
}
