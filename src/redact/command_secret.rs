//! Passwords among the words of particular commands: `lftp -u NAME,SECRET`, `echo SECRET | sudo
//! -S`.

use super::byte_text::{backslashes_at_end, run};
use super::command_hint::{CommandPlace, SECURE};
use super::token_rule::{TokenPlacement, TokenRule, rules};
use super::token_shape::ScanMemory;
use super::{SecretFinding, byte_text, credential, secret_heuristics, short};
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum distance from a hint to what belongs to it, in bytes.
const LINE_BYTES: usize = 200;
/// Programs that read a password from their input.
const READERS: [&[u8]; 20] = [
    b"chpasswd", b"sudo -S", b"kinit", b"passwd", b"gpg", b"docker login", b"cryptsetup",
    b"gh auth login", b"glab auth login", b"gh secret set", b"wrangler secret put",
    b"vercel env add", b"gcloud secrets", b"docker secret create", b"pass insert",
    b"secret-tool store", b"keyring set", b"zfs load-key", b"openconnect", b"sshfs",
];

/// Finds the password next to a hint that spans `start` to `end`.
pub(super) fn find(
    text: &[u8],
    start: usize,
    end: usize,
    place: CommandPlace,
) -> Option<SecretFinding> {
    let range = match place {
        CommandPlace::Word(number, tool) => {
            let has_tool = |line: &[u8]| byte_text::contains(line, tool.as_bytes());
            let is_after =
                || tool == SECURE && line_after(text, end, LINE_BYTES).is_some_and(has_tool);
            if !tool.is_empty() && !has_tool(line_before(text, start)) && !is_after() {
                return None;
            }
            let at = (1..number).try_fold(end, |at, _| {
                let word = next_word(text, at);
                (word.end > word.start).then(|| word.end + quotes(text, word.end))
            })?;
            next_word(text, at)
        }
        CommandPlace::After(sign, tools) => {
            let before = text.get(start.saturating_sub(LINE_BYTES)..start)?;
            let line = before.rsplit(|byte| matches!(byte, b'\n' | b'|' | b';')).next()?;
            if !credential::has_word(line, tools) {
                return None;
            }
            let name = next_word(text, end);
            let inside = text.get(name.clone())?.iter().position(|byte| *byte == sign);
            // The shell joins two quoted parts: `"name":"SECRET"`.
            let at = inside.map_or(name.end + quotes(text, name.end), |at| name.start + at);
            if at == name.start || text.get(at) != Some(&sign) {
                return None;
            }
            let from = at + 1 + quotes(text, at + 1);
            from..from.max(next_word(text, from).end)
        }
        CommandPlace::FormField => {
            let (mut at, mut ends) = (end, 0);
            loop {
                match text.get(at..at + 2)? {
                    [b'\n', _] => (at, ends) = (at + 1, ends + 1),
                    [b'\r', _] => at += 1,
                    b"\\n" => (at, ends) = (at + 2, ends + 1),
                    b"\\r" => at += 2,
                    _ => break,
                }
            }
            if ends != 2 {
                return None;
            }
            next_word(text, at)
        }
        CommandPlace::Echo => echo(text, start)?,
        CommandPlace::HereString => {
            let line = line_before(text, start);
            if !READERS.iter().any(|reader| byte_text::contains(line, reader)) {
                return None;
            }
            after_colon(text, next_word(text, end), byte_text::contains(line, b"chpasswd"))
        }
        CommandPlace::Numbered => {
            let number = run(text, end, 2, |byte| byte.is_ascii_digit());
            if number == 0 || text.get(end + number) != Some(&b':') {
                return None;
            }
            next_word(text, end + number + 1)
        }
        CommandPlace::Quoted(number) => quoted(text, end, number)?,
        CommandPlace::Argument(number) => password_argument(text, end, number)?,
        CommandPlace::Changed => changed(text, start, end)?,
        CommandPlace::Capitals => {
            if text.get(start..end)?.iter().any(u8::is_ascii_lowercase) {
                return None;
            }
            next_word(text, end)
        }
        CommandPlace::Phrase => return phrase(text, end),
        CommandPlace::Header => header(text, start, end)?,
        CommandPlace::Sentence => return sentence(text, start, end),
        CommandPlace::SentencePart => sentence_part(text, end)?,
        CommandPlace::Label => label(text, start, end)?,
        CommandPlace::Input => input(text, start, end)?,
        CommandPlace::Md5 => {
            const DIGITS: usize = 32;
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let is_whole = run(text, end, DIGITS + 1, is_digit) == DIGITS
                && !text.get(end + DIGITS).is_some_and(u8::is_ascii_alphanumeric);
            let range = end..end + DIGITS;
            return (is_whole && !secret_heuristics::is_example(text.get(range.clone())?))
                .then_some(SecretFinding { range, kind: "password" });
        }
    };
    let value = text.get(range.clone())?;
    let is_variable = value.starts_with(b"$") && !value[1..].iter().any(u8::is_ascii_lowercase);
    (value.len() >= 6 && !is_variable && short::is_password(value))
        .then_some(SecretFinding { range, kind: "password" })
}

/// Returns the new value of a password in a plan: `password = "old" -> "new"`.
fn changed(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let line = line_before(text, start);
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let name = line.get(..equals)?.trim_ascii_end();
    let quotes = name.iter().rev().take_while(|byte| b"\"\\".contains(byte)).count();
    let name = name.get(..name.len() - quotes)?.to_ascii_lowercase();
    name.ends_with(b"password").then(|| next_word(text, end))
}

/// Returns the generated value after the first ` is ` or colon of the rest of a line.
fn sentence_part(text: &[u8], end: usize) -> Option<Range<usize>> {
    let line = line_after(text, end, 64)?;
    let is = line.windows(4).position(|four| four == b" is ").map(|at| at + 4);
    let colon = line.windows(2).position(|two| two == b": ").map(|at| at + 2);
    let from = end + is.into_iter().chain(colon).min()?;
    let range = without_signs(text, &next_word(text, from))?;
    let value = text.get(range.clone())?;
    let is_code = value.iter().any(|byte| b"([{<".contains(byte));
    (!is_code && short::looks_random(value)).then_some(range)
}

/// Returns the text before an offset, up to the beginning of its line.
fn line_before(text: &[u8], at: usize) -> &[u8] {
    let before = text.get(at.saturating_sub(LINE_BYTES)..at).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    // An escaped line end too.
    let escaped = line.windows(2).rposition(|two| two == b"\\n").map_or(0, |at| at + 2);
    line.get(escaped..).unwrap_or_default()
}

/// Returns the text from an offset to the end of its line: at most `most` bytes.
fn line_after(text: &[u8], at: usize, most: usize) -> Option<&[u8]> {
    let after = text.get(at..text.len().min(at + most))?;
    after.split(|byte| *byte == b'\n').next()
}

fn quotes(text: &[u8], at: usize) -> usize {
    run(text, at, 4, |byte| b"\"'\\".contains(&byte))
}

/// Returns the range of the next word after spaces and quotes.
fn next_word(text: &[u8], at: usize) -> Range<usize> {
    let at = at + run(text, at, 8, |byte| byte == b' ' || byte == b'\t');
    let mut from = at + quotes(text, at);
    // A line end or another sign that is an escape here, as in JSON, is no part of the word.
    if text.get(at..from).is_some_and(|quotes| quotes.ends_with(b"\\")) {
        let is_code = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        from += match text.get(from..).unwrap_or_default() {
            [b'n' | b'r' | b't', ..] => 1,
            [b'u', rest @ ..] if rest.get(..4).is_some_and(is_code) => 5,
            _ => 0,
        };
    }
    let is_of_word = |byte: u8| byte.is_ascii_graphic() && !b"\\\"'`<>|".contains(&byte);
    from..from + run(text, from, 128, is_of_word)
}

/// Returns the part of a word after its colon if a name is expected, as in `NAME:SECRET`; else the
/// word.
fn after_colon(text: &[u8], word: Range<usize>, named: bool) -> Range<usize> {
    let colon = text.get(word.clone()).and_then(|it| it.iter().position(|byte| *byte == b':'));
    match colon {
        Some(colon) if named => word.start + colon + 1..word.end,
        _ => word,
    }
}

/// Returns the last word of the `echo` or `printf` before a pipe here, with the same word before a
/// line end before it: `printf "SECRET\nSECRET\n" | passwd`. In PowerShell, the text needs no
/// command: `"SECRET" | ConvertTo-SecureString`.
fn echo(text: &[u8], pipe: usize) -> Option<Range<usize>> {
    const TOOL_BYTES: usize = 24;
    let tool = text.get(pipe..text.len().min(pipe + TOOL_BYTES))?.to_ascii_lowercase();
    let is_tool = |name: &[u8]| byte_text::contains(&tool, name);
    let mut line = line_before(text, pipe);
    let is_quote = |byte: &u8| b"\"'".contains(byte);
    // The line end before this text is inside the quotes.
    if line.iter().filter(|byte| is_quote(byte)).count() % 2 == 1 {
        let before = text.get(pipe.saturating_sub(LINE_BYTES)..pipe)?;
        line = before.rsplit(|byte| *byte == b'\n').next()?;
    }
    let from = pipe - line.len();
    let is_echo = [&b"echo "[..], b"printf ", b"Output ", b"yes "]
        .iter()
        .any(|command| byte_text::contains(line, command));
    let is_text = || is_tool(b"securestring") && line.trim_ascii_end().last().is_some_and(is_quote);
    if !is_echo && !is_text() {
        return None;
    }
    let is_around = |byte: &u8| b" \"'\\".contains(byte);
    let mut word = line;
    loop {
        let end = word.iter().rposition(|byte| !is_around(byte))? + 1;
        word = word.get(..end)?;
        let Some(rest) = word.strip_suffix(b"\\n") else { break };
        word = rest;
    }
    let begin = word.iter().rposition(is_around)? + 1;
    let is_escape = word.get(begin - 1) == Some(&b'\\') && word.get(begin) == Some(&b'n');
    let begin = begin + usize::from(is_escape);
    let is_encoder = is_tool(b"base64");
    let is_named = is_encoder || is_tool(b"chpasswd");
    let begin = from + begin;
    let range = after_colon(text, begin..from + word.len(), is_named);
    let value = text.get(range.clone())?;
    // Any text may be encoded or decoded; a secret in it has a name.
    let is_other = || range.start == begin || !short::looks_random(value);
    if value.is_empty() || is_encoder && is_other() {
        return None;
    }
    let before = text.get(..range.start)?.strip_suffix(b"n").unwrap_or_default();
    let slashes = before.iter().rev().take(4).take_while(|byte| **byte == b'\\').count();
    let first = before.get(..before.len() - slashes)?.strip_suffix(value);
    let start = first.filter(|_| slashes > 0).map_or(range.start, <[u8]>::len);
    Some(start..range.end)
}

/// Returns the quoted text with this number on the same line. `None` for the first argument of a
/// call.
fn quoted(text: &[u8], end: usize, number: usize) -> Option<Range<usize>> {
    let line = line_after(text, end, LINE_BYTES)?;
    let mut at = 0;
    for count in 1.. {
        let open = at + line.get(at..)?.iter().position(|byte| b"\"'`".contains(byte))?;
        let quote = *line.get(open)?;
        let inside = line.get(open + 1..)?;
        let length = inside.iter().position(|byte| *byte == quote)?;
        if count == number {
            let before = line.get(..open)?;
            let escape = backslashes_at_end(inside.get(..length)?);
            // The first argument of a call is the text to sign, not the key.
            let is_later = number > 1 || before.contains(&b',');
            return is_later.then_some(end + open + 1..end + open + 1 + length - escape);
        }
        at = open + 1 + length + 1;
    }
    None
}

/// Returns the quoted text that is the argument with this number of the call that begins before
/// this offset. It may be inside `Some(...)`.
fn argument(text: &[u8], end: usize, number: usize) -> Option<Range<usize>> {
    let line = line_after(text, end, LINE_BYTES)?;
    let (mut at, mut depth, mut count) = (0, 0_usize, 1);
    while count <= number {
        let byte = *line.get(at)?;
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            // The call ends.
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => count += 1,
            b'"' | b'\'' | b'`' => {
                let inside = line.get(at + 1..)?;
                let length = inside.iter().position(|next| *next == byte)?;
                if count == number {
                    let before = line.get(..at - backslashes_at_end(line.get(..at)?))?;
                    let escape = backslashes_at_end(inside.get(..length)?);
                    let from = end + at + 1;
                    return (depth == 0 || before.ends_with(b"Some("))
                        .then_some(from..from + length - escape);
                }
                at += length + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the argument with this number, unless it is an address of mail or has a name, which says
/// what it is: `connect(host="a", user="b", db="c")`.
fn password_argument(text: &[u8], end: usize, number: usize) -> Option<Range<usize>> {
    let range = argument(text, end, number)?;
    let before = text.get(..range.start - 1)?;
    let before = before.get(..before.len() - backslashes_at_end(before))?.trim_ascii_end();
    let is_other = before.ends_with(b"=") || short::is_mail_address(text.get(range.clone())?);
    (!is_other).then_some(range)
}

/// Returns the range without the signs at its end that end a sentence.
fn without_signs(text: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let signs = text.get(word.clone())?.iter().rev();
    let signs = signs.take_while(|byte| b".,;:!?)*".contains(byte)).count();
    Some(word.start..word.end - signs)
}

/// Returns the value after a word for a password, after `is` in the same language, or a colon or
/// another sign.
fn label(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    const SHORT_BYTES: usize = 3;
    const JOINTS: [&str; 17] = [
        "ist ", "lautet ", "est ", "es ", "é ", "to ", "is ", "är ", "er ", "je ", "είναι ", "는 ",
        "은 ", "是", "为", "は", "：",
    ];
    let signs = |at: usize| at + run(text, at, 32, |byte| b" \t\"'`*:=|(\\".contains(&byte));
    let mut at = signs(end);
    for _ in 0..2 {
        let rest = text.get(at..)?;
        let joint = JOINTS.iter().find(|joint| rest.starts_with(joint.as_bytes()));
        at = joint.map_or(at, |joint| signs(at + joint.len()));
    }
    let range = without_signs(text, &next_word(text, at))?;
    let (between, value) = (text.get(end..at)?, text.get(range.clone())?);
    // The letter of an escape is not part of the value.
    let is_escaped = between.last() == Some(&b'\\');
    let is_quoted = between.last().is_some_and(|byte| b"\"'`".contains(byte));
    let is_code = !is_quoted && value.iter().any(|byte| b"([{<".contains(byte));
    let has_sign =
        between.iter().any(|byte| b":=".contains(byte)) || between.ends_with("：".as_bytes());
    // The value may be a part of a longer text without spaces: `SHA256加密`.
    let after = text.get(range.end..).unwrap_or_default();
    let goes_on = after.first().is_some_and(|byte| !byte.is_ascii())
        && ![[0xe3, 0x80], [0xef, 0xbc]].iter().any(|sign| after.starts_with(sign));
    let is_part = end - start <= SHORT_BYTES && !byte_text::begins_word(text, start);
    (at > end
        && !is_escaped
        && !is_code
        && !is_part
        && (has_sign && !goes_on || short::looks_random(value)))
    .then_some(range)
}

/// Returns the text that is typed into a field, if the name of the field precedes it in the same
/// statement or among the arguments, and says that the field is for a password.
fn input(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    const NEAR: usize = 96;
    let is_named = |bytes: &[u8]| byte_text::contains(bytes, b"assword");
    let line = line_before(text, start);
    let line = line.get(line.len().saturating_sub(NEAR)..)?;
    let statement = line.rsplit(|byte| *byte == b';').next()?;
    // The text before the first call is a description: `it('resets the password', async () => {`.
    let calls = [&b"await "[..], b"=> "]
        .into_iter()
        .filter_map(|begin| statement.windows(begin.len()).rposition(|window| window == begin));
    let statement = statement.get(calls.max().unwrap_or_default()..)?;
    let range = if is_named(statement) && quotes(text, end) > 0 {
        next_word(text, end)
    } else {
        argument(text, end, 2).filter(|range| text.get(end..range.start).is_some_and(is_named))?
    };
    (!short::is_mail_address(text.get(range.clone())?)).then_some(range)
}

/// Finds the secret in a sentence, without the sign that ends the sentence.
fn sentence(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    const MIN_BYTES: usize = 12;
    let hint = text.get(start..end)?;
    // `the password is: SECRET`, `the password is **SECRET**`.
    let colon = run(text, end, 1, |byte| byte == b':');
    let space = run(text, end + colon, 2, |byte| byte == b' ');
    if space == 0 {
        return None;
    }
    let from = end + colon + space;
    let word = next_word(text, from + run(text, from, 2, |byte| b"`*".contains(&byte)));
    let range = without_signs(text, &word)?;
    let value = text.get(range.clone())?;
    let is_strong = value.len() >= MIN_BYTES && short::strength(value) == short::Strength::High;
    if !is_strong && !secret_heuristics::is_secret(value) {
        return None;
    }
    // Without `is` or a colon, a name may follow: `the password PBKDF2WithHmacSHA256`.
    let is_said = colon > 0 || hint.to_ascii_lowercase().ends_with(b" is");
    if !is_said && !short::looks_random(value) {
        return None;
    }
    // A token of a known form is found by its form, and has a kind of its own. What is found only
    // as the value of a name may have any form.
    let lower = value.to_ascii_lowercase();
    let may_be_token = |rule: &TokenRule| {
        !rule.is_random
            && rule.place != TokenPlacement::Value
            && rule.hints().any(|hint| byte_text::contains(&lower, hint.as_bytes()))
    };
    let is_token = rules().iter().filter(|rule| may_be_token(rule)).any(|rule| {
        let token = rule.find(value, 0, &mut ScanMemory::default());
        token.is_some_and(|token| token.end == value.len())
    });
    (!is_token).then_some(SecretFinding { range, kind: "password" })
}

/// Finds the words of a seed phrase: 12, 15, 18, 21 or 24 words of three to eight small letters.
fn phrase(text: &[u8], end: usize) -> Option<SecretFinding> {
    const SIZES: [usize; 5] = [12, 15, 18, 21, 24];
    let gap = run(text, end, 12, |byte| b"=: \"'\\`_-".contains(&byte));
    let from = end + gap;
    let length = run(text, from, 24 * 9, |byte| byte.is_ascii_lowercase() || byte == b' ');
    let words = text.get(from..from + length)?.trim_ascii_end();
    let is_word = |word: &[u8]| (3..=8).contains(&word.len());
    let is_whole = !text.get(from + words.len()).is_some_and(|next| b",.;:(".contains(next));
    let count = words.split(|byte| *byte == b' ').count();
    let different: BTreeSet<&[u8]> = words.split(|byte| *byte == b' ').collect();
    // A phrase is drawn at random, so few of its words are the same.
    let is_phrase =
        SIZES.contains(&count) && different.len() > count / 2 && different.into_iter().all(is_word);
    (gap > 0 && is_whole && is_phrase)
        .then_some(SecretFinding { range: from..from + words.len(), kind: "seed-phrase" })
}

/// Returns the value of a header that `curl` sends, if the name says that it is a key or token.
fn header(text: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let flag = text.get(start..end)?;
    // The command may have lines before this one.
    let before = text.get(start.saturating_sub(LINE_BYTES)..start)?;
    if flag.starts_with(b"-h") || !byte_text::contains(before, b"curl") {
        return None;
    }
    let from = end + quotes(text, end);
    let name = run(text, from, 48, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let known = text.get(from..from + name)?.to_ascii_lowercase();
    let is_known = [&b"key"[..], b"token", b"secret", b"session", b"-team"]
        .iter()
        .any(|ending| known.ends_with(ending));
    (is_known && text.get(from + name) == Some(&b':')).then(|| next_word(text, from + name + 1))
}
