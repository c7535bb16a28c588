//! Reads PostgreSQL's file of passwords, by default `~/.pgpass`.

use forge_store::plain_file;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The maximum size of a file of passwords, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The bits of a file's mode by which others than its owner may use it.
const FOR_OTHERS: u32 = 0o077;

/// A file of passwords, as far as it can be used. Its contents are never shown.
pub(crate) enum PasswordFile {
    /// There is no file, or it cannot be read or is too large.
    Missing,
    /// The file is ignored, because its mode allows others than its owner to use it.
    Ignored(PathBuf),
    /// The contents of the file.
    Read(Vec<u8>),
}

/// The connection that a password is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PasswordUse<'a> {
    /// The names of the host; a line may have any of them.
    pub(crate) hosts: &'a [&'a str],
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

impl PasswordFile {
    /// Reads a file of passwords.
    pub(crate) fn open(path: &Path) -> Self {
        let Ok(file) = plain_file::open(path) else { return Self::Missing };
        let Ok(about) = file.metadata() else { return Self::Missing };
        if about.permissions().mode() & FOR_OTHERS != 0 {
            return Self::Ignored(path.to_owned());
        }
        let mut text = Vec::new();
        match file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text) {
            Ok(_) if text.len() as u64 <= MAX_FILE_BYTES => Self::Read(text),
            _ => Self::Missing,
        }
    }

    /// Returns the password of the first line that is for this use.
    pub(crate) fn password(&self, needed: PasswordUse<'_>) -> Option<Vec<u8>> {
        let Self::Read(text) = self else { return None };
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.find_map(|line| password_in(line.strip_suffix(b"\r").unwrap_or(line), needed))
    }
}

/// Reads a line: `hostname:port:database:username:password`.
fn password_in(line: &[u8], needed: PasswordUse<'_>) -> Option<Vec<u8>> {
    if line.starts_with(b"#") {
        return None;
    }
    let mut rest = line;
    let mut next = || {
        let (part, after) = LinePart::read(rest);
        rest = after?;
        Some(part)
    };
    let port = needed.port.to_string();
    let is_for_use = is_one_of(&next()?, needed.hosts)
        && is_one_of(&next()?, &[&port])
        && is_one_of(&next()?, &[needed.database])
        && is_one_of(&next()?, &[needed.user]);
    // The password ends at the next colon.
    let password = is_for_use.then(|| LinePart::read(rest).0.text);
    password.filter(|password| !password.is_empty())
}

/// A part of a line, without its escapes.
struct LinePart {
    text: Vec<u8>,
    /// Whether it is `*`, without an escape.
    is_any: bool,
}

impl LinePart {
    /// Reads up to a colon, or to the end. A byte after a backslash is part of the text, also a
    /// colon. If there is a colon, what follows it is returned too.
    fn read(line: &[u8]) -> (Self, Option<&[u8]>) {
        let mut text = Vec::new();
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            match (byte, line.get(at + 1)) {
                (b':', _) => break,
                (b'\\', Some(&escaped)) => {
                    text.push(escaped);
                    at += 1;
                }
                _ => text.push(byte),
            }
            at += 1;
        }
        let (read, after) = line.split_at(at);
        (Self { text, is_any: read == b"*" }, after.strip_prefix(b":"))
    }
}

fn is_one_of(part: &LinePart, names: &[&str]) -> bool {
    part.is_any || names.iter().any(|name| name.as_bytes() == part.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PasswordFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = PasswordFile::open(&path);
        (folder, opened)
    }

    fn found(text: &str, needed: PasswordUse<'_>) -> Option<String> {
        let password = file(text, 0o600).1.password(needed);
        password.map(|password| String::from_utf8(password).unwrap())
    }

    const NEEDED: PasswordUse<'static> =
        PasswordUse { hosts: &["host"], port: 5432, database: "team", user: "me" };

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        for (text, expected) in [
            ("host:5432:team:me:one\nhost:5432:team:me:two\n", Some("one")),
            ("other:5432:team:me:one\nhost:5432:team:me:two", Some("two")),
            ("host:5433:team:me:one\nhost:5432:teams:me:two\nhost:5432:team:m:three\n", None),
            ("*:*:*:*:any\nhost:5432:team:me:one\n", Some("any")),
            ("*:*:*:you:no\n*:*:team:*:yes\r\n", Some("yes")),
            ("# host:5432:team:me:one\n#*:*:*:*:any\n", None),
            ("\n\nhost:5432:team:me:one", Some("one")),
            ("host:5432:team:me\nhost:5432:team\n:::\n", None),
            ("host:5432:team:me:\n", None),
            ("host*:5432:team:me:one\n", None),
            (r"\*:5432:team:me:one", None),
            ("", None),
        ] {
            assert_eq!(found(text, NEEDED).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_backslash_escapes_a_colon_and_a_backslash() {
        for (text, expected) in [
            (r"host:5432:team:me:a\:b\\c", Some(r"a:b\c")),
            (r"host:5432:team:me:a\", Some(r"a\")),
            (r"host:5432:team:me:a\b", Some("ab")),
            ("host:5432:team:me:a:b", Some("a")),
            (r"h\ost:5432:te\am:me:one", Some("one")),
        ] {
            assert_eq!(found(text, NEEDED).as_deref(), expected, "{text}");
        }
        let odd = PasswordUse { hosts: &["::1"], database: r"a:b\c", user: "*", ..NEEDED };
        assert_eq!(found(r"\:\:1:5432:a\:b\\c:\*:one", odd).as_deref(), Some("one"));
        assert_eq!(found(r"::1:5432:a\:b\\c:\*:one", odd), None);
    }

    #[test]
    fn a_host_may_have_several_names() {
        let socket = PasswordUse { hosts: &["localhost", "/run/pg"], ..NEEDED };
        assert_eq!(found("localhost:5432:team:me:one", socket).as_deref(), Some("one"));
        assert_eq!(found("/run/pg:5432:team:me:two", socket).as_deref(), Some("two"));
        assert_eq!(found("localhost:5432:team:me:one", NEEDED), None);
    }

    #[test]
    fn a_password_need_not_be_utf8() {
        let read = PasswordFile::Read(b"*:*:*:*:\xff\xfe\n".to_vec());
        assert_eq!(read.password(NEEDED).unwrap(), b"\xff\xfe");
    }

    #[test]
    fn a_file_that_others_may_read_is_ignored() {
        for mode in [0o640, 0o604, 0o620, 0o610, 0o644] {
            let (folder, opened) = file("*:*:*:*:one", mode);
            assert_eq!(opened.password(NEEDED), None);
            let expected = folder.path().join("pgpass");
            assert!(matches!(opened, PasswordFile::Ignored(path) if path == expected), "{mode:o}");
        }
        assert!(matches!(file("", 0o400).1, PasswordFile::Read(_)));
    }

    #[test]
    fn a_missing_password_file_gives_no_password() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), &folder.path().join("missing"), Path::new("/dev/null")] {
            assert!(matches!(PasswordFile::open(path), PasswordFile::Missing), "{path:?}");
        }
    }
}
