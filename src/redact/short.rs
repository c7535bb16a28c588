//! Short values, mainly passwords, whose entropy is too low to judge. One counts as a secret if its
//! name means nothing but a secret, if it is written like a value of a setting, flag or field, and
//! if it is neither a word nor code.

use super::named_value::{NamedValue, parts};
use super::secret_heuristics;

/// Minimum length of a value that is judged, in bytes.
const MIN_BYTES: usize = 6;
/// Minimum length of a token or key, in bytes.
const MIN_TOKEN_BYTES: usize = 12;

/// Last name parts of passwords.
const PASSWORDS: [&str; 7] =
    ["password", "passwd", "passphrase", "pass", "pwd", "passcode", "pgpass"];
/// Last name parts of other secrets.
const OTHERS: [&str; 3] = ["secret", "token", "apikey"];
/// Name parts before a last `key` that make it a secret.
const BEFORE_KEY: [&str; 7] =
    ["api", "access", "account", "secret", "private", "encryption", "signing"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Password,
    Other,
}

/// Returns what a name means, if it means nothing but a secret.
fn name(name: &str) -> Option<Name> {
    let parts = parts(name);
    let mut parts =
        parts.iter().rev().map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    let last = parts.by_ref().find(|part| !part.is_empty())?;
    let is_password = PASSWORDS.contains(&last)
        || ["password", "passwd", "passphrase"].iter().any(|word| last.ends_with(word));
    let is_other = OTHERS.iter().any(|word| last.ends_with(word))
        || last == "key" && parts.next().is_some_and(|before| BEFORE_KEY.contains(&before));
    match (is_password, is_other) {
        (true, _) => Some(Name::Password),
        (_, true) => Some(Name::Other),
        _ => None,
    }
}

/// Returns whether the short value of a name is a secret.
pub(super) fn is_secret(text: &[u8], named: &NamedValue) -> bool {
    let Some(value) = text.get(named.value.clone()) else { return false };
    if !has_short_length(value) {
        return false;
    }
    let Some(bytes) = text.get(named.name.clone()) else { return false };
    let Some(name) = std::str::from_utf8(bytes).ok().and_then(name) else { return false };
    let behind = text.get(named.value.end..).unwrap_or_default();
    // In a list, a value follows a name by chance, except that of a flag.
    if named.listed && !named.is_flag {
        return false;
    }
    let is_sure = named.quoted || named.is_flag || is_setting(text, named, bytes, behind);
    match name {
        Name::Password => strength(value) >= if is_sure { Strength::Fair } else { Strength::High },
        Name::Other => {
            // Manuals show lower-case tokens for lower-case names.
            let is_variable = !bytes.iter().any(u8::is_ascii_lowercase);
            let least = if is_variable { Strength::Fair } else { Strength::High };
            is_sure && is_token(value, least)
        }
    }
}

/// Returns whether the short value of a field with this name is a secret.
pub(super) fn is_secret_field(field: &str, value: &[u8]) -> bool {
    if !has_short_length(value) {
        return false;
    }
    match name(field) {
        Some(Name::Password) => strength(value) >= Strength::Fair,
        Some(Name::Other) => is_token(value, Strength::High),
        None => false,
    }
}

/// Returns whether the length of a value is one that is judged here.
fn has_short_length(value: &[u8]) -> bool {
    (MIN_BYTES..secret_heuristics::MIN_BYTES).contains(&value.len())
}

/// Returns whether a value of at least this strength may be a token or key.
fn is_token(value: &[u8], least: Strength) -> bool {
    value.len() >= MIN_TOKEN_BYTES
        && strength(value) >= least
        && secret_heuristics::bits(value) > 3.0
}

/// Returns whether an unquoted value is written as in a settings file, an environment or a query,
/// where no code occurs: `NAME=value` without spaces, `name: value` up to the end of the line.
fn is_setting(text: &[u8], named: &NamedValue, name: &[u8], behind: &[u8]) -> bool {
    let ends_line = match behind {
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
    let goes_on = matches!(behind, [b' ' | b'\t' | b';' | b'&' | b'|', ..]);
    let before_space = matches!(behind, [b' ' | b'\t', ..]);
    ends_line || !named.colon && (is_query || is_upper && goes_on || before_space)
}

/// How much a short value looks like a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// A word, a number, a placeholder, code.
    None,
    /// Letters and digits in no word.
    Fair,
    /// Letters of both cases and digits or signs, in no word.
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
        || secret_heuristics::bits(value) < 2.3
        || secret_heuristics::is_known_password(value)
        || secret_heuristics::is_words(value) && !(has_inner_digit(value) && capitals == 0)
        || secret_heuristics::is_dated_name(value)
        || secret_heuristics::is_structured(value)
        || is_code(value)
    {
        return Strength::None;
    }
    let both = small > 0 && capitals > 0;
    let switches = value
        .windows(2)
        .filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
        .count();
    match () {
        () if both && (digits > 0 && letters > 2 || signs > 0) => Strength::High,
        () if digits > 0 && signs > 0 => Strength::High,
        () if digits >= 2 || has_inner_digit(value) => Strength::Fair,
        () if both && switches >= 2 && value.len() >= 10 => Strength::Fair,
        () => Strength::None,
    }
}

/// Returns whether a digit is between letters, as in no word.
fn has_inner_digit(value: &[u8]) -> bool {
    value.windows(3).any(|three| {
        matches!(three, [a, b, c] if a.is_ascii_alphabetic() && b.is_ascii_digit() && c.is_ascii_alphabetic())
    })
}

/// Returns whether the value may be code or refer to another value: a variable, a path, a call, a
/// version, a time.
fn is_code(value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or_default();
    let is_variable =
        matches!(first, b'$' | b'/' | b'.' | b'~' | b':' | b'=' | b'*' | b'?' | b'@' | b'#' | b'-')
            || first == b'%' && (value.ends_with(b"%") || value.len() < 4);
    let inside = |byte: u8| value.contains(&byte);
    // `self.pass1`, `a/b2`, `key=value`, `10:30`, `1.2.3-rc1`.
    let has_two_parts = |sign: u8| {
        let mut parts = value.split(|byte| *byte == sign);
        parts.clone().count() > 1
            && parts
                .all(|part| part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
    };
    let is_number = value.starts_with(b"0x") || value.starts_with(b"0X");
    is_variable
        || is_number
        || inside(b'=') && !value.ends_with(b"=")
        || has_two_parts(b'.')
        || has_two_parts(b'/')
        || has_two_parts(b':')
        || super::scan::contains(value, b"${")
        || super::scan::contains(value, b"::")
}
