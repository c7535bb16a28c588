//! One pass over a text: where a hint stands, the rules it stands for are tried.

use super::token_rule::{TokenPlacement, TokenRule, rules};
use super::token_shape::ScanMemory;
use super::{
    SecretFinding, TextForm, credential, kubernetes, named_value, secret_heuristics, short,
    unescaped_view, work_counter,
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

/// No word behind `redacted:` is longer.
const MAX_KIND_BYTES: usize = 32;

/// What a hint stands for.
#[derive(Clone, Copy)]
enum ScanHint {
    /// A token of this rule.
    Shape(usize),
    /// A name that tells what follows it.
    Name(&'static str),
    /// What surrounds a credential.
    Surroundings(credential::CredentialKind),
}

struct HintTable {
    /// For each word that is searched for, what it stands for, and what the words stand for that it begins with.
    hints: Vec<Vec<ScanHint>>,
    search: AhoCorasick,
}

static TABLE: LazyLock<HintTable> = LazyLock::new(|| {
    let shapes = rules().iter().enumerate();
    let shapes = shapes.flat_map(|(number, rule)| {
        rule.hints.iter().map(move |word| (*word, ScanHint::Shape(number)))
    });
    let names = named_value::TELLING.iter().map(|(word, kind)| (*word, ScanHint::Name(kind)));
    let surroundings =
        credential::HINTS.iter().map(|(word, kind)| (*word, ScanHint::Surroundings(*kind)));
    let all: Vec<(&str, ScanHint)> = shapes.chain(names).chain(surroundings).collect();
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
    HintTable { hints, search }
});

/// What a scan finds.
#[derive(Default)]
pub(crate) struct ScanFindings {
    /// The secrets; one may reach into another.
    pub(super) findings: Vec<SecretFinding>,
    /// The places that belong together: from what tells of a secret to its end.
    pub(super) stretches: Vec<Range<usize>>,
    /// Where a private key begins that has not ended at the end of the text.
    pub(super) open: Option<usize>,
}

impl ScanFindings {
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

/// The key under which values of telling names are judged; shapes have their numbers.
const NAMED: usize = usize::MAX;

/// What the words tell that stand in a share of a text; all of the text may be looked at around them. A share ends
/// with a line, as no name does: then all shares together tell what the whole does.
pub(crate) fn scan(text: &[u8], share: Range<usize>, form: TextForm) -> ScanFindings {
    let mut all = scan_as_written(text, share.clone(), form);
    for view in unescaped_view::views(text, &share) {
        let found = scan_as_written(&view.bytes, 0..view.bytes.len(), form);
        view.found(found, &share, &mut all);
    }
    all
}

fn scan_as_written(text: &[u8], share: Range<usize>, form: TextForm) -> ScanFindings {
    let table = &*TABLE;
    let mut scan =
        TextScan { text, form, runs: ScanMemory::default(), names_until: 0, key: 0..0, seen: 0..0 };
    let mut all = ScanFindings::default();
    let mut from = share.start;
    work_counter::add(share.len());
    while let Some(hit) = table.search.find(Input::new(text).span(from..text.len())) {
        if hit.start() >= share.end {
            break;
        }
        // Words may overlap, so the next one is looked for behind the first byte of this one.
        from = hit.start() + 1;
        for hint in table.hints.get(hit.pattern().as_usize()).into_iter().flatten() {
            work_counter::add(hit.len());
            scan.hint(*hint, hit.start()..hit.end(), &mut all);
        }
    }
    all
}

/// A text that is scanned from its beginning to its end.
struct TextScan<'a> {
    text: &'a [u8],
    form: TextForm,
    runs: ScanMemory,
    /// A name is looked at once, whatever words it holds.
    names_until: usize,
    /// What was looked at as a private key: another that begins in it is part of it.
    key: Range<usize>,
    /// What was looked at for more than one secret.
    seen: Range<usize>,
}

impl TextScan<'_> {
    /// Looks for what a hint stands for.
    fn hint(&mut self, hint: ScanHint, word: Range<usize>, all: &mut ScanFindings) {
        // The scheme of an address stands before what is searched for, as the beginning of a name does.
        let mut told_from = word_start(self.text, word.start);
        let found = match hint {
            ScanHint::Shape(number) => {
                rules().get(number).and_then(|rule| self.shape(number, rule, &word))
            }
            ScanHint::Name(kind) => self.named(kind, &word).map(|(finding, name)| {
                told_from = told_from.min(name.start);
                finding
            }),
            ScanHint::Surroundings(kind) => {
                if kind == credential::CredentialKind::Netrc {
                    let login = credential::login(self.text, word.start, self.form);
                    told_from = login.unwrap_or(told_from);
                }
                match kind {
                    credential::CredentialKind::Login
                    | credential::CredentialKind::Cookie
                    | credential::CredentialKind::Kubernetes => self.several(kind, &word, all),
                    _ => self.surrounded(kind, &word, all),
                }
            }
        };
        if let Some(found) = found {
            // A value may precede what tells of it.
            all.stretches.push(told_from.min(found.range.start)..found.range.end.max(word.end));
            all.findings.push(found);
        }
    }

    /// A token of a rule whose hint is this word.
    fn shape(
        &mut self,
        number: usize,
        rule: &TokenRule,
        word: &Range<usize>,
    ) -> Option<SecretFinding> {
        let text = self.text;
        match rule.place {
            TokenPlacement::Hint => self.token(number, rule, word.start),
            TokenPlacement::Word => {
                let from = word_start(text, word.start);
                // A word may also begin after what joins words: the `-` of a removed line, the `.` of a member.
                // A place that was tried for an earlier hint need not be tried again.
                let from = from.max(self.runs.tried(number, word.start + 1));
                (from..=word.start).find_map(|at| self.token(number, rule, at))
            }
            TokenPlacement::Value => {
                let named =
                    named_value::value_behind(text, word.clone(), self.form, &mut self.runs)?;
                let token = rule.find(text, named.value.start, &mut self.runs)?;
                let is_whole = token.end == named.value.end;
                let is_id = rule.kind.ends_with("-id");
                let value = text.get(named.value.clone())?;
                (is_whole
                    && (is_id || named_value::is_telling_name(text.get(named.name)?))
                    && secret_heuristics::is_key_of_service(value))
                .then_some(SecretFinding { range: named.value, kind: rule.kind })
            }
        }
    }

    /// A token that begins at this place.
    fn token(&mut self, number: usize, rule: &TokenRule, start: usize) -> Option<SecretFinding> {
        let text = self.text;
        if !begins_word(text, start) {
            return None;
        }
        let token = rule.find(text, start, &mut self.runs)?;
        if text.get(token.end).is_some_and(u8::is_ascii_alphanumeric)
            || !self.runs.should_judge(number, start, token.run_end)
        {
            return None;
        }
        let is_secret = !secret_heuristics::is_example(text.get(token.secret.clone())?);
        self.runs.judged(number, &(start..token.secret.end), token.run_end, is_secret);
        is_secret.then_some(SecretFinding { range: token.secret, kind: rule.kind })
    }

    fn named(
        &mut self,
        kind: &'static str,
        word: &Range<usize>,
    ) -> Option<(SecretFinding, Range<usize>)> {
        let text = self.text;
        if word.start < self.names_until || is_in_mark(text, word.start) {
            return None;
        }
        let named = named_value::value_behind(text, word.clone(), self.form, &mut self.runs)?;
        self.names_until = named.name.end;
        if !self.runs.should_judge(NAMED, named.value.start, named.run_end) {
            return None;
        }
        let is_secret = (secret_heuristics::is_secret(text.get(named.value.clone())?)
            || short::is_secret(text, &named))
            && named_value::is_telling_name(text.get(named.name.clone())?);
        self.runs.judged(NAMED, &named.value, named.run_end, is_secret);
        is_secret.then_some((SecretFinding { range: named.value, kind }, named.name))
    }

    /// What may be more than one secret; all but the last are noted.
    fn several(
        &mut self,
        kind: credential::CredentialKind,
        word: &Range<usize>,
        all: &mut ScanFindings,
    ) -> Option<SecretFinding> {
        if self.seen.contains(&word.start) {
            return None;
        }
        let text = self.text;
        let mut found = match kind {
            credential::CredentialKind::Kubernetes => {
                let (found, object) = kubernetes::find(text, word.clone(), self.form);
                self.seen = word.start.max(object.start)..object.end;
                found
            }
            credential::CredentialKind::Cookie => {
                let (found, end) = credential::cookies(text, word.end);
                self.seen = word.start..end;
                found
            }
            _ => {
                let named =
                    named_value::value_behind(text, word.clone(), self.form, &mut self.runs)?;
                let whole = text.get(named.name.end.saturating_sub(4)..named.name.end)?;
                let is_auth = whole.eq_ignore_ascii_case(b"auth");
                let is_login = is_auth
                    && named.value.len() <= 1024
                    && credential::login_value(text.get(named.value.clone())?);
                is_login
                    .then_some(SecretFinding { range: named.value, kind: "basic" })
                    .into_iter()
                    .collect()
            }
        };
        let last = found.pop();
        for found in found {
            // A value may precede what tells of it.
            all.stretches.push(word.start.min(found.range.start)..found.range.end.max(word.end));
            all.findings.push(found);
        }
        last
    }

    fn surrounded(
        &mut self,
        kind: credential::CredentialKind,
        word: &Range<usize>,
        all: &mut ScanFindings,
    ) -> Option<SecretFinding> {
        let is_key = kind == credential::CredentialKind::PrivateKey;
        if is_key && self.key.contains(&word.start) {
            return None;
        }
        let (open, finding) =
            match credential::find(self.text, word.start, word.end, kind, self.form) {
                credential::CredentialMatch::Nothing => return None,
                credential::CredentialMatch::Secret(finding) => (None, Some(finding)),
                credential::CredentialMatch::Open(at, finding) => (Some(at), finding),
            };
        all.open = all.open.or(open);
        if is_key {
            let end = finding.as_ref().map_or(self.text.len(), |finding| finding.range.end);
            self.key = word.start..end;
        }
        finding
    }
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

/// Whether a word can begin here: nothing before it belongs to it, but for the letter of an escape or of a flag.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let before = text.get(at.saturating_sub(32)..at).unwrap_or_default();
    let Some(last) = before.last() else { return true };
    if !is_word(*last) || text.get(at).is_some_and(|byte| !is_word(*byte)) {
        return true;
    }
    match before {
        // An escape of a string, of an address, of a terminal.
        [.., b'\\', b'n' | b'r' | b't' | b'f' | b'b'] => true,
        [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()),
        [.., b'\\', b'x', a, b] | [.., b'%', a, b] => {
            a.is_ascii_hexdigit() && b.is_ascii_hexdigit()
        }
        [.., b'\\', a @ b'0'..=b'3', b, c] => {
            [a, b, c].iter().all(|digit| (b'0'..=b'7').contains(*digit))
        }
        [.., b'(', b'B'] => true,
        // A flag of one letter: `-pSECRET`.
        [b'-', letter] | [.., b' ' | b'"' | b'\'' | b'=' | b',' | b'\n' | b'\t', b'-', letter] => {
            letter.is_ascii_alphabetic()
        }
        [rest @ .., b'm' | b'K'] => {
            let rest =
                rest.iter().rev().find(|byte| !byte.is_ascii_digit() && !b";:".contains(byte));
            rest == Some(&b'[')
        }
        _ => false,
    }
}

/// Whether `part` stands somewhere in `text`.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
