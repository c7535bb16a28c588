//! Short values, mainly passwords, whose entropy is too low to decide. A short value counts as a
//! secret if its name means nothing but a secret, if it is written like the value of a setting,
//! flag or field, and if it is neither a word nor code.

use super::byte_text;
use super::named_value::{NamedValue, parts};
use super::secret_heuristics;

/// Minimum length of a value that is judged, in bytes.
const MIN_BYTES: usize = 6;
/// Minimum length of a token or key, in bytes.
const MIN_TOKEN_BYTES: usize = 12;

/// The last parts of names of passwords.
const PASSWORDS: [&str; 15] = [
    "password", "passwd", "passphrase", "pass", "pwd", "pw", "passcode", "pgpass", "sshpass",
    "psk", "dbpass", "userpass", "rootpass", "remotepass", "keypw",
];
/// The last parts of names of other secrets.
const OTHERS: [&str; 3] = ["secret", "token", "apikey"];
/// The parts before a last `key` with which a name means a secret.
const BEFORE_KEY: [&str; 12] = [
    "api", "access", "account", "secret", "private", "encryption", "signing", "auth", "functions",
    "subscription", "master", "preshared",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameMeaning {
    Password,
    Other,
}

/// Returns the meaning of a name; `None` if the name may mean something else than a secret.
fn meaning_of(name: &str) -> Option<NameMeaning> {
    let parts = parts(name);
    let mut parts =
        parts.iter().rev().map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    let last = parts.by_ref().find(|part| !part.is_empty())?;
    let before = parts.next().unwrap_or_default();
    let is_password = PASSWORDS.contains(&last)
        || ["password", "passwd", "passphrase"].iter().any(|word| last.ends_with(word))
        || last == "auth" && matches!(before, "redis" | "rediscli");
    let is_other = OTHERS.iter().any(|word| last.ends_with(word))
        || last == "key" && BEFORE_KEY.contains(&before);
    match (is_password, is_other) {
        (true, _) => Some(NameMeaning::Password),
        (_, true) => Some(NameMeaning::Other),
        _ => None,
    }
}

/// Returns whether a name means nothing but a password, unlike `password_changed`.
pub(super) fn is_name_of_password(name: &str) -> bool {
    meaning_of(name) == Some(NameMeaning::Password)
}

/// Returns whether the short value of a name is a secret.
pub(super) fn is_secret(text: &[u8], named: &NamedValue) -> bool {
    let Some(value) = text.get(named.value.clone()) else { return false };
    if !has_short_length(value) {
        return false;
    }
    let Some(bytes) = text.get(named.name.clone()) else { return false };
    let Some(name) = std::str::from_utf8(bytes).ok().and_then(meaning_of) else { return false };
    let after = text.get(named.value.end..).unwrap_or_default();
    // In a list, a value follows a name only by chance, except after a flag.
    if named.listed && !named.is_flag {
        return false;
    }
    let is_sure = named.quoted || named.is_flag || is_setting(text, named, bytes, after);
    if named.weak && !is_strong(value) {
        return false;
    }
    match name {
        NameMeaning::Password => {
            strength(value) >= if is_sure { Strength::Fair } else { Strength::High }
        }
        NameMeaning::Other => {
            // In manuals, examples with lower-case names have tokens in lower case.
            let is_variable = !bytes.iter().any(u8::is_ascii_lowercase);
            // A value of 16 hex digits is mostly a checksum or an id.
            let is_long = named.quoted
                && value.len() >= 16
                && secret_heuristics::entropy(value) > 3.3
                && !value.iter().all(u8::is_ascii_hexdigit);
            let least = if is_variable || is_long { Strength::Fair } else { Strength::High };
            is_sure && is_token(value, least)
        }
    }
}

/// Returns whether the name of a value means nothing but a secret.
pub(super) fn has_sure_name(text: &[u8], named: &NamedValue) -> bool {
    let name = text.get(named.name.clone()).and_then(|name| std::str::from_utf8(name).ok());
    name.and_then(meaning_of).is_some()
}

/// Returns whether a value in a place that says less is strong, and no address of mail: a call may
/// have the name of a user before the password.
fn is_strong(value: &[u8]) -> bool {
    strength(value) == Strength::High && !is_mail_address(value)
}

/// Returns whether a value is an address such as `me@host.test`.
pub(super) fn is_mail_address(value: &[u8]) -> bool {
    let Some(at) = value.iter().position(|byte| *byte == b'@') else { return false };
    let domain = value.get(at + 1..).unwrap_or_default();
    let is_part = |part: &[u8]| {
        part.len() >= 2 && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    domain.contains(&b'.')
        && domain.split(|byte| *byte == b'.').all(is_part)
        && domain.last().is_some_and(u8::is_ascii_lowercase)
}

/// Returns whether a value in the column beside its name is a secret: it looks generated, and ends
/// its cell or line.
pub(super) fn is_secret_in_column(text: &[u8], named: &NamedValue) -> bool {
    const MIN_BYTES: usize = 10;
    const MIN_WITH_SIGNS: usize = 20;
    let value = text.get(named.value.clone()).unwrap_or_default();
    let after = text.get(named.run_end.max(named.value.end)..).unwrap_or_default();
    let ends_cell = match after {
        [] | [b'\n' | b'\r' | b'\t' | b'"' | b'\'' | b'`' | b'|' | b'<', ..] => true,
        [b'\\', next, ..] => matches!(next, b'n' | b'r' | b't' | b'"'),
        // A second space, a bar, or a line that is drawn.
        [b' ', next, ..] => matches!(next, b' ' | b'|' | b'\n' | 0xe2),
        _ => false,
    };
    // These signs are in versions, types and names of algorithms: `SHA-256/Base64`.
    let least =
        if value.iter().any(|byte| b".:/".contains(byte)) { MIN_WITH_SIGNS } else { MIN_BYTES };
    // What ends with a sign of a sentence is prose.
    ends_cell
        && value.len() >= least
        && named.run_end == named.value.end
        && has_sure_name(text, named)
        && looks_random(value)
}

/// Returns whether a value whose place says little looks generated: its bytes often change between
/// small letters, capitals and digits, are not all hex digits, and do not begin with a date.
pub(super) fn looks_random(value: &[u8]) -> bool {
    const MIN_BYTES: usize = 8;
    let class =
        |byte: u8| (byte.is_ascii_lowercase(), byte.is_ascii_uppercase(), byte.is_ascii_digit());
    let changes = value.windows(2).filter(|two| class(two[0]) != class(two[1])).count();
    let is_strong = match strength(value) {
        Strength::High => true,
        Strength::Fair => value.len() >= 10,
        Strength::None => secret_heuristics::is_secret(value),
    };
    let is_date = matches!(value, [a, b, c, d, b'-', e, f, b'-', ..]
        if [a, b, c, d, e, f].into_iter().all(u8::is_ascii_digit));
    value.len() >= MIN_BYTES
        && is_strong
        && !is_date
        && changes * 5 >= (value.len() - 1) * 2
        && !value.iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether the whole value of a name, which may contain any signs, is a secret: a generated
/// password, a UUID, hex digits or a passphrase.
pub(super) fn is_whole_secret(text: &[u8], named: &NamedValue) -> bool {
    let value = text.get(named.whole.clone()).unwrap_or_default();
    let bytes = text.get(named.name.clone()).unwrap_or_default();
    if named.listed && !named.is_flag || value.len() < MIN_BYTES {
        return false;
    }
    let Some(name) = std::str::from_utf8(bytes).ok().and_then(meaning_of) else { return false };
    let after = text.get(named.whole.end..).unwrap_or_default();
    let is_setting = is_setting(text, named, bytes, after);
    if !(named.quoted || named.is_flag || is_setting) {
        return false;
    }
    let is_upper = !bytes.iter().any(u8::is_ascii_lowercase);
    let is_plain = named.quoted || named.is_flag || is_upper || !named.spaced || named.colon;
    let is_sure = name == NameMeaning::Password || is_upper || is_key_name(bytes);
    is_sure
        && is_plain
        && (secret_heuristics::is_uuid(value) || secret_heuristics::is_hex_key(value))
        || name == NameMeaning::Password
            && is_plain
            && (is_passphrase(value) || is_for_one_program(value))
        || is_plain
            && (!named.weak || is_strong(value))
            && is_generated(value, name, named.quoted || is_upper && !named.spaced)
}

/// Returns whether a name is that of a key that may be a UUID or hex digits. Most names of tokens
/// are not: many tokens only identify a request.
fn is_key_name(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    [
        "-key", "consul-token", "consul_token", "vault-token", "server-token", "authtoken",
        "auth_token", "auth-token", "api_key", "api-key", "apikey", "_secret", "clientsecret",
        " key",
    ]
    .iter()
    .any(|known| lower.ends_with(known.as_bytes()))
}

/// Returns whether a value in the place of a password looks like one.
pub(super) fn is_password(value: &[u8]) -> bool {
    strength(value) >= Strength::Fair
        || is_generated(value, NameMeaning::Password, true)
        || secret_heuristics::is_secret(value)
        || secret_heuristics::is_uuid(value)
        || is_for_one_program(value)
}

/// Returns whether a value is a password that a service made for one program: 16 small letters,
/// also in four groups, that cannot be pronounced: `qzxv jkpw ntbr hmsd`.
fn is_for_one_program(value: &[u8]) -> bool {
    const LETTERS: usize = 16;
    const GROUP: usize = 4;
    let is_grouped = || {
        let mut groups = value.split(|byte| b" -".contains(byte));
        value.len() == LETTERS + 3 && groups.all(|group| group.len() == GROUP)
    };
    if value.len() != LETTERS && !is_grouped() {
        return false;
    }
    let letters: Vec<u8> = value.iter().copied().filter(u8::is_ascii_lowercase).collect();
    letters.len() == LETTERS
        // As in `abcd efgh ijkl mnop`, which is an example.
        && !letters.is_sorted()
        && !secret_heuristics::is_pronounceable(&letters)
        && !secret_heuristics::is_known_password(value)
}

/// Returns whether a value consists of words and a number: `horse-Battery-staple-Window42`.
fn is_passphrase(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| part.len() >= 3 && part.iter().all(u8::is_ascii_alphabetic);
    let mut parts = value.split(|byte| b"-_. ".contains(byte));
    let Some(last) = parts.next_back() else { return false };
    let letters = last.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, number) = last.split_at(letters);
    value.len() >= 16
        && is_word(word)
        && (1..=4).contains(&number.len())
        && number.iter().all(u8::is_ascii_digit)
        && parts.clone().count() >= 3
        && parts.all(is_word)
        && !secret_heuristics::is_known_password(value)
}

/// Parts of code, of templates and of patterns, which no generated value has.
const CODE_PARTS: [&[u8]; 29] = [
    b"::", b"->", b"=>", b"${", b"{{", b"}}", b"{}", b"()", b"[]", b"%s", b"%(", b"://", b"$(",
    b"</", b"<%", b"#{", b"&&", b"||", b"!=", b"==", b", ", b". ", b"[redacted:", b"...", b"a-z",
    b"A-Z", b"0-9", b"\\d", b"\\w",
];

/// Returns whether a value, which may contain any signs, looks generated. With `any_end`, it may
/// end like code.
fn is_generated(value: &[u8], name: NameMeaning, any_end: bool) -> bool {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let (small, capitals) = (count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let digits = count(u8::is_ascii_digit);
    let others = value.len() - small - capitals - digits;
    let spaces = count(|byte| *byte == b' ');
    let classes = [small, capitals, digits, others].into_iter().filter(|count| *count > 0).count();
    let least = if name == NameMeaning::Password { 8 } else { MIN_TOKEN_BYTES };
    let has = |part: &[u8]| byte_text::contains(value, part);
    // A sign that ends a statement or opens a bracket is not the end of a value.
    let ends_code =
        matches!(value.last(), Some(b';' | b',' | b')' | b'{' | b'(' | b'[')) && !any_end;
    let is_call = value.ends_with(b")") && has(b"(")
        || value.ends_with(b"]") && has(b"[")
        || value.ends_with(b"}") && has(b"{")
        || value.ends_with(b">") && has(b"<");
    let is_code = CODE_PARTS.iter().any(|part| has(part));
    let is_variable = matches!(
        value.first(),
        Some(b'$' | b'%' | b'/' | b'.' | b'~' | b'@' | b'-' | b'<' | b'{' | b'[')
    ) && (is_call || !is_mixed(value.get(1..).unwrap_or_default()));
    (least..=128).contains(&value.len())
        && classes >= 3
        && digits > 0
        && small + capitals >= 3
        && spaces <= 2
        && (spaces == 0 || digits >= 2 && small > 0 && capitals > 0)
        && secret_heuristics::entropy(value) >= 2.8
        && !is_code
        && !(is_call && (!any_end || value.len() >= 24))
        && !ends_code
        && !is_variable
        && !is_on_drive(value)
        && !secret_heuristics::is_words(value)
        && !secret_heuristics::is_structured(value)
        && !secret_heuristics::is_dated_name(value)
        && !secret_heuristics::is_known_password(value)
        && !has_word_parts(value)
}

/// Returns whether a value is a path of Windows.
fn is_on_drive(value: &[u8]) -> bool {
    matches!(value, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

/// Returns whether a value has letters of both cases and digits, forms no words, and has at most
/// one slash.
fn is_mixed(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && !secret_heuristics::is_words(value)
        && value.iter().filter(|byte| **byte == b'/').count() <= 1
}

/// Returns whether a value contains at least two words of four letters or more, as an expression or
/// a description does.
fn has_word_parts(value: &[u8]) -> bool {
    let parts = value.split(|byte| !byte.is_ascii_alphabetic());
    parts.filter(|part| part.len() >= 4 && secret_heuristics::is_words(part)).count() >= 2
}

/// Returns whether the short value of a field with this name is a secret.
pub(super) fn is_secret_field(field: &str, value: &[u8]) -> bool {
    if !has_short_length(value) {
        return false;
    }
    match meaning_of(field) {
        Some(NameMeaning::Password) => strength(value) >= Strength::Fair,
        Some(NameMeaning::Other) => is_token(value, Strength::High),
        None => false,
    }
}

/// Returns whether a value is short enough and long enough for the rules of this module.
fn has_short_length(value: &[u8]) -> bool {
    (MIN_BYTES..secret_heuristics::MIN_BYTES).contains(&value.len())
}

/// Returns whether a value has at least this strength, and the length and entropy of a token or
/// key.
fn is_token(value: &[u8], least: Strength) -> bool {
    value.len() >= MIN_TOKEN_BYTES
        && strength(value) >= least
        && secret_heuristics::entropy(value) > 3.0
}

/// Returns whether a value without quotes is written as in a settings file, an environment or a
/// query, where no code occurs: `NAME=value` without spaces, or `name: value` up to the end of the
/// line.
fn is_setting(text: &[u8], named: &NamedValue, name: &[u8], after: &[u8]) -> bool {
    let ends_line = match after {
        [] | [b'\n' | b'\r' | b'"' | b'\'' | b'`', ..] | [b' ', b'#', ..] | [b'<', b'/', ..] => {
            true
        }
        [b'\\', next, ..] => matches!(next, b'n' | b'r' | b'"' | b'\\'),
        _ => false,
    };
    if named.spaced {
        return ends_line;
    }
    let is_upper = !name.iter().any(u8::is_ascii_lowercase);
    let is_query = named
        .name
        .start
        .checked_sub(1)
        .and_then(|at| text.get(at))
        .is_some_and(|byte| b"?&;".contains(byte));
    let goes_on = matches!(after, [b' ' | b'\t' | b';' | b'&' | b'|', ..]);
    let before_space = matches!(after, [b' ' | b'\t', ..]);
    ends_line || !named.colon && (is_query || is_upper && goes_on || before_space)
}

/// How much a short value looks like a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// It is a word, a number, a placeholder or code.
    None,
    /// It has letters and digits that form no word, or letters that often change case.
    Fair,
    /// It has letters of both cases with digits or signs, or digits and signs, and forms no word.
    High,
}

pub(super) fn strength(value: &[u8]) -> Strength {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let small = count(u8::is_ascii_lowercase);
    let capitals = count(u8::is_ascii_uppercase);
    let digits = count(u8::is_ascii_digit);
    let signs = count(|byte| b"!@#$%^*+~?&".contains(byte));
    let letters = small + capitals;
    if letters < 2
        || secret_heuristics::entropy(value) < 2.2
        || secret_heuristics::is_known_password(value)
        || secret_heuristics::is_words(value)
            && !(secret_heuristics::inner_digits(value) > 0 && capitals == 0)
        || secret_heuristics::is_dated_name(value)
        || secret_heuristics::is_structured(value)
        || is_code(value)
    {
        return Strength::None;
    }
    let both = small > 0 && capitals > 0;
    let switches = secret_heuristics::case_changes(value);
    let pairs = secret_heuristics::pairs_of_capitals(value);
    match () {
        () if both && (digits > 0 && letters > 2 || signs > 0) => Strength::High,
        () if digits > 0 && signs > 0 => Strength::High,
        () if digits >= 2 || secret_heuristics::inner_digits(value) > 0 => Strength::Fair,
        () if digits == 1 && value.len() >= 8 && letters + 1 == value.len() => Strength::Fair,
        () if both && switches >= 2 && value.len() >= 10 => Strength::Fair,
        // A name of this length has no capitals beside each other.
        () if both && switches >= 2 && pairs > 0 && value.len() >= 8 => Strength::Fair,
        () => Strength::None,
    }
}

/// Returns whether the case of the letters changes more often than in names.
fn changes_case_often(value: &[u8]) -> bool {
    secret_heuristics::case_changes(value) * 6 >= value.len() && !secret_heuristics::is_words(value)
}

/// Returns whether the value may be code or refer to another value: a variable, a path, a call, a
/// version, a time.
fn is_code(value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or_default();
    let is_variable =
        matches!(first, b'$' | b'/' | b'.' | b'~' | b':' | b'=' | b'*' | b'?' | b'@' | b'#' | b'-')
            || first == b'%' && (value.ends_with(b"%") || value.len() < 4);
    let inside = |byte: u8| value.contains(&byte);
    // `self.pass1`, `a/b2`, `10:30`.
    let has_parts = |separator: u8| {
        let mut parts = value.split(|byte| *byte == separator);
        parts.clone().count() > 1
            && parts
                .all(|part| part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
    };
    let is_number = value.starts_with(b"0x") || value.starts_with(b"0X");
    let rest = value.get(1..).unwrap_or_default();
    let is_long = value.len() >= 12 && (is_mixed(value) || changes_case_often(value));
    is_variable && !(rest.len() >= 8 && is_mixed(rest) && !rest.contains(&b'.'))
        || is_number
        || is_on_drive(value)
        || inside(b'=') && !value.ends_with(b"=") && !is_long
        || !is_long && (has_parts(b'.') || has_parts(b'/') || has_parts(b':'))
        || byte_text::contains(value, b"${")
        || byte_text::contains(value, b"::")
}
