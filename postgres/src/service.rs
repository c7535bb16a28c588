//! The services of PostgreSQL: named settings in `~/.pg_service.conf`.

use crate::address::{AddressError, Environment, home_file, text_of};
use forge_store::plain_file;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The maximum size of a file of services, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The folder of the file for all users, unless `PGSYSCONFDIR` names another one. Debian's packages
/// of PostgreSQL use it.
const SYSTEM_FOLDER: &str = "/etc/postgresql-common";

/// Returns the settings of a service with their values, in the order of the file. Of two settings
/// with the same name, the first one counts. They may contain a password.
///
/// # Errors
/// [`AddressError::Service`].
pub(crate) fn settings(
    name: &str,
    environment: &Environment,
) -> Result<Vec<(String, String)>, AddressError> {
    let wrong = |reason| AddressError::Service { name: name.to_owned(), reason };
    let (own, must_exist) = match text_of(environment, "PGSERVICEFILE") {
        Some(path) => (Some(PathBuf::from(path)), true),
        None => (home_file(environment, ".pg_service.conf"), false),
    };
    let system = text_of(environment, "PGSYSCONFDIR").unwrap_or(SYSTEM_FOLDER);
    let system = Path::new(system).join("pg_service.conf");
    for (path, must_exist) in
        own.into_iter().map(|path| (path, must_exist)).chain([(system, false)])
    {
        let text = match plain_file::read(&path, MAX_FILE_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => continue,
            Err(error) => {
                let path = path.display();
                return Err(wrong(format!("cannot read {path}: {error}; check the file")));
            }
        };
        let Ok(text) = String::from_utf8(text) else {
            return Err(wrong(format!("{} is not in UTF-8: convert it", path.display())));
        };
        if let Some(found) = section(name, &text).map_err(|line| {
            let path = path.display();
            wrong(format!("line {line} of {path} is not written as name=value: correct it"))
        })? {
            return Ok(found);
        }
    }
    Err(wrong("there is none with this name: correct it, or add it to ~/.pg_service.conf".into()))
}

type ServiceSettings = Vec<(String, String)>;

/// Reads the first section with this name; `None` if there is none. The error is the number of a
/// wrong line.
fn section(name: &str, text: &str) -> Result<Option<ServiceSettings>, usize> {
    let mut found: Option<ServiceSettings> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            let is_section = section.strip_prefix(name).is_some_and(|rest| rest.starts_with(']'));
            found = is_section.then(Vec::new);
        } else if let Some(settings) = &mut found {
            // This also refuses `ldap://`, which asks a server for the settings.
            let (name, text) = line.split_once('=').ok_or(at + 1)?;
            if name.starts_with("ldap") {
                return Err(at + 1);
            }
            settings.push((name.to_owned(), text.to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TEXT: &str = "# comment\nhost=outside\n[team]\n  host=db.example.com \r\n\n# port=1\n\
                        password=a=b # c\nhost=second\n[team2]\nport=2\n[team]\nport=3\n\
                        [wrong]\nhidden\n[directory]\nldap://host/dc=x?hidden\n";

    fn lines_of(name: &str, text: &str) -> Option<String> {
        let found = section(name, text).unwrap()?;
        let lines: Vec<_> = found.iter().map(|(name, text)| format!("{name}={text}")).collect();
        Some(lines.join("|"))
    }

    #[test]
    fn a_section_has_the_settings_of_a_service() {
        let team = "host=db.example.com|password=a=b # c|host=second";
        assert_eq!(lines_of("team", TEXT).as_deref(), Some(team));
        assert_eq!(lines_of("team2", TEXT).as_deref(), Some("port=2"));
        assert_eq!(lines_of("tea", TEXT), None);
        assert_eq!(lines_of("team", ""), None);
        assert_eq!(lines_of("empty", "[empty]").as_deref(), Some(""));
    }

    fn environment(variables: &[(&str, &Path)]) -> Environment {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        variables.iter().map(|(name, path)| ((*name).to_owned(), text(path))).collect()
    }

    #[test]
    fn the_own_file_wins_over_that_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let (home, system) = (folder.path().join("home"), folder.path().join("system"));
        for (folder, file, text) in [
            (&home, ".pg_service.conf", "[both]\nhost=own\n"),
            (&system, "pg_service.conf", "[both]\nhost=system\n[only]\nhost=system\n"),
        ] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        }
        let environment = environment(&[("HOME", &home), ("PGSYSCONFDIR", &system)]);
        let host = |name| settings(name, &environment).unwrap()[0].1.clone();
        assert_eq!((host("both"), host("only")), ("own".to_owned(), "system".to_owned()));
        let error = settings("missing", &environment).unwrap_err().to_string();
        assert!(error.contains("'missing'") && error.contains("add it to"), "{error}");
    }

    #[test]
    fn a_named_file_replaces_the_own_one_and_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        fs::write(&file, TEXT).unwrap();
        fs::write(folder.path().join(".pg_service.conf"), "[other]\n").unwrap();
        let environment = environment(&[
            ("HOME", folder.path()),
            ("PGSYSCONFDIR", folder.path()),
            ("PGSERVICEFILE", &file),
        ]);
        assert_eq!(settings("team2", &environment).unwrap().len(), 1);
        assert!(settings("other", &environment).is_err());
        fs::remove_file(&file).unwrap();
        let error = settings("team2", &environment).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("services"), "{error}");
    }

    #[test]
    fn a_line_that_is_no_setting_is_named_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        fs::write(&file, TEXT).unwrap();
        let environment = environment(&[("PGSERVICEFILE", &file)]);
        for (name, line) in [("wrong", "line 14 of"), ("directory", "line 16 of")] {
            let error = settings(name, &environment).unwrap_err().to_string();
            assert!(error.contains(line) && !error.contains("hidden"), "{error}");
        }
    }
}
