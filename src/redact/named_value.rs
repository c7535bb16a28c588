//! Names that indicate a secret value: `API_KEY=`, `"password": "`, `--token `, `X-Auth-Token: `.

use super::TextForm;
use super::byte_text::is_letter_of_escape;
use super::hint_starts::{HintStarts, for_each_word};
use super::name_cursor::{MAX_QUOTED_BYTES, NameCursor};
use super::token_shape::ScanMemory;
use super::work_counter;
use std::ops::Range;

/// Name parts (in lower case) that indicate a secret, after the kind of the value. If a name has
/// several, the last one in this order counts.
pub(super) const INDICATING_WORDS: &[(&str, &[&str])] = &[
    (
        "password",
        &["psk=", "psk\"", "psk\\", "psk:", "pw=", "pw =", "_pw:", "_pw\"", "_pw\\", "_pw'"],
    ),
    ("key", &["presharedkey", "auth-key", "authkey"]),
    ("token", &["_pat=", "_pat:", "_pat\"", "_pat\\", "_pat'", "bw_session", "op_session_"]),
    ("key", &["functions-key", "subscription-key", "master-key", "rapidapi-key"]),
    (
        "password",
        &[
            "password", "passwd", "passphrase", "_pass", "-pass", "_pwd", "pwd=", "pwd =", "pwd:",
            "pwd\"", "pwd\\", "pwd'", "passcode", "pass=", "pass =",
        ],
    ),
    ("secret", &["_salt", "pepper"]),
    ("password", &["pass:", "pass\"", "pass\\", "pass'"]),
    ("secret", &["secret", "secret key"]),
    ("token", &["token"]),
    (
        "key",
        &[
            "api_key", "apikey", "api-key", "accesskey", "access-key", "accountkey", "privatekey",
            "private-key", "encryptionkey", "signingkey", "_key", "api key", "private key",
            "encryption key", "master key",
        ],
    ),
    ("credential", &["credential", "_auth"]),
];

/// Last name parts whose values are not checked: such a value is public, or describes a secret.
const HARMLESS: [&str; 40] = [
    "address", "contract", "id", "ids", "uuid", "guid", "signature", "sig", "hash", "digest",
    "sha", "sha1", "sha256", "checksum", "fingerprint", "name", "names", "type", "url", "uri",
    "path", "file", "filename", "count", "length", "limit", "usage", "arn", "version", "date",
    "time", "at", "expires", "expiry", "class", "field", "label", "prefix", "pattern", "format",
];

/// The parts before a last `key` or `token` of a name whose value is no secret: something is looked
/// up or continued by it.
const LOOKUPS: [&str; 15] = [
    "cache", "partition", "sort", "range", "row", "object", "s3", "lock", "dedup", "dedupe",
    "restore", "merge", "translation", "pub", "verifying",
];

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 96;

pub(super) struct NamedValue {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// The whole value as it is written, up to its closing quote or the end of its word. `value`
    /// ends at the first sign that is not usual in a secret.
    pub(super) whole: Range<usize>,
    /// Whether `value` is no literal value: it is empty or cut, or what follows makes it an
    /// expression or prose.
    pub(super) is_expression: bool,
    /// The end of the run of bytes that `value` is a prefix of.
    pub(super) run_end: usize,
    pub(super) quoted: bool,
    /// Whether there are spaces between the name and the value.
    pub(super) spaced: bool,
    /// Whether a colon joins name and value.
    pub(super) colon: bool,
    /// Whether a comma joins them: both are in one list.
    pub(super) listed: bool,
    /// Whether the name is a command-line flag.
    pub(super) is_flag: bool,
    /// Whether the place says less: the value is the first argument of a call, as in
    /// `setPassword("...")`, or only quotes follow the name, as in ``password `...` ``.
    pub(super) weak: bool,
    /// Whether name and value are in two columns or cells of a table.
    pub(super) in_columns: bool,
}

/// Returns the kind of secret that this name indicates, if any.
pub(super) fn kind_of(name: &str) -> Option<&'static str> {
    // Most calls are for fields of facts, whose names contain no such word.
    static STARTS: HintStarts = starts();
    STARTS.next(name.as_bytes(), 0..name.len())?;
    let lower = name.to_ascii_lowercase();
    let known = |word: &&str| match bare(word) {
        bare if bare.len() < word.len() => lower.ends_with(bare),
        _ => lower.contains(word),
    };
    let (kind, _) = INDICATING_WORDS.iter().rfind(|(_, words)| words.iter().any(known))?;
    indicates_secret(name.as_bytes()).then_some(*kind)
}

/// Returns where an indicating word may begin in a name.
const fn starts() -> HintStarts {
    let mut starts = HintStarts::NONE;
    for_each_word!(INDICATING_WORDS, |_kind, word| {
        starts.add(bare(word));
    });
    starts
}

/// Returns an indicating word without the sign that follows the name.
const fn bare(mut word: &str) -> &str {
    while let [.., b'=' | b':' | b'"' | b'\'' | b'\\' | b' '] = word.as_bytes() {
        word = word.split_at(word.len() - 1).0;
    }
    word
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Returns whether a name that contains an indicating word really indicates a secret: the value
/// may be public, as that of `public_key`.
pub(super) fn indicates_secret(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let mut parts = parts(&text);
    let last = parts.pop().unwrap_or_default();
    let before = parts.pop().unwrap_or_default();
    let is_lookup = matches!(last.as_str(), "key" | "token") && LOOKUPS.contains(&before.as_str());
    let lower = text.to_ascii_lowercase();
    !is_lookup
        && !HARMLESS.contains(&last.as_str())
        && ![
            "public", "page_token", "pagination_token", "cursor_token", "pagetoken", "page-token",
            "tokenizer", "tokens", "primary_key", "foreign_key",
            // These identify a request, a page or a state.
            "nexttoken", "next_token", "next-token", "updatetoken", "update_token", "changetoken",
            "change-token", "continuationtoken", "continuation_token", "idempotency",
            "requesttoken", "synctoken", "sync_token",
        ]
        .iter()
        .any(|word| lower.contains(word))
}

/// Splits a name into lower-case parts: `dbPassword_2` has `db`, `password` and `2`.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for character in name.chars() {
        let ends =
            !character.is_ascii_alphanumeric() || (after_small && character.is_ascii_uppercase());
        if ends && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if character.is_ascii_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.push(character.to_ascii_lowercase());
        }
        after_small = character.is_ascii_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the value after the name that contains this indicating word, if there is one. After the
/// name of a service, a comma may separate the name and the value.
pub(super) fn value_after(
    text: &[u8],
    word: Range<usize>,
    form: TextForm,
    runs: &mut ScanMemory,
    of_service: bool,
) -> Option<NamedValue> {
    let Range { start, end } = word;
    let before = text.get(start.saturating_sub(MAX_NAME_BYTES)..start)?;
    let name_start = start - before.iter().rev().take_while(|byte| is_name(**byte)).count();
    // The letter of an escape is not part of the name.
    let is_escaped = is_letter_of_escape(text, name_start);
    let name_start = if is_escaped { start.min(name_start + 1) } else { name_start };
    // The hint may include the sign that follows the name.
    let word_end = start + text.get(start..end)?.iter().rposition(|byte| is_name(*byte))? + 1;
    let after = text.get(word_end..text.len().min(word_end + MAX_NAME_BYTES))?;
    let end_of_name = word_end + after.iter().take_while(|byte| is_name(**byte)).count();
    let name = text.get(name_start..end_of_name)?;
    let mut cursor = NameCursor { text, at: end_of_name, form };
    let is_flag = name.starts_with(b"-");
    let quoted_name = cursor.quote();
    let of_pair = cursor.value_of_pair(name, quoted_name);
    let of_element = !of_pair && cursor.value_of_element(name_start, quoted_name);
    // What follows in the next cell may be a description.
    let tag = text.get(cursor.at.saturating_sub(4)..cursor.at).unwrap_or_default();
    let in_cell =
        of_element && (tag.eq_ignore_ascii_case(b"<td>") || tag.eq_ignore_ascii_case(b"<dd>"));
    cursor.brackets();
    let gap = cursor.at;
    let spaces = cursor.spaces();
    let gap = text.get(gap..cursor.at).unwrap_or_default();
    let may_be_called = !quoted_name && !of_service && matches!(cursor.byte(0), b'(' | b'{');
    let called = may_be_called && !is_getter(name) && cursor.bracket_of_call();
    let opener = name_start.checked_sub(1).and_then(|at| text.get(at)).copied();
    // A tuple of Erlang: `{password, "..."}`.
    let in_tuple = opener == Some(b'{') && !quoted_name && cursor.byte(0) == b',';
    if !is_flag && !quoted_name && spaces {
        cursor.type_before_sign();
    }
    let colon = cursor.byte(0) == b':' && cursor.byte(1) != b'=';
    let listed = cursor.byte(0) == b',' && !in_tuple && !is_argument_of_setter(text, name_start);
    let separated =
        called || of_element || cursor.separator(quoted_name || in_tuple, of_service) || of_pair;
    let is_set = separated || is_flag && spaces;
    // A directive in the settings of a server: `secret "..."`. A password may also be in other
    // quotes: `storePassword '...'`.
    let is_password = || name.to_ascii_lowercase().ends_with(b"password");
    let (next, length) = cursor.next_quote(0).unwrap_or_default();
    let is_bare = !is_set && spaces && !quoted_name;
    let is_directive =
        is_bare && next == b'"' && (is_password() || !is_object_name(text, cursor.at + length));
    let is_other = is_bare && matches!(next, b'\'' | b'`') && is_password();
    let is_set = is_set || is_directive || is_other;
    let in_columns = !is_set && !is_flag && !quoted_name && !of_service && cursor.column(gap);
    if !(is_set || in_columns) {
        return None;
    }
    let spaced = cursor.spaces() || spaces;
    // A type may come between the name and its value: `token: &str = "..."`.
    cursor.declared_type();
    cursor.yaml_property();
    let in_map = colon && !spaced && cursor.skip(b"[");
    // In a list with a line for each element, the next element is no value.
    let may_end_line = !listed || is_flag || is_first_argument(text, name_start);
    cursor.wrapper(may_end_line);
    cursor.literal_prefix();
    let quoted = cursor.quote();
    if in_tuple && !quoted {
        return None;
    }
    work_counter::add(cursor.at - name_start);
    let run_end = cursor.run_end(runs);
    let name = name_start..end_of_name;
    // A part of a resource name: `arn:aws:secretsmanager:...:secret:NAME`.
    if opener == Some(b':') && colon && !spaced && !quoted {
        return None;
    }
    let whole = if quoted { cursor.quoted_whole() } else { cursor.word(opener, of_element) };
    work_counter::add(whole.as_ref().map_or(MAX_QUOTED_BYTES, Range::len));
    let (value, is_expression) = cursor.value(quoted, run_end);
    let whole = whole.unwrap_or_else(|| value.clone());
    let named = NamedValue {
        name,
        value,
        whole,
        is_expression,
        run_end,
        quoted,
        spaced,
        colon,
        listed: listed || in_map,
        is_flag,
        weak: called || is_other,
        in_columns: in_columns || in_cell,
    };
    (!named.whole.is_empty()).then_some(named)
}

/// Functions whose first argument is a name and whose second is its value.
const SETTERS: [&[u8]; 23] = [
    b"define", b"setenv", b"getenv", b"putenv", b"stubenv", b"set_var", b"setenvironmentvariable",
    b"setproperty", b"setdefault", b"setitem", b"set", b"get", b"env", b"fetch", b"config",
    b"getordefault", b"string", b"append", b"add", b"put", b"entry", b"withenv",
    b"withenvironment",
];

/// Returns whether a name is the first argument of a call that sets its value, or that has a
/// default for it: `define('DB_PASSWORD', '...')`, `os.Setenv("DB_PASSWORD", "...")`.
fn is_argument_of_setter(text: &[u8], name: usize) -> bool {
    const MOST: usize = 32;
    let before = text.get(name.saturating_sub(MOST)..name).unwrap_or_default();
    let quotes = before.iter().rev().take_while(|byte| b"\"'`\\ ".contains(byte)).count();
    let Some(call) = before.get(..before.len() - quotes).and_then(|call| call.strip_suffix(b"("))
    else {
        return false;
    };
    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = call.iter().rev().take_while(is_of_name).count();
    let function = call.get(call.len() - length..).unwrap_or_default();
    SETTERS.iter().any(|known| function.eq_ignore_ascii_case(known))
}

/// Returns whether a name is the first argument of a call. Line ends may come before it.
fn is_first_argument(text: &[u8], name: usize) -> bool {
    const MOST: usize = 48;
    let mut before = text.get(name.saturating_sub(MOST)..name).unwrap_or_default();
    loop {
        before = before.trim_ascii_end();
        let signs = before.iter().rev().take_while(|byte| b"\"'`\\".contains(byte)).count();
        before = before.get(..before.len() - signs).unwrap_or_default().trim_ascii_end();
        let escape = [&b"\\n"[..], b"\\r", b"\\t"].into_iter().find(|it| before.ends_with(it));
        let Some(escape) = escape else { return before.ends_with(b"(") };
        before = before.get(..before.len() - escape.len()).unwrap_or_default();
    }
}

/// Returns whether a name is that of a function whose argument is no secret, but says which secret
/// is read, `getPassword("...")`, or what the object is called: `new Secret("...")`.
fn is_getter(name: &[u8]) -> bool {
    const CLASSES: [&str; 4] = ["Secret", "Token", "RandomPassword", "UserPassword"];
    const VERBS: [&str; 20] = [
        "get", "fetch", "read", "load", "find", "lookup", "has", "is", "delete", "remove", "check",
        "describe", "validate", "parse", "list", "create", "hide", "reset", "forgot", "expect",
    ];
    let text = String::from_utf8_lossy(name);
    let name = text.rsplit('.').next().unwrap_or_default();
    CLASSES.contains(&name)
        || parts(name).first().is_some_and(|first| VERBS.contains(&first.as_str()))
}

/// Returns whether the quoted text at an offset is the name of an object in Kubernetes, as in
/// `secret "db-creds-9f8b7" deleted`: parts of small letters and digits, and one is a word.
fn is_object_name(text: &[u8], at: usize) -> bool {
    const MOST: usize = 64;
    let rest = text.get(at..).unwrap_or_default();
    let is_of_name =
        |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(byte);
    let length = rest.iter().take(MOST).take_while(is_of_name).count();
    let name = rest.get(..length).unwrap_or_default();
    let is_word = |part: &[u8]| part.len() >= 3 && part.iter().all(u8::is_ascii_lowercase);
    matches!(rest.get(length), Some(b'"' | b'\\'))
        && name.contains(&b'-')
        && name.split(|byte| *byte == b'-').any(is_word)
}
