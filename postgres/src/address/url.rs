//! Parses the text of an address into settings, and writes settings as an address.

use super::error::{AddressError, malformed};
use super::settings::{SettingSupport, known, names_in_address};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// The schemes of addresses. forge writes the first one.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The characters that are percent-encoded in a user, host, port or database.
const IN_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that are percent-encoded in the value of a setting.
const IN_SETTING: &AsciiSet = &IN_NAME.remove(b'/').remove(b',').remove(b':');

/// The settings that an address gives, by their names in libpq.
pub(super) type UrlSettings = BTreeMap<&'static str, String>;

/// Returns whether a text is meant to be the address of a database: it begins with `postgres://` or
/// `postgresql://`. It may still be wrong.
#[must_use]
pub fn is_address(text: &str) -> bool {
    after_scheme(text).is_some()
}

fn after_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme))
}

/// Parses an address. The errors show no part of the address that can be a password.
///
/// # Errors
/// [`AddressError::HasPassword`]; [`AddressError::Malformed`].
pub(super) fn parse(address: &str) -> Result<UrlSettings, AddressError> {
    let Some(rest) = after_scheme(address) else {
        return Err(malformed("it begins with neither postgres:// nor postgresql://"));
    };
    let mut found = UrlSettings::new();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    if database.contains('@') || query.contains('@') && !authority.contains('@') {
        return Err(malformed(
            "it has an @ after a / or a ?: write %40, %2F and %3F for these characters in names, \
             and leave out a password",
        ));
    }
    let hosts = match authority.rsplit_once('@') {
        Some((user, hosts)) => {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            if !password.is_empty() {
                return Err(AddressError::HasPassword);
            }
            add(&mut found, "user", decoded(user, "the user")?)?;
            hosts
        }
        None => authority,
    };
    add_hosts(&mut found, hosts)?;
    add(&mut found, "dbname", decoded(database, "the database")?)?;
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let Some((name, text)) = setting.split_once('=') else {
            return Err(malformed("a setting after the ? has no value: write it as name=value"));
        };
        add_setting(&mut found, name, text)?;
    }
    Ok(found)
}

fn add_hosts(found: &mut UrlSettings, text: &str) -> Result<(), AddressError> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for host in text.split(',') {
        let (host, port) = if let Some(rest) = host.strip_prefix('[') {
            let end = rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok());
            let Some((host, port)) = end else {
                return Err(malformed("what is in [ ] is not an IPv6 address: correct it"));
            };
            let Some(port) = port.strip_prefix(':').or_else(|| port.is_empty().then_some(""))
            else {
                return Err(malformed("write only the port after [ ], as in [::1]:5432"));
            };
            (host.to_owned(), port)
        } else {
            let (host, port) = host.split_once(':').unwrap_or((host, ""));
            (decoded(host, "a host")?, port)
        };
        hosts.push(host);
        ports.push(port);
    }
    if hosts.len() > 1 || hosts.iter().any(|host| !host.is_empty()) {
        add(found, "host", hosts.join(","))?;
    }
    if ports.iter().any(|port| !port.is_empty()) {
        add(found, "port", ports.join(","))?;
    }
    Ok(())
}

fn add_setting(found: &mut UrlSettings, name: &str, text: &str) -> Result<(), AddressError> {
    let lower = name.to_ascii_lowercase();
    let is_secret = ["passw", "pwd", "secret"].iter().any(|word| lower.contains(word));
    if is_secret || lower == "pass" {
        return Err(AddressError::HasPassword);
    }
    // JDBC addresses have this setting; libpq reads it in the same way.
    if (name, text) == ("ssl", "true") {
        return add(found, "sslmode", "require".to_owned());
    }
    let name = decoded(name, "a setting")?;
    match known(&name) {
        Some(known) if matches!(known.support, SettingSupport::Used) => {
            add(found, known.name, decoded(text, known.name)?)
        }
        _ => {
            let names: Vec<_> = names_in_address().collect();
            let name = utf8_percent_encode(&name, IN_NAME);
            let names = names.join(", ");
            Err(malformed(format!(
                "forge does not support its setting '{name}': leave it out; those it supports are \
                 {names}"
            )))
        }
    }
}

/// Adds a setting, unless its value is empty.
fn add(found: &mut UrlSettings, name: &'static str, text: String) -> Result<(), AddressError> {
    if text.is_empty() {
        return Ok(());
    }
    match found.insert(name, text) {
        None => Ok(()),
        Some(_) => Err(malformed(format!("it says '{name}' twice: leave one out"))),
    }
}

/// Replaces each `%` and its two hexadecimal digits by the byte. `what` is the subject of errors.
fn decoded(text: &str, what: &str) -> Result<String, AddressError> {
    let wrong = |why: &str| Err(malformed(format!("{what} {why}")));
    let mut parts = text.split('%');
    parts.next();
    for part in parts {
        let digits = part.as_bytes().get(..2).unwrap_or_default();
        if digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return wrong("has a % that begins no character: write %25 for a % itself");
        }
    }
    let Ok(text) = percent_decode_str(text).decode_utf8() else {
        return wrong("is not in UTF-8: write it so");
    };
    if text.contains('\0') {
        return wrong("has a zero byte: leave it out");
    }
    Ok(text.into_owned())
}

/// Writes settings as an address, in the form in which forge shows and stores addresses.
pub(super) fn shown(settings: &UrlSettings) -> String {
    let mut shown = SCHEMES[0].to_owned();
    let text = |name: &str| settings.get(name).map_or("", String::as_str);
    if !text("user").is_empty() {
        let _ = write!(shown, "{}@", utf8_percent_encode(text("user"), IN_NAME));
    }
    let hosts: Vec<_> = text("host").split(',').collect();
    let ports: Vec<_> = text("port").split(',').collect();
    // The folder of a socket is easier to read as a setting. Ports also become a setting if their
    // number is not that of the hosts.
    let in_place = !text("host").contains('/') && (ports == [""] || ports.len() == hosts.len());
    if in_place {
        for (at, host) in hosts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = match host.contains(':') {
                true => write!(shown, "{comma}[{host}]"),
                false => write!(shown, "{comma}{}", utf8_percent_encode(host, IN_NAME)),
            };
            if let Some(port) = ports.get(at).filter(|port| !port.is_empty()) {
                let _ = write!(shown, ":{}", utf8_percent_encode(port, IN_NAME));
            }
        }
    }
    if !text("dbname").is_empty() {
        let _ = write!(shown, "/{}", utf8_percent_encode(text("dbname"), IN_NAME));
    }
    let mut separator = '?';
    for (name, text) in settings {
        let is_shown = match *name {
            "user" | "dbname" => true,
            "host" | "port" => in_place,
            _ => false,
        };
        if !is_shown {
            let _ = write!(shown, "{separator}{name}={}", utf8_percent_encode(text, IN_SETTING));
            separator = '&';
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(address: &str) -> String {
        let settings = parse(address).unwrap();
        let lines: Vec<_> = settings.iter().map(|(name, text)| format!("{name}={text}")).collect();
        // The written address has the same settings.
        assert_eq!(parse(&shown(&settings)).unwrap(), settings, "{}", shown(&settings));
        lines.join(" ")
    }

    #[test]
    fn an_address_is_recognized_by_its_scheme() {
        assert!(is_address("postgres://") && is_address("postgresql://host/team"));
        assert!(!is_address("postgres:team") && !is_address("s3://team") && !is_address("/folder"));
    }

    #[test]
    fn settings_are_read_from_a_postgresql_address() {
        for (address, expected) in [
            ("postgres://", ""),
            ("postgres:///", ""),
            ("postgres://host", "host=host"),
            ("postgresql://me@host:5433/team", "dbname=team host=host port=5433 user=me"),
            ("postgres://me:@host/", "host=host user=me"),
            ("postgres://a,b:1,[::1]:2/team", "dbname=team host=a,b,::1 port=,1,2"),
            ("postgres://[fe80::1]", "host=fe80::1"),
            ("postgres://:5433/team", "dbname=team port=5433"),
            ("postgres://%2Frun%2Fpg:5433/team", "dbname=team host=/run/pg port=5433"),
            ("postgres:///team?host=/run/pg&port=5433", "dbname=team host=/run/pg port=5433"),
            ("postgres://a,b/team?port=1", "dbname=team host=a,b port=1"),
            ("postgres://m%40e@h/t%20m%2Fx%23", "dbname=t m/x# host=h user=m@e"),
            ("postgres://h/t#x", "dbname=t#x host=h"),
            ("postgres://?service=team", "service=team"),
            ("postgres://h/t?ssl=true", "dbname=t host=h sslmode=require"),
            (
                "postgres://h/t?sslmode=verify-full&&connect_timeout=3&sslrootcert=/a%20b",
                "connect_timeout=3 dbname=t host=h sslmode=verify-full sslrootcert=/a b",
            ),
            ("postgres://h/t?options=-c%20a%3Db&user=me", "dbname=t host=h options=-c a=b user=me"),
        ] {
            assert_eq!(settings_of(address), expected, "{address}");
        }
    }

    #[test]
    fn an_address_is_shown_in_one_form() {
        for (address, expected) in [
            ("postgresql://me:@h:5433/team?", "postgres://me@h:5433/team"),
            ("postgres://h/?dbname=team&user=me", "postgres://me@h/team"),
            ("postgres://%2Frun%2Fpg:1/t", "postgres:///t?host=/run/pg&port=1"),
            ("postgres:///t?port=1,2&host=a,::1", "postgres://a:1,[::1]:2/t"),
            ("postgres://a,b/t?port=1", "postgres:///t?host=a,b&port=1"),
            ("postgres://h/t\u{1b}?sslmode=require", "postgres://h/t%1B?sslmode=require"),
            ("postgres:///?service=team", "postgres://?service=team"),
        ] {
            assert_eq!(shown(&parse(address).unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        for address in [
            "postgres://me:hidden@host/team",
            "postgres://me:hid:den@host/team",
            "postgres://me:hid@den@host/team",
            "postgres://:hidden@host/team",
            "postgres://host/team?password=hidden",
            "postgres://host/team?PassWord=hidden",
            "postgres://host/team?sslpassword=hidden",
            "postgres://host/team?pass=hidden",
            "postgres://host/team?pwd=hidden",
        ] {
            let error = parse(address).unwrap_err();
            assert!(matches!(error, AddressError::HasPassword), "{address}: {error:?}");
            let message = error.to_string();
            assert!(message.contains("PGPASSWORD, ~/.pgpass or a service"), "{message}");
        }
    }

    #[test]
    fn another_address_is_refused_with_the_reason() {
        for (address, reason) in [
            ("", "neither postgres:// nor"),
            ("mysql://host", "neither postgres:// nor"),
            ("postgres://me:hid/den@host/team", "write %40, %2F and %3F"),
            ("postgres://me:hid?den@host/team", "write %40, %2F and %3F"),
            ("postgres://[hidden]/team", "not an IPv6 address"),
            ("postgres://[::1/team", "not an IPv6 address"),
            ("postgres://[::1]hidden/team", "only the port"),
            ("postgres://h/%hidden", "write %25"),
            ("postgres://h/hidden%", "write %25"),
            ("postgres://h/%00", "zero byte"),
            ("postgres://h/%FF", "UTF-8"),
            ("postgres://h/t?hidden", "name=value"),
            ("postgres://h/t?schema=hidden", "setting 'schema': leave it out"),
            ("postgres://h/t?hostaddr=hidden", "setting 'hostaddr': leave it out"),
            ("postgres://h/t?keepalives=hidden", "those it supports are service, host"),
            ("postgres://h/t?host=hidden", "'host' twice"),
        ] {
            let error = parse(address).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("hidden"), "{address}: {error}");
        }
    }
}
