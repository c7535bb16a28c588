//! Decides whether a value looks like a secret, from the value alone.

use super::byte_text;
use std::collections::BTreeSet;

/// Minimum length of a value that [`is_secret`] accepts, in bytes.
pub(super) const MIN_BYTES: usize = 20;
/// The entropy of a value that [`is_secret`] accepts is greater than this, in bits per byte.
const MIN_BITS: f64 = 3.5;

/// A value is a placeholder if a word in it begins with one of these texts.
const PLACEHOLDER_WORDS: [&str; 9] =
    ["dummy", "sample", "fake", "test-", "test_", "insert", "todo", "mock", "lorem"];

/// A value is a placeholder if it contains one of these texts.
const PLACEHOLDERS: [&str; 17] = [
    "xxxx", "example", "placeholder", "changeme", "change-me", "change_me", "your-", "your_",
    "yourapi", "development", "redacted", "replace", "****", "....", "foobar", "notreal",
    "notasecret",
];

/// Returns whether a value whose name indicates a secret looks like one: it is long, has a high
/// entropy (hex digits need less), and is neither a placeholder nor an identifier nor an
/// expression.
pub(super) fn is_secret(value: &[u8]) -> bool {
    value.len() >= MIN_BYTES
        && (entropy(value) > MIN_BITS || is_hex_key(value))
        && is_varied(value)
        && !is_placeholder(value)
        && !is_structured(value)
        && !is_words(value)
        && !is_dated_name(value)
}

/// Returns whether a value in the place of a credential looks like one. The test is weaker than
/// [`is_secret`], because the place says more than a name.
pub(super) fn is_credential(value: &[u8]) -> bool {
    value.len() >= 16
        && entropy(value) > 3.0
        && is_varied(value)
        && !is_placeholder(value)
        && !is_words(value)
        && !is_dated_name(value)
}

/// Returns whether a value that follows the name of a service, in the shape of its keys, is a key:
/// not a placeholder, and either a number, or digits and letters that form no words.
pub(super) fn is_key_of_service(value: &[u8]) -> bool {
    let is_number = value.iter().all(u8::is_ascii_digit);
    // Random lower-case letters may be pronounceable, but words have no digits inside.
    let is_mixed = || value.len() >= 16 && inner_digits(value) >= 2;
    let is_key = || has_letters_and_digits(value) && (is_mixed() || !is_words(value));
    entropy(value) > 2.0
        && !is_placeholder(value)
        && (is_number || is_key() && !is_dated_name(value))
}

/// Returns whether a token looks generated: digits and letters that form no words. It is for tokens
/// whose shape says little.
pub(super) fn is_random(token: &[u8]) -> bool {
    let min_bits = if token.len() < 16 { 2.5 } else { 3.0 };
    entropy(token) > min_bits
        && is_varied(token)
        && !is_placeholder(token)
        && !is_words(token)
        && !is_dated_name(token)
        && !is_snake_case(token)
}

/// Returns whether something in the shape of a token is an example from a manual: it contains a
/// word such as `example`, counts up, repeats a byte, or has few different bytes.
pub(super) fn is_example(token: &[u8]) -> bool {
    let lower = token.to_ascii_lowercase();
    let has = |word: &str| byte_text::contains(&lower, word.as_bytes());
    has("example")
        || has("placeholder")
        || has("1234567890")
        || has("abcdefghij")
        || lower.chunk_by(|one, other| one == other).any(|run| run.len() >= 6)
        || entropy(&lower) < 2.5
}

/// How many digits a well-known password may have at its end.
const MAX_NUMBER_DIGITS: usize = 4;

/// Returns whether a password is a well-known one or a placeholder, and so no secret.
pub(super) fn is_known_password(password: &[u8]) -> bool {
    const KNOWN: [&str; 30] = [
        "opensesame", "password", "passwd", "pass", "pwd", "secret", "token", "user", "username",
        "admin", "root", "postgres", "guest", "example", "changeme", "test", "testing", "demo",
        "dev", "foo", "bar", "baz", "abc", "qwerty", "default", "hunter2", "letmein",
        "mysecretpassword", "supersecret", "correct-horse-battery-staple",
    ];
    let lower = password.to_ascii_lowercase();
    let text = std::str::from_utf8(&lower).unwrap_or_default();
    let word = text.trim_end_matches(|next: char| next.is_ascii_digit());
    // A word with a long number is not a well-known password.
    let word = if text.len() - word.len() > MAX_NUMBER_DIGITS { text } else { word };
    // A short text has a low entropy even if it was generated.
    let is_short_mix =
        || password.len() < 8 && has_letters_and_digits(password) && distinct_bytes(password) >= 4;
    KNOWN.contains(&text)
        || KNOWN.contains(&word)
        || has_placeholder_word(password)
        || is_example(password) && !is_short_mix()
}

/// Returns the number of different bytes in a value.
fn distinct_bytes(value: &[u8]) -> usize {
    value.iter().collect::<BTreeSet<_>>().len()
}

/// Returns whether a value is a placeholder for a secret.
fn is_placeholder(value: &[u8]) -> bool {
    has_placeholder_word(value) || is_example(value)
}

/// Returns whether a value contains a word that only placeholders contain.
fn has_placeholder_word(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let begins_word =
        |at: usize| at == 0 || !lower.get(at - 1).is_some_and(u8::is_ascii_alphanumeric);
    let holds_word = |word: &str| {
        let mut windows = lower.windows(word.len()).enumerate();
        windows.any(|(at, window)| window == word.as_bytes() && begins_word(at))
    };
    PLACEHOLDERS.iter().any(|word| byte_text::contains(&lower, word.as_bytes()))
        || PLACEHOLDER_WORDS.iter().any(|word| holds_word(word))
}

/// Returns how often a single digit is between two letters, which no word has.
pub(super) fn inner_digits(value: &[u8]) -> usize {
    let is_inner = |three: &&[u8]| matches!(three, [a, b, c] if a.is_ascii_alphabetic() && b.is_ascii_digit() && c.is_ascii_alphabetic());
    value.windows(3).filter(is_inner).count()
}

/// Returns whether a value has letters and digits, or letters in random case.
fn is_varied(value: &[u8]) -> bool {
    has_letters_and_digits(value) || has_random_case(value)
}

/// Returns whether the case of a long value changes often and capitals are beside each other, which
/// is rare in names.
fn has_random_case(value: &[u8]) -> bool {
    const MIN_LETTERS: usize = 16;
    value.len() >= MIN_LETTERS
        && case_changes(value) * 6 >= value.len()
        && pairs_of_capitals(value) * 10 >= value.len()
}

/// Returns how often a capital follows a small letter.
pub(super) fn case_changes(value: &[u8]) -> usize {
    let changes = |two: &&[u8]| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase();
    value.windows(2).filter(changes).count()
}

/// Returns how often a capital follows a capital.
pub(super) fn pairs_of_capitals(value: &[u8]) -> usize {
    value.windows(2).filter(|two| two.iter().all(u8::is_ascii_uppercase)).count()
}

/// Returns whether a value has at least one digit and two letters.
fn has_letters_and_digits(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    // Random texts of letters alone are rare. A long text of letters is usually a name.
    digits >= 1 && letters >= 2
}

/// Returns the Shannon entropy of the distribution of the bytes in a value, in bits per byte.
pub(super) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX).max(1));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

/// Returns whether the value has the form of a UUID.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns whether the value is 32 hex digits or more that may be a key. The entropy of hex digits
/// of one case is at most 4 bits per byte.
pub(super) fn is_hex_key(value: &[u8]) -> bool {
    value.len() >= 32
        && value.iter().all(u8::is_ascii_hexdigit)
        && has_letters_and_digits(value)
        && entropy(value) > 3.0
        && !is_placeholder(value)
}

/// Returns whether the form of the value shows that it is no secret: a UUID, a path, a URL, a
/// checksum, parameters, a path of identifiers, or an identifier in snake case.
pub(super) fn is_structured(value: &[u8]) -> bool {
    let begins = |start: &str| value.starts_with(start.as_bytes());
    let is_path = begins("/")
        && value.iter().filter(|byte| **byte == b'/').count() > 1
        && !is_base64_with_slashes(value)
        || begins("./")
        || begins("../")
        || begins("~/")
        || byte_text::contains(value, b"://");
    let is_checksum = ["sha1", "sha256", "sha384", "sha512", "md5", "blake3"].iter().any(|name| {
        value
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| matches!(rest.first(), Some(b':' | b'-' | b'=')))
    });
    is_uuid(value)
        || is_path
        || is_checksum
        || is_parameters(value)
        || is_code_path(value)
        || is_snake_case(value)
}

/// Returns whether a value has only characters of base64, and a part between slashes that looks
/// generated.
fn is_base64_with_slashes(value: &[u8]) -> bool {
    const MIN_PART_BYTES: usize = 12;
    let is_generated = |part: &[u8]| {
        part.len() >= MIN_PART_BYTES
            && part.iter().any(u8::is_ascii_uppercase)
            && part.iter().any(u8::is_ascii_lowercase)
            && is_random(part)
    };
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
        && value.split(|byte| *byte == b'/').any(is_generated)
}

/// Returns whether the value consists of words and numbers between slashes and colons:
/// `20/key_len_avg:100/entry_num:1024`.
fn is_parameters(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    let is_number = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let mut parts = value.split(|byte| b"/:".contains(byte));
    value.contains(&b':') && parts.all(|part| is_word(part) || is_number(part))
}

/// Returns whether the value is a path of program identifiers: `key_kinds::KEY_2_DEFAULT`.
fn is_code_path(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let path = text.trim_start_matches(':');
    let is_identifier = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    };
    (path.len() < text.len() || path.contains("::")) && path.split("::").all(is_identifier)
}

/// Returns whether the value is an identifier of at least three parts between underscores, and at
/// least half of the parts are words: `nl80211_key_attributes`.
fn is_snake_case(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        part.iter().all(u8::is_ascii_alphabetic) && (part.len() <= 4 || is_pronounceable(part))
    };
    let is_short = |part: &[u8]| part.len() <= 8 && part.iter().all(u8::is_ascii_alphanumeric);
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'_').collect();
    let words = parts.iter().filter(|part| is_word(part)).count();
    let is_one_case = |is_other: fn(&u8) -> bool| !value.iter().any(is_other);
    parts.len() >= 3
        && words * 2 >= parts.len()
        && parts.iter().all(|part| is_word(part) || is_short(part))
        && (is_one_case(u8::is_ascii_lowercase) || is_one_case(u8::is_ascii_uppercase))
}

/// Returns whether at least 70% of the letters and digits are in words, as in names and
/// expressions.
pub(super) fn is_words(value: &[u8]) -> bool {
    const SHARE: f64 = 0.7;
    let (mut in_words, mut counted, mut words, mut in_short_words) = (0_u32, 0_u32, 0, 0_u32);
    for piece in value.split(|byte| !byte.is_ascii_alphanumeric()) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(word_length(rest));
            // A short word counts where it is separate: the `my` and `key` of `MY_KEY`.
            let alone =
                word.len() == piece.len() && word.len() < 4 && word[0].is_ascii_alphabetic();
            let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
            counted += length;
            if alone || word.len() >= 4 && is_pronounceable(word) {
                in_words += length;
                words += usize::from(word.len() >= 4);
            } else if word.len() == 3 && word[0].is_ascii_uppercase() && is_pronounceable(word) {
                in_short_words += length;
            }
            rest = after;
        }
    }
    // A short word counts among longer ones: the `Key` of `PrivateKeyTypes`.
    if words >= 2 {
        in_words += in_short_words;
    }
    f64::from(in_words) >= SHARE * f64::from(counted)
}

/// Returns whether the value is a name that ends with a release date: of a model
/// (`claude-haiku-4-5-20251001`) or of an API feature (`advanced-tool-use-2025-11-20`). Lower-case
/// words precede the date, at most two of them with digits (`4o`, `128k`); a revision may follow it
/// (`-v1:0`).
pub(super) fn is_dated_name(value: &[u8]) -> bool {
    const MAX_WITH_DIGITS: usize = 2;
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let named = text.rsplit_once("-v").filter(|(_, revision)| {
        revision.len() <= 4 && revision.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    let Some(name) = before_date(named.map_or(text, |(name, _)| name)) else { return false };
    let (mut with_digits, mut letters) = (0, 0);
    let is_word = |word: &str| {
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            letters += word.len();
            return !word.is_empty() && (word.len() <= 4 || is_pronounceable(word.as_bytes()));
        }
        with_digits += 1;
        let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        word.len() <= 4 && word.bytes().all(is_small)
    };
    name.split(['-', '.', '/']).all(is_word) && letters >= 3 && with_digits <= MAX_WITH_DIGITS
}

/// Returns the text before the date at the end of a name, such as `-2025-11-20`, `-20251120` or
/// `@20251120`; `None` if there is no date.
fn before_date(name: &str) -> Option<&str> {
    let at =
        |length: usize| name.len().checked_sub(length).and_then(|at| name.split_at_checked(at));
    let is_date = |date: &str| {
        let digits: String = date.chars().filter(|next| *next != '-').collect();
        let number = |part: &str| part.parse::<u32>().unwrap_or_default();
        digits.len() == 8
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (2000..2100).contains(&number(&digits[..4]))
            && (1..=12).contains(&number(&digits[4..6]))
            && (1..=31).contains(&number(&digits[6..]))
    };
    let dashed = at(10).filter(|(_, date)| {
        let bytes = date.as_bytes();
        is_date(date) && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-')
    });
    let (front, _) = dashed.or_else(|| at(8).filter(|(_, date)| is_date(date)))?;
    front.strip_suffix(['-', '@'])
}

/// Returns the length of the first word: a capital and lower-case letters, capitals only,
/// lower-case letters only, or one other byte.
fn word_length(text: &[u8]) -> usize {
    let small = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let capitals = text.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    match capitals {
        0 => small(text).max(1),
        1 => 1 + small(text.get(1..).unwrap_or_default()),
        // The last capital begins the next word if lower-case letters follow.
        _ if text.get(capitals).is_some_and(u8::is_ascii_lowercase) => capitals - 1,
        _ => capitals,
    }
}

/// Returns whether a word can be pronounced: at least a sixth of its letters are vowels, and at
/// most four in a row are not.
pub(super) fn is_pronounceable(word: &[u8]) -> bool {
    let vowel =
        |byte: &u8| matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let vowels = word.iter().filter(|byte| vowel(byte)).count();
    let longest_cluster = word.split(|byte| vowel(byte)).map(<[u8]>::len).max().unwrap_or_default();
    vowels * 6 >= word.len() && longest_cluster <= 4
}
