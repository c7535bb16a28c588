//! One pass over a text: where a hint stands, the rules it stands for are tried.

use super::rule::{Rule, rules};
use super::{Finding, Form, MAX_SECRET_BYTES, credential, judge, naming};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

/// No word behind `redacted:` is longer.
const MAX_KIND_BYTES: usize = 32;

/// What a hint stands for.
#[derive(Clone, Copy)]
enum Hint {
    /// A token of this rule.
    Shape(usize),
    /// A name that tells what follows it.
    Name(&'static str),
    /// What surrounds a credential.
    Surroundings(credential::Kind),
}

struct Table {
    /// For each word that is searched for, what it stands for, and what the words stand for that it begins with.
    hints: Vec<Vec<Hint>>,
    search: AhoCorasick,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let shapes = rules().iter().enumerate();
    let shapes = shapes
        .flat_map(|(number, rule)| rule.hints.iter().map(move |word| (*word, Hint::Shape(number))));
    let names = naming::TELLING.iter().map(|(word, kind)| (*word, Hint::Name(kind)));
    let surroundings =
        credential::HINTS.iter().map(|(word, kind)| (*word, Hint::Surroundings(*kind)));
    let all: Vec<(&str, Hint)> = shapes.chain(names).chain(surroundings).collect();
    let words: BTreeSet<&str> = all.iter().map(|(word, _)| *word).collect();
    let begun_by = |word: &str| {
        all.iter().filter(|(begin, _)| word.starts_with(begin)).map(|(_, hint)| *hint).collect()
    };
    let hints = words.iter().map(|word| begun_by(word)).collect();
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&words)
        .expect("the table is small");
    Table { hints, search }
});

/// What a scan finds.
#[derive(Default)]
pub(crate) struct Found {
    /// The secrets; one may reach into another.
    pub(super) findings: Vec<Finding>,
    /// The places that belong together: from what tells of a secret to its end.
    pub(super) stretches: Vec<Range<usize>>,
    /// Where a private key begins that has not ended at the end of the text.
    pub(super) open: Option<usize>,
}

impl Found {
    /// What was found in the shares of one text, in their order.
    pub(super) fn together(shares: Vec<Self>) -> Self {
        let mut all = Self::default();
        for share in shares {
            all.findings.extend(share.findings);
            all.stretches.extend(share.stretches);
            all.open = all.open.or(share.open);
        }
        all
    }
}

/// What the words tell that stand in a share of a text; all of the text may be looked at around them. A share ends with a line, as
/// no name does: then all shares together tell what the whole does.
pub(crate) fn scan(text: &[u8], share: Range<usize>, form: Form) -> Found {
    let table = &*TABLE;
    let mut findings: Vec<Finding> = Vec::new();
    let mut stretches = Vec::new();
    let mut open = None;
    // A name is looked at once, whatever words it holds.
    let mut names_until = 0;
    let mut from = share.start;
    while let Some(hit) = table.search.find(Input::new(text).span(from..text.len())) {
        if hit.start() >= share.end {
            break;
        }
        // Words may overlap, so the next one is looked for behind the first byte of this one.
        from = hit.start() + 1;
        for hint in table.hints.get(hit.pattern().as_usize()).into_iter().flatten() {
            // The scheme of an address stands before what is searched for, as the beginning of a name does.
            let mut told_from = word_start(text, hit.start());
            let found = match *hint {
                Hint::Shape(number) => {
                    rules().get(number).and_then(|rule| shape(text, rule, hit.start()))
                }
                Hint::Name(_) if hit.start() < names_until || is_in_mark(text, hit.start()) => None,
                Hint::Name(kind) => naming::value_behind(text, hit.start(), hit.end(), form)
                    .and_then(|named| {
                        names_until = named.name.end;
                        told_from = told_from.min(named.name.start);
                        (judge::is_secret(text.get(named.value.clone())?)
                            && naming::tells(text.get(named.name)?))
                        .then_some(Finding { range: named.value, kind })
                    }),
                Hint::Surroundings(kind) => {
                    if kind == credential::Kind::Netrc {
                        let login = credential::login(text, hit.start(), form);
                        told_from = login.unwrap_or(told_from);
                    }
                    match credential::find(text, hit.start(), hit.end(), kind, form) {
                        credential::Found::Nothing => None,
                        credential::Found::Secret(finding) => Some(finding),
                        credential::Found::Open(at, finding) => {
                            open = open.or(Some(at));
                            finding
                        }
                    }
                }
            };
            if let Some(found) = found {
                stretches.push(told_from.min(found.range.start)..found.range.end);
                findings.push(found);
            }
        }
    }
    Found { findings, stretches, open }
}

fn shape(text: &[u8], rule: &Rule, hint: usize) -> Option<Finding> {
    let start = if rule.inner { word_start(text, hint) } else { hint };
    if !begins_word(text, start) {
        return None;
    }
    let end = text.len().min(start + MAX_SECRET_BYTES);
    let (from, to, whole) = rule.find(text.get(start..end)?)?;
    if text.get(start + whole).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let secret = text.get(start + from..start + to)?;
    (!judge::is_example(secret))
        .then_some(Finding { range: start + from..start + to, kind: rule.kind })
}

/// Whether this place is inside of what stands where a secret was: its kind is no name of what follows.
fn is_in_mark(text: &[u8], at: usize) -> bool {
    let inside = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'-';
    let before = text.get(at.saturating_sub(MAX_KIND_BYTES)..at).unwrap_or_default();
    let begun = before.iter().rev().take_while(inside).count();
    let behind = text.get(at..).unwrap_or_default();
    let rest = behind.iter().take(MAX_KIND_BYTES).take_while(inside).count();
    let (mark, kind) = (text.get(..at - begun).unwrap_or_default(), begun + rest);
    mark.ends_with(b"[redacted:") && kind > 0 && behind.get(rest) == Some(&b']')
}

/// Where the word around this place begins, at most 64 bytes before it.
fn word_start(text: &[u8], at: usize) -> usize {
    let before = text.get(at.saturating_sub(64)..at).unwrap_or_default();
    let inside =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'-' | b'.');
    let word = before.iter().rev().take_while(|byte| inside(byte)).count();
    // The letter of an escape is no part of the word.
    let start = at - word;
    if word > 0
        && start > 0
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b'r' | b't')
    {
        return start + 1;
    }
    start
}

/// Whether a word can begin here: nothing before it belongs to it, but for the letter of an escape.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(8)..at).unwrap_or_default();
    let Some(last) = before.last() else { return true };
    if !last.is_ascii_alphanumeric() && *last != b'_' {
        return true;
    }
    match before {
        // An escape of JSON, of an address, of a terminal.
        [.., b'\\', b'n' | b'r' | b't' | b'f' | b'b'] => true,
        [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()),
        [.., b'%', a, b] => a.is_ascii_hexdigit() && b.is_ascii_hexdigit(),
        [rest @ .., b'm'] => {
            let rest = rest.iter().rev().find(|byte| !byte.is_ascii_digit() && **byte != b';');
            rest == Some(&b'[')
        }
        _ => false,
    }
}

/// Whether `part` stands somewhere in `text`.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
