//! Credentials that are recognised by their context.

use super::byte_text::{decode, is_base64, run};
use super::token_rule::URL_PASSWORD;
use super::{
    MAX_SECRET_BYTES, SecretFinding, TextForm, byte_text, json_text, private_key,
    secret_heuristics, short, work_counter,
};
use std::ops::Range;

/// The context of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialKind {
    Bearer,
    Basic,
    Address,
    PrivateKey,
    PrivateKeyEnd,
    Netrc,
    UserFlag,
    Login,
    ToolFlag,
    Cookie,
    /// The cookies of a request in an HTTP archive (HAR): objects with a name and a value. Or one
    /// object with a field for each cookie, as HTTP clients take them.
    CookieList,
    /// A line of a file of cookies, such as `curl -c` writes: seven fields between tabs.
    CookieLine,
    SessionName,
    /// The rows of a query after the names of their columns.
    Rows,
    Kubernetes,
}

/// Lower-case texts next to which there may be a credential.
pub(super) const HINTS: &[(CredentialKind, &[&str])] = &[
    (CredentialKind::Bearer, &["bearer ", "bearer, "]),
    (CredentialKind::Basic, &["basic ", "auth plain "]),
    (CredentialKind::Address, &["://", ":\\/\\/"]),
    (CredentialKind::PrivateKey, &["-----begin "]),
    (CredentialKind::PrivateKeyEnd, &["-----end "]),
    (CredentialKind::Netrc, &[" password "]),
    (CredentialKind::UserFlag, &[" -u ", " -su ", " -ku ", " -sku ", " -ssu ", "--user "]),
    (CredentialKind::Login, &["auth\"", "auth\\", "auth'", "auth:", "auth="]),
    (
        CredentialKind::ToolFlag,
        &[
            " -p", " -a ", " -w ", " -n ", "requirepass ", "masterauth ", "identified by ",
            "with password ",
        ],
    ),
    (
        CredentialKind::Cookie,
        &[
            "cookie:", "cookie=", "cookie = ", "cookie\":", "cookie\\\":", "cookie':", "cookie', ",
            "cookie\",", "cookie\\\",", "--cookie ", " -b ",
        ],
    ),
    (
        CredentialKind::CookieList,
        &["cookies\":", "cookies\\\":", "cookies':", "cookies=", "cookies = "],
    ),
    (CredentialKind::CookieLine, &["\ttrue\t/", "\tfalse\t/", "\\ttrue\\t/", "\\tfalse\\t/"]),
    (
        CredentialKind::SessionName,
        &["phpsessid", "jsessionid", "connect.sid", "laravel_session", "asp.net_sessionid"],
    ),
    (
        CredentialKind::Rows,
        &["values (", "values(", "values\n", "values\\n", "values\r\n", "values\\r\\n"],
    ),
    (
        CredentialKind::Kubernetes,
        &[
            "kind: secret", "kind\":\"secret\"", "kind\": \"secret\"", "kind\\\":\\\"secret\\\"",
            "kind\\\": \\\"secret\\\"",
        ],
    ),
];

/// The word before the name that a password belongs to.
const LOGIN: &[u8] = b"login ";
/// The kind of secret of a cookie that identifies a session or login.
const COOKIE: &str = "session-cookie";
/// Maximum length of a cookie header, in bytes.
const COOKIE_BYTES: usize = 4096;
/// Maximum distance from a flag back to the name of its program, in bytes.
const COMMAND_BYTES: usize = 160;
/// Maximum distance from a password back to its `login`, in bytes.
const LOGIN_BYTES: usize = 160;

/// The result of examining the text after a hint.
pub(super) enum CredentialMatch {
    Nothing,
    Secret(SecretFinding),
    /// A private key that begins at this offset and does not end in the text; the part that is in
    /// the text, if the part is enough to identify a key.
    Open(usize, Option<SecretFinding>),
}

/// Examines the text after a hint that spans `start` to `end`.
pub(super) fn find(
    text: &[u8],
    start: usize,
    end: usize,
    kind: CredentialKind,
    form: TextForm,
) -> CredentialMatch {
    let found = match kind {
        CredentialKind::Bearer => bearer(text, start, end),
        CredentialKind::Basic => basic(text, start, end),
        CredentialKind::Address => address(text, start, end),
        CredentialKind::PrivateKey => return private_key::find(text, start, end, form),
        CredentialKind::PrivateKeyEnd => private_key::find_tail(text, start, end, form),
        CredentialKind::Netrc => netrc(text, start, end, form),
        CredentialKind::UserFlag => user_flag(text, start, end),
        CredentialKind::ToolFlag => tool_flag(text, start, end),
        CredentialKind::SessionName => session(text, end),
        CredentialKind::CookieLine => cookie_line(text, end),
        // Text of these kinds may have several credentials, which `scan` finds.
        CredentialKind::Login
        | CredentialKind::Cookie
        | CredentialKind::CookieList
        | CredentialKind::Rows
        | CredentialKind::Kubernetes => None,
    };
    found.map_or(CredentialMatch::Nothing, CredentialMatch::Secret)
}

fn bearer(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    if !byte_text::begins_word(text, start) {
        return None;
    }
    let length =
        run(text, end, MAX_SECRET_BYTES, |byte| is_base64(byte) || matches!(byte, b'.' | b'~'));
    let range = end..end + length;
    secret_heuristics::is_credential(text.get(range.clone())?)
        .then_some(SecretFinding { range, kind: "bearer" })
}

fn basic(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    if !byte_text::begins_word(text, start) {
        return None;
    }
    let range = end..end + run(text, end, 512, is_base64);
    login_value(text.get(range.clone())?).then_some(SecretFinding { range, kind: "basic" })
}

/// Finds the password in `scheme://user:password@host`.
fn address(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    if !text.get(start.checked_sub(1)?)?.is_ascii_alphanumeric() {
        return None;
    }
    let part = |byte: u8| byte.is_ascii_graphic() && !b"/\\\"'`<>@:,;(){}[]|".contains(&byte);
    let first = run(text, end, 128, part);
    // The name may be an e-mail address: `https://me@host:password@host`.
    let is_email = text.get(end + first) == Some(&b'@');
    if is_email && let Some(found) = token_of_address(text, end..end + first) {
        return Some(found);
    }
    let user = if is_email { first + 1 + run(text, end + first + 1, 128, part) } else { first };
    if text.get(end + user) != Some(&b':') {
        return None;
    }
    let from = end + user + 1;
    // A token in the place of the name has no password, or a fixed one.
    let is_token = |rest: &[u8]| rest.starts_with(b"@") || rest.starts_with(b"x-oauth-basic@");
    if text.get(from..).is_some_and(is_token)
        && let Some(found) = token_of_address(text, end..end + user)
    {
        return Some(found);
    }
    let length = run(text, from, 512, |byte| part(byte) || byte == b':');
    let range = match text.get(from + length) {
        Some(b'@') => from..password_end(text, from + length),
        _ if is_email => return None,
        _ => any_password(text, from)?,
    };
    let password = text.get(range.clone())?;
    let name = text.get(end..end + user)?;
    // Placeholders: `$PASSWORD`, `%PASSWORD%`, `%s`, `***`.
    let is_variable = password.starts_with(b"$")
        || password.starts_with(b"%") && (password.len() < 8 || password.ends_with(b"%"))
        || password.iter().all(|byte| *byte == b'*');
    // In `:pserver:anoncvs`, `pserver` is a way to connect and the password is public.
    let is_method = user == 0 && password.starts_with(b"pserver:");
    let counts = password.len() >= 6 && password != name && !is_variable && !is_method;
    (counts && !secret_heuristics::is_known_password(password))
        .then_some(SecretFinding { range, kind: URL_PASSWORD.0 })
}

/// Finds a token in the place of the name: `https://TOKEN@host`. The name in an address of Sentry,
/// 32 hex digits, is public.
fn token_of_address(text: &[u8], range: Range<usize>) -> Option<SecretFinding> {
    let value = text.get(range.clone())?;
    let is_public = value.len() == 32 && value.iter().all(u8::is_ascii_hexdigit);
    (secret_heuristics::is_secret(value) && !is_public)
        .then_some(SecretFinding { range, kind: URL_PASSWORD.0 })
}

/// Returns the end of a password: the last `@` before the host. The first `@` is at this offset and
/// may be part of the password.
fn password_end(text: &[u8], at: usize) -> usize {
    let more = run(text, at + 1, 128, |byte| {
        byte.is_ascii_alphanumeric() || b"!#$%^&*+=~_.-@".contains(&byte)
    });
    let rest = text.get(at + 1..at + 1 + more).unwrap_or_default();
    rest.iter().rposition(|byte| *byte == b'@').map_or(at, |more| at + 1 + more)
}

/// Returns the range of a password that contains signs of addresses or code, if it looks generated.
/// It ends at the last `@` before a space or quote.
fn any_password(text: &[u8], from: usize) -> Option<Range<usize>> {
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\\\"`<>".contains(&byte) || byte >= 0x80;
    let length = run(text, from, 160, is_part);
    let word = text.get(from..from + length)?;
    let at = word.iter().rposition(|byte| *byte == b'@')?;
    let password = word.get(..at)?;
    let is_port = password.iter().take_while(|byte| byte.is_ascii_digit()).count() >= 2
        && password.iter().find(|byte| !byte.is_ascii_digit()) == Some(&b'/');
    let has_host = word.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    let has = |part: &[u8]| byte_text::contains(password, part);
    let percents = password.iter().filter(|byte| **byte == b'%').count();
    let is_code = percents > 3
        || has(b"://")
        || has(b"${")
        || has(b"{}")
        || has(b"//")
        || has(b"?") && has(b"=");
    (has_host && !is_port && !is_code && short::is_password(password)).then_some(from..from + at)
}

/// Finds the password in `login NAME password SECRET`, as in `.netrc`.
fn netrc(text: &[u8], start: usize, end: usize, form: TextForm) -> Option<SecretFinding> {
    login(text, start, form)?;
    let length =
        run(text, end, 512, |byte| byte.is_ascii_graphic() && !b"\\\"'`<>".contains(&byte));
    let range = end..end + length;
    let password = text.get(range.clone())?;
    let is_template = password.starts_with(b"{") || password.starts_with(b"$");
    (length >= 8 && !is_template && !secret_heuristics::is_known_password(password))
        .then_some(SecretFinding { range, kind: "password" })
}

/// Returns the offset of the `login` that a password here may belong to: on the same line, or on an
/// earlier one where lines are not separate documents.
pub(super) fn login(text: &[u8], at: usize, form: TextForm) -> Option<usize> {
    let from = at.saturating_sub(LOGIN_BYTES);
    let before = text.get(from..at)?;
    let from = match before.iter().rposition(|byte| *byte == b'\n') {
        Some(line) if form == TextForm::Json => from + line + 1,
        _ => from,
    };
    let before = text.get(from..at)?;
    before.windows(LOGIN.len()).position(|window| window == LOGIN).map(|place| from + place)
}

/// Finds the password in `curl -u NAME:SECRET`.
fn user_flag(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    let end = end + run(text, end, 4, is_quote);
    // The name may have a domain before it: `CORP\name`.
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._@-+\\".contains(&byte);
    let name = run(text, end, 64, is_of_name);
    if name == 0
        || text.get(end + name) != Some(&b':')
        || text.get(end..end + name).is_some_and(has_line_break)
    {
        return None;
    }
    let from = end + name + 1;
    let quote = text.get(end - 1).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let is_bare = |byte| is_base64(byte) || b".~!#^*%@$,:;?+|&(){}[]".contains(&byte);
    let (length, _) = password_length(text, from, quote, is_bare);
    let range = from..from + length;
    let password = text.get(range.clone())?;
    let is_short = || {
        (short::strength(password) >= short::Strength::Fair || short::is_password(password))
            && command_before(text, start)
                .is_some_and(|line| has_word(line, &["curl", "wget", "http", "https", "xh"]))
    };
    (secret_heuristics::is_credential(password) || is_short())
        .then_some(SecretFinding { range, kind: "basic" })
}

/// Returns whether the backslash in a name begins an escaped line break or tab. The backslash after
/// a domain does not (`CORP\name`): a domain has no small letters.
fn has_line_break(name: &[u8]) -> bool {
    let Some(at) = name.iter().position(|byte| *byte == b'\\') else { return false };
    let (domain, rest) = name.split_at(at);
    matches!(rest.get(1), Some(b'n' | b'r' | b't')) && domain.iter().any(u8::is_ascii_lowercase)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'\\')
}

/// Returns the part of the line before this offset that belongs to the same command.
fn command_before(text: &[u8], at: usize) -> Option<&[u8]> {
    let before = text.get(at.saturating_sub(COMMAND_BYTES)..at)?;
    work_counter::add(before.len());
    let line = before.rsplit(|byte| matches!(byte, b'\n' | b'|' | b';' | b'&')).next()?;
    // An escaped line break counts too.
    let escaped = line.windows(2).rposition(|two| two == b"\\n").map_or(0, |at| at + 2);
    line.get(escaped..)
}

pub(super) fn has_word(line: &[u8], words: &[&str]) -> bool {
    let mut found = line.split(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte));
    found.any(|word| words.iter().any(|known| known.as_bytes() == word))
}

/// Finds a password given to a program that accepts it in this flag (`mysql -pSECRET`, `redis-cli
/// -a SECRET`), or after the words of a setting or query (`identified by 'SECRET'`).
fn tool_flag(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    let flag = text.get(start..end)?.to_ascii_lowercase();
    let glued = flag == b" -p";
    let spaces = run(text, end, 2, |byte| byte == b' ');
    let tools: &[&str] = match flag.as_slice() {
        b" -p" if text.get(start + 2) == Some(&b'P') => &[
            "unzip", "zip", "sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub", "ipmitool",
            "ssh-keygen", "p4", "osql", "isql", "tsql",
        ],
        b" -p" if spaces == 0 => &[
            "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow",
            "mysqlslap", "mysqlpump", "mariadb", "mariadb-dump", "mariadb-admin", "sshpass", "7z",
            "7za", "docker", "podman", "rar", "unrar", "mycli", "mysqlsh",
        ],
        b" -p" => &[
            "sshpass", "docker", "podman", "mongo", "mongosh", "mongodump", "mongorestore", "helm",
            "oc", "az", "influx", "twine", "cqlsh", "cypher-shell", "eas", "expo", "poetry",
            "rabbitmqadmin", "supabase", "rdesktop", "crackmapexec", "netexec", "nxc",
            "evil-winrm", "beeline", "crane", "oras", "yt-dlp", "vsce", "mycli", "couchbase-cli",
            "cbq", "smbmap", "racadm", "ncftpput", "altool", "skopeo", "buildah", "nerdctl",
            "conan", "cosign", "singularity", "apptainer",
        ],
        // Another flag in small letters.
        b" -n " if text.get(start + 2) == Some(&b'n') => return None,
        b" -n " => &["ssh-keygen"],
        b" -a " => &["redis-cli", "redis-benchmark", "valkey-cli", "valkey-benchmark", "keydb-cli"],
        b" -w " => &[
            "ldapsearch", "ldapmodify", "ldapadd", "ldappasswd", "ldapwhoami", "ldapdelete",
            "ldapcompare", "ldapmodrdn", "kadmin", "ipa-client-install",
        ],
        _ => &[],
    };
    if !tools.is_empty() {
        // Programs whose other subcommands have this flag too.
        const WITH_LOGIN: [&str; 16] = [
            "docker", "podman", "helm", "az", "oc", "eas", "expo", "poetry", "supabase", "skopeo",
            "buildah", "nerdctl", "conan", "cosign", "singularity", "apptainer",
        ];
        let line = command_before(text, start)?;
        let is_login =
            !has_word(line, &WITH_LOGIN) || has_word(line, &["login", "publish", "link"]);
        if !has_word(line, tools) || !is_login {
            return None;
        }
    }
    let from = end + if glued { spaces } else { 0 };
    let quotes = run(text, from, 4, is_quote);
    let is_bare = |byte: u8| byte.is_ascii_graphic() && !b"\\\"'`<>;|&()".contains(&byte);
    // An empty argument: `-N "" -f FILE`. Doubled quotes may be around a password: `""SECRET""`.
    let opened = text.get(from..from + quotes)?;
    let is_around = !opened.ends_with(b"\\")
        && text.get(from + quotes).is_some_and(|next| is_bare(*next) && !b",.".contains(next));
    let is_empty =
        ["\"\"", "''", "\"\\\""].iter().any(|empty| byte_text::contains(opened, empty.as_bytes()));
    if is_empty && !is_around {
        return None;
    }
    // A sentence may contain the same words.
    let is_prose = quotes == 0 && (flag.ends_with(b"by ") || flag.ends_with(b"password "));
    let from = from + quotes;
    let quote = text.get(from - 1).copied().filter(|byte| quotes > 0 && is_quote(*byte));
    let (length, is_quoted) = password_length(text, from, quote, is_bare);
    let range = from..from + length;
    let password = text.get(range.clone())?;
    let is_long =
        password.len() >= secret_heuristics::MIN_BYTES && secret_heuristics::is_secret(password);
    let is_short = short::strength(password) >= short::Strength::Fair
        || is_quoted && short::is_password(password);
    let is_secret = length >= 6 && (is_long || is_short);
    // `IDENTIFIED BY SECRET` of Oracle has no quotes. Then it is written like an identifier.
    let is_query = || {
        let line = command_before(text, start).unwrap_or_default().to_ascii_lowercase();
        let is_sure = text.get(start).is_some_and(u8::is_ascii_uppercase)
            || has_word(&line, &["create", "alter", "grant"]);
        is_sure && password.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$#".contains(byte))
    };
    let is_named =
        !is_prose || flag.ends_with(b"by ") && short::looks_random(password) && is_query();
    (is_secret && is_named).then_some(SecretFinding { range, kind: "password" })
}

/// Returns the length of the password at an offset, and whether it ends at this quote. Then it may
/// contain any sign but quotes of this kind, `"`, backslashes and control characters, else those
/// that `is_bare` accepts.
fn password_length(
    text: &[u8],
    from: usize,
    quote: Option<u8>,
    is_bare: impl Fn(u8) -> bool,
) -> (usize, bool) {
    let whole = quote.map_or(0, |quote| {
        run(text, from, 256, |byte| byte != quote && byte >= b' ' && !b"\\\"".contains(&byte))
    });
    let is_quoted = quote.is_some() && text.get(from + whole).copied() == quote;
    (if is_quoted { whole } else { run(text, from, 256, is_bare) }, is_quoted)
}

/// Finds the value of a session cookie: `PHPSESSID=SECRET`.
fn session(text: &[u8], end: usize) -> Option<SecretFinding> {
    let gap =
        run(text, end, 8, |byte| matches!(byte, b'=' | b'"' | b'\'' | b'\\' | b':' | b' ' | b'\t'));
    let range = end + gap..end + gap + run(text, end + gap, 512, is_of_cookie);
    (gap > 0 && is_session(text.get(range.clone())?))
        .then_some(SecretFinding { range, kind: COOKIE })
}

fn is_of_cookie(byte: u8) -> bool {
    is_base64(byte) || b".~%:!*|".contains(&byte)
}

fn is_session(value: &[u8]) -> bool {
    let is_number = value.iter().all(u8::is_ascii_digit);
    value.len() >= 16 && !is_number && secret_heuristics::is_credential(value)
}

/// Returns whether a cookie of this name identifies a session or login.
fn is_name_of_login(name: &[u8]) -> bool {
    const LOGIN_PARTS: [&str; 17] = [
        "sess", "sid", "auth", "token", "jwt", "login", "logged_in", "remember", "csrf", "xsrf",
        "ticket", "secret", "_key", "aspx", "aspnet", "identity", "li_at",
    ];
    let lower = name.to_ascii_lowercase();
    LOGIN_PARTS.iter().any(|word| byte_text::contains(&lower, word.as_bytes()))
}

/// Returns where the value of a header begins: `{"name": "Cookie", "value": "a=b"}` has a field for
/// it.
fn header_value(text: &[u8], end: usize) -> usize {
    let field = || {
        let from = json_text::skip_quote(text, json_text::skip_spaces(text, end))?;
        let name = text.get(from..from + 5)?.eq_ignore_ascii_case(b"value");
        let colon =
            json_text::skip_spaces(text, json_text::skip_quote(text, from + 5).filter(|_| name)?);
        (text.get(colon) == Some(&b':')).then(|| json_text::skip_spaces(text, colon + 1))
    };
    field().unwrap_or(end)
}

/// Returns the cookies in a list of objects that identify a session or login, and the end of the
/// list.
pub(super) fn cookie_list(text: &[u8], end: usize) -> (Vec<SecretFinding>, usize) {
    let mut found = Vec::new();
    let limit = text.len().min(end + MAX_SECRET_BYTES);
    let mut at = json_text::skip_spaces(text, end);
    if text.get(at) == Some(&b'{') {
        return cookie_fields(text, at + 1);
    }
    if text.get(at) != Some(&b'[') {
        return (found, end);
    }
    let (mut name, mut value): (Option<Range<usize>>, Option<Range<usize>>) = (None, None);
    // Reads field after field of each object. An array inside an object ends the list.
    while at < limit {
        at = json_text::skip_spaces(text, at + 1);
        let byte = text.get(at);
        if matches!(byte, Some(b'}')) {
            if let (Some(name), Some(value)) = (name.take(), value.take()) {
                found.extend(session_cookie(text, name, value));
            }
            continue;
        }
        if matches!(byte, Some(b'{' | b',')) {
            continue;
        }
        let Some((field, end)) = json_text::parse_string(text, at, limit) else { break };
        let colon = json_text::skip_spaces(text, end);
        if text.get(colon) != Some(&b':') {
            break;
        }
        let from = json_text::skip_spaces(text, colon + 1);
        let is_field = |known: &[u8]| text.get(field.clone()) == Some(known);
        match json_text::parse_string(text, from, limit) {
            Some((content, end)) => {
                if is_field(b"name") {
                    name = Some(content);
                } else if is_field(b"value") {
                    value = Some(content);
                }
                at = end - 1;
            }
            // `true`, `null` or a number.
            None => {
                let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
                at = from + run(text, from, 32, is_of_word) - 1;
            }
        }
    }
    work_counter::add(at - end.min(at));
    (found, at.max(end))
}

/// Returns the cookies in the fields of an object that identify a session or login, and the end of
/// the last field: `{"sid": "SECRET", 'theme': 'dark'}`.
fn cookie_fields(text: &[u8], from: usize) -> (Vec<SecretFinding>, usize) {
    let mut found = Vec::new();
    let limit = text.len().min(from + COOKIE_BYTES);
    let mut at = from;
    while at < limit {
        let name = json_text::skip_spaces(text, at);
        let name = name + run(text, name, 8, is_quote);
        let name = name..name + run(text, name, 64, is_of_cookie_name);
        let colon = name.end + run(text, name.end, 8, is_quote);
        let colon = json_text::skip_spaces(text, colon);
        if name.is_empty() || text.get(colon) != Some(&b':') {
            break;
        }
        let value = json_text::skip_spaces(text, colon + 1);
        let value = value + run(text, value, 8, is_quote);
        let value = value..value + run(text, value, 512, is_of_cookie);
        let end = value.end + run(text, value.end, 8, is_quote);
        // What is not closed by a quote is an expression.
        if end > value.end {
            found.extend(session_cookie(text, name, value));
        }
        let comma = json_text::skip_spaces(text, end);
        if text.get(comma) != Some(&b',') {
            return (found, end);
        }
        at = comma + 1;
    }
    (found, at)
}

/// Finds the value in a line of a file of cookies. The hint ends at the path:
/// `DOMAIN TRUE / FALSE EXPIRY NAME VALUE`, with tabs.
fn cookie_line(text: &[u8], end: usize) -> Option<SecretFinding> {
    let tab = |at: usize| match text.get(at..)? {
        [b'\t', ..] => Some(at + 1),
        [b'\\', b't', ..] => Some(at + 2),
        _ => None,
    };
    let is_of_path = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let secure = tab(end + run(text, end, 128, is_of_path))?;
    let expiry = tab(secure + run(text, secure, 5, |byte| byte.is_ascii_alphabetic()))?;
    let name = tab(expiry + run(text, expiry, 20, |byte| byte.is_ascii_digit()))?;
    let name = name..name + run(text, name, 64, is_of_cookie_name);
    let from = tab(name.end)?;
    let value = from..from + run(text, from, 512, is_of_cookie);
    session_cookie(text, name, value)
}

/// Returns the cookie with this name and value if it identifies a session or login.
fn session_cookie(text: &[u8], name: Range<usize>, value: Range<usize>) -> Option<SecretFinding> {
    (is_name_of_login(text.get(name)?) && is_session(text.get(value.clone())?))
        .then_some(SecretFinding { range: value, kind: COOKIE })
}

fn is_of_cookie_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

/// Returns the cookies of a header that identify a session or login, and the end of the header. The
/// value of the header may be a list: `["sid=SECRET; Path=/", "theme=dark"]`.
pub(super) fn cookies(text: &[u8], end: usize) -> (Vec<SecretFinding>, usize) {
    let mut found = Vec::new();
    let limit = text.len().min(end + COOKIE_BYTES);
    let opens =
        |at: usize| at + run(text, at, 8, |byte| is_quote(byte) || matches!(byte, b' ' | b'$'));
    let opened = opens(header_value(text, end));
    if text.get(opened) != Some(&b'[') {
        let end = cookie_pairs(text, opened, limit, &mut found);
        return (found, end.max(opened));
    }
    let mut at = opened + 1;
    while at < limit {
        let first = opens(json_text::skip_spaces(text, at));
        let end = cookie_pairs(text, first, limit, &mut found);
        // Attributes such as `HttpOnly` may follow, up to the closing quote.
        let closing = end + run(text, end, 256, |byte| byte >= b' ' && !is_quote(byte));
        let closed = closing + run(text, closing, 8, is_quote);
        let comma = json_text::skip_spaces(text, closed);
        if closed == closing || text.get(comma) != Some(&b',') {
            return (found, closed);
        }
        at = comma + 1;
    }
    (found, at)
}

/// Adds the cookies that begin at an offset and identify a session or login to `found`. Returns the
/// end of the cookies.
fn cookie_pairs(text: &[u8], mut at: usize, limit: usize, found: &mut Vec<SecretFinding>) -> usize {
    while at < limit {
        let name = at..at + run(text, at, 64, is_of_cookie_name);
        if text.get(name.end) != Some(&b'=') {
            break;
        }
        let from = name.end + 1;
        let value = from..from + run(text, from, limit - from.min(limit), is_of_cookie);
        found.extend(session_cookie(text, name, value.clone()));
        // A value may have other signs up to its semicolon; a quote ends the header.
        let others = match text.get(value.end) {
            Some(byte) if is_quote(*byte) => 0,
            _ => run(text, value.end, 256, |byte| byte > b' ' && byte != b';'),
        };
        let is_whole = text.get(value.end + others) == Some(&b';');
        let past = value.end + if is_whole { others } else { 0 };
        let gap = run(text, past, 4, |byte| matches!(byte, b';' | b' '));
        at = past + gap;
        if gap == 0 {
            break;
        }
        // An attribute with a value, such as `Path=/`, is skipped as a cookie that identifies
        // nothing. One without a value, such as `HttpOnly`, ends the header.
    }
    at
}

/// Returns whether a value is a name and a password in base64, as after `auth` in Docker's
/// configuration. A colon separates them or, in SASL, a zero byte that also begins the text.
pub(super) fn login_value(value: &[u8]) -> bool {
    let Some(decoded) = decode(value) else { return false };
    let (plain, sign) = match decoded.as_slice() {
        [0, plain @ ..] => (plain, 0),
        plain => (plain, b':'),
    };
    let Some(split) = plain.iter().position(|byte| *byte == sign) else { return false };
    let is_control = |next: char| next.is_control() && next != char::from(sign);
    let printable = std::str::from_utf8(plain).is_ok_and(|text| !text.chars().any(is_control));
    let password = plain.get(split + 1..).unwrap_or_default();
    // A key may be in the place of the name, without a password.
    if printable && password.is_empty() {
        return plain.get(..split).is_some_and(secret_heuristics::is_credential);
    }
    printable && split > 0 && password.len() >= 6 && !secret_heuristics::is_known_password(password)
}
