//! Scans a text: where a hint occurs, the rules of that hint are tried.

use super::hint_table::{ScanHint, TABLE};
use super::token_rule::{TokenPlacement, TokenRule, rules};
use super::token_shape::ScanMemory;
use super::wrapped_token::{self, JoinedLines};
use super::{
    SecretFinding, TextForm, byte_text, command_secret, credential, dotted_token, kubernetes,
    named_value, program_secret, query_rows, secret_heuristics, short, unescaped_view,
    work_counter,
};
use std::ops::Range;

/// Maximum length of the word after `redacted:`.
const MAX_KIND_BYTES: usize = 32;

/// The results of a scan.
#[derive(Default)]
pub(crate) struct ScanFindings {
    /// The secrets; they may overlap.
    pub(super) findings: Vec<SecretFinding>,
    /// The ranges from the text that indicates a secret to the end of the secret, or the reverse. A
    /// text must not be cut inside of one.
    pub(super) indicated_ranges: Vec<Range<usize>>,
    /// The start of a private key without an end in the text.
    pub(super) open: Option<usize>,
}

impl ScanFindings {
    /// Combines the findings in the shares of one text, in order.
    pub(super) fn together(shares: Vec<Self>) -> Self {
        let mut all = Self::default();
        for share in shares {
            all.findings.extend(share.findings);
            all.indicated_ranges.extend(share.indicated_ranges);
            all.open = all.open.or(share.open);
        }
        all
    }
}

/// The key in [`ScanMemory`] for values of names. The key for the tokens of a rule is the number of
/// the rule.
const NAMED: usize = usize::MAX;

/// Scans a share of a text; the text around it may be read as context. Shares that end at line ends
/// together give the same result as the whole text, because no name spans a line end.
pub(crate) fn scan(text: &[u8], share: Range<usize>, form: TextForm) -> ScanFindings {
    let (mut all, escapes) = scan_as_written(text, share.clone(), form);
    for view in unescaped_view::views(text, &share, &escapes) {
        let (found, _) = scan_as_written(&view.bytes, 0..view.bytes.len(), form);
        view.found(found, &share, &mut all);
    }
    // Half of an escape would make JSON invalid: its backslash is removed with its letter.
    if form == TextForm::Json {
        for found in &mut all.findings {
            let before = text.get(..found.range.start).unwrap_or_default();
            found.range.start -= byte_text::backslashes_at_end(before) % 2;
        }
    }
    all
}

/// Scans without resolving escapes. Returns the findings, and the offsets at which an escape may
/// begin.
fn scan_as_written(text: &[u8], share: Range<usize>, form: TextForm) -> (ScanFindings, Vec<usize>) {
    let mut escapes = Vec::new();
    let table = &TABLE;
    let mut scan = TextScan {
        text,
        form,
        runs: ScanMemory::default(),
        names_until: 0,
        token_bytes: 0..0,
        key: 0..0,
        seen: 0..0,
        cookies: 0..0,
    };
    let mut all = ScanFindings::default();
    for found in dotted_token::find_all(text, share.clone()) {
        all.indicated_ranges.push(found.range.clone());
        all.findings.push(found);
    }
    let mut from = share.start;
    work_counter::add(share.len());
    while let Some(start) = table.starts().next(text, from..share.end) {
        // Hints may overlap, so the search continues after the first byte of this one.
        from = start + 1;
        for (word, hint) in table.at_beginning(&text[start..]) {
            work_counter::add(word.len());
            match hint {
                ScanHint::Escape => escapes.push(start),
                _ => scan.hint(hint, start..start + word.len(), &mut all),
            }
        }
    }
    (all, escapes)
}

/// The state of a scan from the beginning of a text to its end.
struct TextScan<'a> {
    text: &'a [u8],
    form: TextForm,
    runs: ScanMemory,
    /// End of the name examined last: a name is examined once, whatever words it contains.
    names_until: usize,
    /// The rest of the bytes of a token that was looked for last, after a hint.
    token_bytes: Range<usize>,
    /// The private key examined last: another that begins inside of it is part of it.
    key: Range<usize>,
    /// The text last examined as a whole: a value of a program, or a text with several secrets.
    seen: Range<usize>,
    /// The header whose cookies were examined last. It may also contain logins.
    cookies: Range<usize>,
}

impl TextScan<'_> {
    /// Applies the rules of a hint.
    fn hint(&mut self, hint: ScanHint, word: Range<usize>, all: &mut ScanFindings) {
        // Where the text begins that indicates the secret, unless that is the word of the hint.
        let mut indication_start = None;
        let found = match hint {
            ScanHint::Shape(number) => {
                rules().get(number).and_then(|rule| self.shape(number, rule, &word))
            }
            ScanHint::Escape => None,
            ScanHint::Name(kind) => self.named(kind, &word).map(|(finding, name)| {
                indication_start = Some(name.start.min(word_start(self.text, word.start)));
                finding
            }),
            // A value that is read whole is read once.
            ScanHint::Program(_) if self.seen.contains(&word.start) => None,
            ScanHint::Program(place) => {
                let found = program_secret::find(self.text, word.start, word.end, place, self.form);
                if let Some(found) = &found
                    && found.range.start >= word.end
                {
                    self.seen = word.start..found.range.end;
                }
                found
            }
            ScanHint::Command(place) => {
                command_secret::find(self.text, word.start, word.end, place)
            }
            ScanHint::Surroundings(kind) => {
                if kind == credential::CredentialKind::Netrc {
                    indication_start = credential::login(self.text, word.start, self.form);
                }
                if kind == credential::CredentialKind::Rows {
                    indication_start = Some(word.start.saturating_sub(query_rows::COLUMNS_BYTES));
                }
                match kind {
                    credential::CredentialKind::Login
                    | credential::CredentialKind::Cookie
                    | credential::CredentialKind::CookieList
                    | credential::CredentialKind::Rows
                    | credential::CredentialKind::Kubernetes => self.several(kind, &word, all),
                    _ => self.surrounded(kind, &word, all),
                }
            }
        };
        if let Some(found) = found {
            // The scheme of a URL precedes the hint, like the beginning of a name.
            let start = indication_start.unwrap_or_else(|| word_start(self.text, word.start));
            // A value may precede the text that indicates it.
            all.indicated_ranges.push(start.min(found.range.start)..found.range.end.max(word.end));
            all.findings.push(found);
        }
    }

    /// Finds a token of a rule whose hint is this word.
    fn shape(
        &mut self,
        number: usize,
        rule: &TokenRule,
        word: &Range<usize>,
    ) -> Option<SecretFinding> {
        let text = self.text;
        match rule.place {
            TokenPlacement::Hint => {
                let token = self.token(number, rule, word.start, is_distinctive(text, word));
                token.or_else(|| cut_token(text, rule, word, &mut self.token_bytes))
            }
            TokenPlacement::Word => {
                let from = word_start(text, word.start);
                // A word may also begin after a joining character: the `-` of a removed line, the
                // `.` of a member. An offset that was tried for an earlier hint is not tried again.
                let from = from.max(self.runs.tried(number, word.start + 1));
                (from..=word.start).find_map(|at| self.token(number, rule, at, false))
            }
            TokenPlacement::Value => {
                let named =
                    named_value::value_after(text, word.clone(), self.form, &mut self.runs, true)?;
                let token = rule.find(text, named.value.start, &mut self.runs)?;
                let is_whole = token.end >= named.value.end
                    && !text.get(token.end).is_some_and(u8::is_ascii_alphanumeric);
                if named.is_expression && token.end <= named.value.end || !is_whole {
                    return None;
                }
                let is_id = rule.kind.ends_with("-id");
                let value = text.get(token.secret)?;
                ((is_id || named_value::indicates_secret(text.get(named.name)?))
                    && secret_heuristics::is_key_of_service(value))
                .then_some(SecretFinding { range: named.value.start..token.end, kind: rule.kind })
            }
        }
    }

    /// Finds a token that begins at this offset. A `distinctive` token may follow a letter.
    fn token(
        &mut self,
        number: usize,
        rule: &TokenRule,
        start: usize,
        distinctive: bool,
    ) -> Option<SecretFinding> {
        let text = self.text;
        if !(byte_text::begins_word(text, start) || distinctive && follows_letter(text, start)) {
            return None;
        }
        let token = rule.find(text, start, &mut self.runs);
        let ends_line = |at: usize| wrapped_token::line_end(text, at).is_some();
        if distinctive && token.as_ref().is_none_or(|token| ends_line(token.end)) {
            let least = token.as_ref().map(|token| token.end - start);
            if let Some(found) = self.wrapped(rule, start, least) {
                return Some(found);
            }
        }
        let token = token?;
        let is_glued = text.get(token.end).is_some_and(u8::is_ascii_alphanumeric);
        // What follows may be another word, if no byte of the token can be like it.
        let may_be_glued = distinctive && token.run_end == token.end;
        if is_glued && !may_be_glued || !self.runs.should_judge(number, start, token.run_end) {
            return None;
        }
        let secret = text.get(token.secret.clone())?;
        let is_secret = !secret_heuristics::is_example(secret)
            && (!(rule.is_random || is_glued) || secret_heuristics::is_random(secret));
        self.runs.judged(number, &(start..token.secret.end), token.run_end, is_secret);
        is_secret.then_some(SecretFinding { range: token.secret, kind: rule.kind })
    }

    /// Finds a token that line ends split. It must look generated. If a part of `least` bytes is a
    /// token already, the part on the last line must look generated too.
    fn wrapped(
        &mut self,
        rule: &TokenRule,
        start: usize,
        least: Option<usize>,
    ) -> Option<SecretFinding> {
        let joined = JoinedLines::of(self.text, start, &mut self.runs)?;
        let token = rule.find(&joined.bytes, 0, &mut ScanMemory::default())?;
        let secret = joined.bytes.get(token.secret.clone())?;
        let tail = joined.last_part(token.end)?;
        let is_tail = |least: usize| {
            token.end > least
                && tail.len() >= wrapped_token::MIN_TAIL_BYTES
                && secret_heuristics::is_random(tail)
        };
        let is_whole = !joined.bytes.get(token.end).is_some_and(u8::is_ascii_alphanumeric);
        let is_secret = is_whole
            && least.is_none_or(is_tail)
            && secret_heuristics::is_random(secret)
            && !secret_heuristics::is_example(secret);
        let range = joined.place(&token.secret, start);
        is_secret.then_some(SecretFinding { range, kind: rule.kind })
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
        let named = named_value::value_after(text, word.clone(), self.form, &mut self.runs, false)?;
        self.names_until = named.name.end;
        if !self.runs.should_judge(NAMED, named.value.start, named.run_end) {
            return None;
        }
        let is_secret = named_value::indicates_secret(text.get(named.name.clone())?);
        let value = text.get(named.value.clone())?;
        let may_be_long =
            !named.weak || short::has_sure_name(text, &named) && short::looks_random(value);
        let is_simple = !named.is_expression
            && (may_be_long && secret_heuristics::is_secret(value)
                || short::is_secret(text, &named));
        let range = match is_secret {
            true if named.in_columns => {
                short::is_secret_in_column(text, &named).then(|| named.value.clone())
            }
            true if short::is_whole_secret(text, &named) => Some(named.whole.clone()),
            // A secret is never removed in part.
            true if is_simple && named.quoted => Some(named.value.start..named.whole.end),
            true if is_simple => Some(named.value.clone()),
            _ => None,
        };
        let judged = range.clone().unwrap_or(named.value);
        self.runs.judged(NAMED, &judged, named.run_end, range.is_some());
        range.map(|range| (SecretFinding { range, kind }, named.name))
    }

    /// Examines a text that may contain several secrets. Returns the last, and adds the others to
    /// `all`.
    fn several(
        &mut self,
        kind: credential::CredentialKind,
        word: &Range<usize>,
        all: &mut ScanFindings,
    ) -> Option<SecretFinding> {
        let is_cookie = matches!(kind, credential::CredentialKind::Cookie);
        if self.seen.contains(&word.start) || is_cookie && self.cookies.contains(&word.start) {
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
                self.cookies = word.start..end;
                found
            }
            credential::CredentialKind::Rows => query_rows::find(text, word.start, word.end),
            credential::CredentialKind::CookieList => {
                let (found, end) = credential::cookie_list(text, word.end);
                self.seen = word.start..end;
                found
            }
            _ => {
                let named =
                    named_value::value_after(text, word.clone(), self.form, &mut self.runs, false)?;
                let whole = text.get(named.name.end.saturating_sub(4)..named.name.end)?;
                let is_auth = whole.eq_ignore_ascii_case(b"auth");
                let is_login = is_auth
                    && !named.is_expression
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
            // A value may precede the text that indicates it.
            all.indicated_ranges
                .push(word.start.min(found.range.start)..found.range.end.max(word.end));
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
        let is_end = kind == credential::CredentialKind::PrivateKeyEnd;
        if (is_key || is_end) && self.key.contains(&word.start) {
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

/// Returns the beginning of a token with this hint that was cut: dots or a note of the cut follow.
/// It must have most of a token, and look generated. `examined` is the range of the bytes of tokens
/// that the last call examined.
fn cut_token(
    text: &[u8],
    rule: &TokenRule,
    hint: &Range<usize>,
    examined: &mut Range<usize>,
) -> Option<SecretFinding> {
    const MIN_BYTES: usize = 16;
    const MAX_BYTES: usize = 256;
    const MARKS: [&str; 5] = ["...", "\u{2026}", "[...", "[trunc", "[\u{2026}"];
    /// Names and paths have these beginnings too.
    const COMMON: [&[u8]; 16] = [
        b"test_", b"live_", b"app_", b"web_", b"auto_", b"private_", b"api-", b"key-", b"sdk-",
        b"mob-", b"hook.", b"perm-", b"sess-", b"kit_", b"polar_", b"persona_",
    ];
    let word = text.get(hint.clone())?;
    let ends_prefix = matches!(word.last(), Some(b'_' | b'-' | b'.'));
    let is_common = COMMON.iter().any(|common| word.eq_ignore_ascii_case(common));
    if word.len() < 4 || !ends_prefix || is_common || rule.is_random {
        return None;
    }
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !examined.contains(&hint.end) {
        *examined = hint.end..hint.end + byte_text::run(text, hint.end, text.len(), is_of_token);
    }
    let end = examined.end;
    let value = text.get(hint.end..end).filter(|value| value.len() <= MAX_BYTES)?;
    let mut after = text.get(end..)?;
    for line_end in ["\r", "\n", "\n", "\\n", "\\n"] {
        after = after.strip_prefix(line_end.as_bytes()).unwrap_or(after);
    }
    let is_cut = MARKS.iter().any(|mark| after.starts_with(mark.as_bytes()));
    (is_cut
        && value.len() >= MIN_BYTES
        && byte_text::begins_word(text, hint.start)
        && secret_heuristics::is_random(value))
    .then_some(SecretFinding { range: hint.start..end, kind: rule.kind })
}

/// Returns whether this offset is in the kind of a redaction mark. The kind is not a name for the
/// text that follows.
fn is_in_mark(text: &[u8], at: usize) -> bool {
    let inside = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'-';
    let before = text.get(at.saturating_sub(MAX_KIND_BYTES)..at).unwrap_or_default();
    let begun = before.iter().rev().take_while(inside).count();
    let after = text.get(at..).unwrap_or_default();
    let rest = after.iter().take(MAX_KIND_BYTES).take_while(inside).count();
    let (mark, kind) = (text.get(..at - begun).unwrap_or_default(), begun + rest);
    mark.ends_with(b"[redacted:") && kind > 0 && after.get(rest) == Some(&b']')
}

/// Returns the beginning of the word around this offset, at most 64 bytes before it.
fn word_start(text: &[u8], at: usize) -> usize {
    let before = text.get(at.saturating_sub(64)..at).unwrap_or_default();
    let inside =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'-' | b'.');
    let word = before.iter().rev().take_while(|byte| inside(byte)).count();
    // The letter of an escape is not part of the word.
    let start = at - word;
    if word > 0
        && start > 0
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b'r' | b't' | b'f' | b'b' | b'v' | b'a' | b'0' | b'_')
    {
        return start + 1;
    }
    start
}

/// Returns whether a hint is long enough to begin a token after a letter.
fn is_distinctive(text: &[u8], hint: &Range<usize>) -> bool {
    hint.len() >= 4 || text.get(hint.clone()).is_some_and(|hint| hint == b"eyJ" || hint == b"xox")
}

/// Returns whether the word before this offset is one letter, or ends with `0x`.
fn follows_letter(text: &[u8], at: usize) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match text.get(at.saturating_sub(3)..at).unwrap_or_default() {
        [.., b'0', b'x' | b'X'] => true,
        [.., before, letter] => letter.is_ascii_alphabetic() && !is_word(before),
        [letter] => letter.is_ascii_alphabetic(),
        [] => false,
    }
}
