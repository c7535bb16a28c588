//! Credentials in the headers of requests and in the commands and files of particular programs.

use super::byte_text::{decode, is_base64, is_letter_of_escape, run};
use super::name_cursor::NameCursor;
use super::{
    MAX_SECRET_BYTES, SecretFinding, TextForm, byte_text, private_key, secret_heuristics, short,
};
use std::ops::Range;

/// Where a credential is, given the text before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramPlace {
    /// After `Authorization` and a scheme.
    Authorization,
    /// In the 200 bytes after an access key id of AWS or after the name of a secret access key.
    AwsSecret,
    /// The next word: `vault login SECRET`.
    NextWord,
    /// After a name that indicates a secret, and a space: `setx NAME SECRET`.
    NamedWord,
    /// After a user and a slash, before `@`: `sqlplus NAME/SECRET@host`. A command needs no host.
    AfterSlash,
    /// After a user and a percent sign: `smbclient -U NAME%SECRET`.
    AfterPercent,
    /// Before the address of a server: `NAME:SECRET@tcp(host)`.
    BeforeHost,
    /// The last field of a line of `.pgpass`.
    LastField,
    /// In quotes: `PSK "SECRET"`.
    Quoted,
    /// After a user and a colon, with or without quotes: `npmAuthIdent: "NAME:SECRET"`.
    AfterColon,
    /// The lines of a private key after a header.
    KeyLines,
    /// A whole file with a private key, in base64, which begins with the hint.
    EncodedKey,
    /// Around the signature in a key of Azure: base64 with the signature at a fixed offset.
    AzureKey,
    /// A private number of a key in JSON or XML.
    KeyNumber,
    /// After the file and the user: `htpasswd -b FILE NAME SECRET`.
    ThirdWord,
}

/// Lower-case texts that are beside a credential of a program, or a part of it.
pub(super) const HINTS: &[(ProgramPlace, &[&str])] = &[
    (ProgramPlace::KeyLines, &["\nprivate-lines: ", "\\nprivate-lines: ", "encrypted secret key"]),
    (ProgramPlace::KeyLines, &["begin ssh2 encrypted private key ----"]),
    (ProgramPlace::EncodedKey, &["ls0tls1crudjti"]),
    (
        ProgramPlace::KeyNumber,
        &[
            "\"d\":", "\"k\":", "\"d\\\":", "\"k\\\":", "<d>", "<p>", "<q>", "<dp>", "<dq>",
            "<inverseq>",
        ],
    ),
    (
        ProgramPlace::AzureKey,
        &[
            "+ast", "+aba", "+amc", "acdb", "apim", "+asb", "+aeh", "+arm", "aiot", "azca", "azeg",
            "azdo", "+acr", "azse", "jqqj99",
        ],
    ),
    (ProgramPlace::Authorization, &["authorization"]),
    (
        ProgramPlace::AwsSecret,
        &["akia", "asia", "secret access key", "secretaccesskey", "secret_access_key"],
    ),
    (
        ProgramPlace::NextWord,
        &[
            "vault login ", "operator unseal ", "storepass ", "keypass ", "-passin pass:",
            "-passout pass:", "-pass pass:", "cbc -k ", "rsa -n ", "ed25519 -n ", "webdav pass ",
            "sftp pass ", " -hp", "cargo login ", "wandb login ", "snyk auth ", "bw unlock ",
            "vault encrypt_string ", "config set _auth ", ":_authtoken ",
            "github-oauth.github.com ",
        ],
    ),
    (
        ProgramPlace::NamedWord,
        &[
            "setx ", "setenv ", "set -x ", "set -gx ", "set -ux ", "set -lx ", "set --export ",
            "set-environment ", "fastcgi_param ", "consul kv put ", "etcdctl put ", "env ",
            "secrets set ", "env:set ", "env set ", "config set --secret ", "configure set ",
            "npm config set ", "yarn config set ", "wp config set ", "pulumi config set ",
            "conda config --set ",
        ],
    ),
    (
        ProgramPlace::AfterSlash,
        &[
            "sqlplus ", "sqlplus -s ", "sqlplus -l ", "impdp ", "expdp ", "thin:", "rman target ",
            "userid=",
        ],
    ),
    (ProgramPlace::AfterPercent, &["smbclient ", "rpcclient ", "net ads ", "net rpc "]),
    (ProgramPlace::BeforeHost, &["@tcp(", "@unix("]),
    (ProgramPlace::LastField, &[":5432:", ":*:"]),
    (ProgramPlace::Quoted, &[": psk "]),
    (
        ProgramPlace::AfterColon,
        &[
            "authident: ", "--proxy-user ", "--basic-auth ", " -auth ", "-creds ", "-creds=",
            "--cert ", "stats auth ", " -u",
        ],
    ),
    (ProgramPlace::ThirdWord, &["htpasswd -b "]),
];

/// Finds the credential next to a hint that spans `start` to `end`.
pub(super) fn find(
    text: &[u8],
    start: usize,
    end: usize,
    place: ProgramPlace,
    form: TextForm,
) -> Option<SecretFinding> {
    let quotes = |at: usize| at + run(text, at, 4, |byte| b"\"'\\".contains(&byte));
    let word = |at: usize| at..at + run(text, at, 128, is_of_word);
    let words = |at: usize| {
        let at = quotes(at);
        at + run(text, at, 128, |byte| byte.is_ascii_graphic() && !b"\"'".contains(&byte))
    };
    // Returns the offset after a user name and this sign.
    let after = |at: usize, sign: u8| {
        let from = quotes(at);
        let user =
            run(text, from, 64, |byte| byte.is_ascii_alphanumeric() || b"._-\\".contains(&byte));
        (user > 0 && text.get(from + user) == Some(&sign)).then_some(from + user + 1)
    };
    let range = match place {
        ProgramPlace::Authorization => return authorization(text, start, end, form),
        ProgramPlace::AzureKey => return azure_key(text, start, end),
        ProgramPlace::AwsSecret => return aws_secret(text, start, end),
        ProgramPlace::KeyLines => return private_key::lines_after(text, end, form),
        ProgramPlace::EncodedKey => return encoded_key(text, start),
        ProgramPlace::KeyNumber => return key_number(text, start, end),
        ProgramPlace::NextWord => word(quotes(end)),
        ProgramPlace::NamedWord => {
            let hint = text.get(start..end)?;
            // In capitals it is an instruction of a Dockerfile: `ENV NAME SECRET`.
            if hint.eq_ignore_ascii_case(b"env ")
                && (hint != b"ENV " || !byte_text::begins_word(text, start))
            {
                return None;
            }
            let name = end..end + run(text, end, 64, |byte| !byte.is_ascii_whitespace());
            let named = std::str::from_utf8(text.get(name.clone())?).ok()?;
            // The value of `NAME=SECRET` is found by its name.
            if named.contains('=') {
                return None;
            }
            super::named_value::kind_of(named)?;
            word(quotes(name.end + 1))
        }
        ProgramPlace::AfterSlash => before_at(text, start..end, after(end, b'/')?)?,
        ProgramPlace::AfterPercent => {
            let line = text.get(end..text.len().min(end + 96))?;
            let flag = line.windows(3).position(|three| three == b"-U ")?;
            word(after(end + flag + 3, b'%')?)
        }
        ProgramPlace::BeforeHost => {
            let before = text.get(start.saturating_sub(128)..start)?;
            let is_of_pair = |byte: &&u8| byte.is_ascii_graphic() && !b"\"'`<>=/".contains(byte);
            let count = before.iter().rev().take_while(is_of_pair).count();
            let pair = before.get(before.len() - count..)?;
            let colon = pair.iter().position(|byte| *byte == b':')?;
            start - count + colon + 1..start
        }
        ProgramPlace::LastField => {
            // Any port: then the host begins the line, as in no resource name of AWS.
            let before = text.get(start.saturating_sub(64)..start)?;
            let is_of_host = |byte: &&u8| byte.is_ascii_graphic() && !b"\"'`\\".contains(byte);
            let mut host = before.iter().rev().take_while(is_of_host);
            let any_port = text.get(start..end)? == b":*:";
            if any_port && host.any(|byte| *byte == b':') {
                return None;
            }
            let line = text.get(end..text.len().min(end + 256))?;
            let mut fields = line.split(|byte| matches!(byte, b'\n' | b'\\' | b'"' | b' '));
            let line = fields.next()?;
            let mut colons = line.iter().enumerate().filter(|(_, byte)| **byte == b':');
            let second = colons.nth(1)?.0;
            // A list of users has more fields.
            if any_port && colons.next().is_some() {
                return None;
            }
            end + second + 1..end + line.len()
        }
        ProgramPlace::Quoted => {
            let from = quotes(end);
            if from == end {
                return None;
            }
            word(from)
        }
        ProgramPlace::AfterColon => {
            let hint = text.get(start..end)?.to_ascii_lowercase();
            let is_of_curl = hint == b" -u" || hint == b"--cert ";
            if is_of_curl && !has_curl(text, start) {
                return None;
            }
            word(after(end, b':')?)
        }
        ProgramPlace::ThirdWord => word(quotes(words(words(end) + 1) + 1)),
    };
    let value = text.get(range.clone())?;
    (value.len() >= 6 && short::is_password(value))
        .then_some(SecretFinding { range, kind: "password" })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\\\"'`<>|".contains(&byte)
}

/// Returns the range from an offset to the last `@` of the word there, or to its end if the hint is
/// a command, which needs no `@HOST`. A path has a dot or another slash.
fn before_at(text: &[u8], hint: Range<usize>, from: usize) -> Option<Range<usize>> {
    let length = run(text, from, 128, is_of_word);
    let word = text.get(from..from + length)?;
    let is_local = text.get(hint)?.ends_with(b" ") && !word.iter().any(|it| b"./".contains(it));
    let end = word.iter().rposition(|byte| *byte == b'@').or(is_local.then_some(length))?;
    Some(from..from + end)
}

fn has_curl(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(96)..at).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    byte_text::contains(line, b"curl")
}

/// Finds the credential after `Authorization: SCHEME ` or `Authorization: `, except with the
/// schemes `Bearer`, `Basic` and `Digest`.
fn authorization(text: &[u8], start: usize, end: usize, form: TextForm) -> Option<SecretFinding> {
    if !byte_text::begins_word(text, start) {
        return None;
    }
    let gap = run(text, end, 10, |byte| b"\"'`\\:=, >]".contains(&byte));
    if gap == 0 {
        return None;
    }
    // A literal with letters before its quote: `headers["Authorization"] = f"Token SECRET"`.
    let mut cursor = NameCursor { text, at: end + gap, form };
    cursor.literal_prefix();
    cursor.quote();
    let from = cursor.at;
    let scheme = run(text, from, 24, |byte| byte.is_ascii_alphabetic() || byte == b'-');
    let known = text.get(from..from + scheme)?;
    let is_other = ["bearer", "basic", "digest"]
        .iter()
        .any(|other| known.eq_ignore_ascii_case(other.as_bytes()));
    // The name of the scheme has digits: `AWS4-HMAC-SHA256 Credential=...`.
    let is_of_aws = text.get(from..).is_some_and(|rest| rest.starts_with(b"AWS4-HMAC-"));
    if is_other || is_of_aws {
        return None;
    }
    let from = match text.get(from + scheme) {
        Some(b' ') if scheme > 1 => from + scheme + 1,
        _ => from,
    };
    // The first 256 bytes decide whether it is a credential.
    let read =
        |most: usize| run(text, from, most, |byte| is_base64(byte) || b".~:%".contains(&byte));
    let value = text.get(from..from + read(256))?;
    if !secret_heuristics::is_credential(value) && !secret_heuristics::is_uuid(value) {
        return None;
    }
    let range = from..from + read(MAX_SECRET_BYTES);
    Some(SecretFinding { range, kind: "credential" })
}

/// Finds the 40 base64 characters of a secret access key that begins within 200 bytes after the
/// hint.
fn aws_secret(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    const DISTANCE: usize = 200;
    let is_id = end - start == 4;
    if is_id {
        let id = run(text, start, 21, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if id != 20 || !byte_text::begins_word(text, start) {
            return None;
        }
    }
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let limit = end + DISTANCE;
    let mut at = end;
    while at < limit.min(text.len()) {
        // The letter of an escape is not part of the key: the `\t` of a table in JSON.
        let is_escape = is_letter_of_escape(text, at);
        at += usize::from(is_escape);
        let length = run(text, at, 64, is_of_key);
        let value = text.get(at..at + length)?;
        let begins = at
            .checked_sub(1)
            .and_then(|at| text.get(at))
            .is_none_or(|byte| is_escape || !is_base64(*byte) || *byte == b'=');
        let mixed = value.iter().any(u8::is_ascii_uppercase)
            && value.iter().any(u8::is_ascii_lowercase)
            && value.iter().any(u8::is_ascii_digit);
        let closed = !text.get(at + length).is_some_and(|byte| is_base64(*byte));
        if length == 40
            && begins
            && closed
            && mixed
            && secret_heuristics::entropy(value) > 4.0
            && !secret_heuristics::is_words(value)
            && !secret_heuristics::is_example(value)
        {
            return Some(SecretFinding { range: at..at + length, kind: "aws-secret-key" });
        }
        at += length.max(1);
    }
    None
}

/// Finds a private key whose whole file is in base64, on one line or several.
fn encoded_key(text: &[u8], start: usize) -> Option<SecretFinding> {
    const LINE: usize = 60;
    const BEGIN: &[u8] = b"LS0tLS1CRUdJTi";
    const ESCAPES: [&[u8]; 3] = [b"\\n", b"\\r\\n", b"\\\\n"];
    let title = text.get(start..start + 64)?;
    let plain = decode(title)?;
    if !title.starts_with(BEGIN) || !byte_text::contains(&plain, b"PRIVATE KEY") {
        return None;
    }
    let line = |at: usize| run(text, at, MAX_SECRET_BYTES, is_base64);
    let mut end = start + line(start);
    let mut length = end - start;
    while length >= LINE && end < start + MAX_SECRET_BYTES {
        let gap = run(text, end, 32, |byte| b" \t\r\n".contains(&byte));
        let escape = ESCAPES
            .iter()
            .find(|escape| text.get(end..).is_some_and(|rest| rest.starts_with(escape)));
        let next = end + escape.map_or(gap, |escape| escape.len());
        let more = if next > end { line(next) } else { 0 };
        let is_end = text.get(next + more).is_none_or(|byte| b"\r\n\\\"'".contains(byte));
        if more == 0 || !is_end {
            break;
        }
        (end, length) = (next + more, more);
    }
    Some(SecretFinding { range: start..end, kind: "private-key" })
}

/// Finds a private number: `d` or `k` of a JSON Web Key, or a number of an `RSAKeyValue` other than
/// its modulus and exponent.
fn key_number(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    const NEAR: usize = 600;
    /// The elements between the first prime and the end of an `RSAKeyValue` of 4,096 bits, with
    /// line breaks and indents.
    const ELEMENTS: usize = 2400;
    let gap = run(text, end, 6, |byte| b" \"\\".contains(&byte));
    let range = end + gap..end + gap + run(text, end + gap, 4096, is_base64);
    let value = text.get(range.clone())?;
    let is_number = value.len() >= 32
        && secret_heuristics::entropy(value) > 3.5
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_uppercase);
    if !is_number {
        return None;
    }
    let (word, ahead): (&[u8], usize) = match text.get(start) {
        Some(b'<') => (b"RSAKeyValue", ELEMENTS),
        _ => (b"kty", NEAR),
    };
    let near = text.get(start.saturating_sub(NEAR)..text.len().min(range.end + ahead))?;
    (byte_text::contains(near, word) && !secret_heuristics::is_example(value))
        .then_some(SecretFinding { range, kind: "private-key" })
}

/// Finds a key of Azure around its signature, such as `+ASt` of a storage account, `ACDb` of Cosmos
/// DB, `+ASb` of Service Bus, `AZDO` of DevOps, or `+ACR` of a container registry.
fn azure_key(text: &[u8], start: usize, end: usize) -> Option<SecretFinding> {
    let (before, length) = match text.get(start..end)? {
        b"+ASt" | b"+ABa" | b"+AMC" | b"ACDb" | b"APIM" => (76, 88),
        b"+ASb" | b"+AEh" | b"+ARm" | b"AIoT" | b"AzCa" | b"AZEG" => (33, 44),
        b"AZDO" => (76, 84),
        // Of Azure OpenAI and other services of AI.
        b"JQQJ99" => (52, 84),
        b"+ACR" | b"AzSe" => (42, 52),
        _ => return None,
    };
    let from = start.checked_sub(before)?;
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let is_whole = run(text, from, length + 1, is_of_key) == length
        && !from.checked_sub(1).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    let range = from..from + length;
    let value = text.get(range.clone())?;
    (is_whole && secret_heuristics::entropy(value) > 4.5)
        .then_some(SecretFinding { range, kind: "azure-key" })
}
