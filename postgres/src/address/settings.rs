//! The settings of a connection, with the origin of each.

use super::Environment;
use super::error::AddressError;
use crate::service;
use std::collections::BTreeMap;

/// A setting that libpq knows.
#[derive(Debug)]
pub(super) struct KnownSetting {
    /// The name in an address and in a service.
    pub(super) name: &'static str,
    /// The environment variable; empty if there is none.
    variable: &'static str,
    pub(super) support: SettingSupport,
}

/// How forge treats a setting.
#[derive(Debug)]
pub(super) enum SettingSupport {
    Used,
    /// forge ignores it: the connection is as safe without it.
    Ignored,
    /// forge refuses it, because the user relies on its effect. With these values it has none, and
    /// is ignored.
    Refused(&'static [&'static str]),
}

/// The origin of a setting. An earlier one takes precedence.
#[derive(Clone, Copy, Debug)]
enum SettingOrigin {
    Address,
    Service,
    Variable,
}

#[derive(Clone)]
struct SettingValue {
    text: String,
    origin: SettingOrigin,
}

/// The settings of a connection. As in libpq, a setting in the address takes precedence over the
/// service, and the service over the environment. They may contain a password, so they are never
/// shown.
#[derive(Clone, Default)]
pub(super) struct ConnectSettings(BTreeMap<&'static str, SettingValue>);

const fn used(name: &'static str, variable: &'static str) -> KnownSetting {
    KnownSetting { name, variable, support: SettingSupport::Used }
}

const fn refused(
    name: &'static str,
    variable: &'static str,
    except: &'static [&'static str],
) -> KnownSetting {
    KnownSetting { name, variable, support: SettingSupport::Refused(except) }
}

const fn ignored(name: &'static str) -> KnownSetting {
    KnownSetting { name, variable: "", support: SettingSupport::Ignored }
}

const KNOWN: [KnownSetting; 43] = [
    used("service", "PGSERVICE"),
    used("host", "PGHOST"),
    used("port", "PGPORT"),
    used("dbname", "PGDATABASE"),
    used("user", "PGUSER"),
    used("password", "PGPASSWORD"),
    used("passfile", "PGPASSFILE"),
    used("sslmode", "PGSSLMODE"),
    used("sslrootcert", "PGSSLROOTCERT"),
    used("sslcert", "PGSSLCERT"),
    used("sslkey", "PGSSLKEY"),
    used("channel_binding", "PGCHANNELBINDING"),
    used("target_session_attrs", "PGTARGETSESSIONATTRS"),
    used("connect_timeout", "PGCONNECT_TIMEOUT"),
    used("application_name", "PGAPPNAME"),
    used("options", "PGOPTIONS"),
    refused("hostaddr", "PGHOSTADDR", &[]),
    refused("gssencmode", "PGGSSENCMODE", &["disable", "prefer"]),
    refused("replication", "", &["false", "off", "no", "0"]),
    refused("require_auth", "PGREQUIREAUTH", &[]),
    refused("requirepeer", "PGREQUIREPEER", &[]),
    refused(
        "ssl_min_protocol_version",
        "PGSSLMINPROTOCOLVERSION",
        &["TLSv1", "TLSv1.1", "TLSv1.2"],
    ),
    refused("sslcrl", "PGSSLCRL", &[]),
    refused("sslcrldir", "PGSSLCRLDIR", &[]),
    refused("sslpassword", "", &[]),
    ignored("client_encoding"),
    ignored("fallback_application_name"),
    ignored("gssdelegation"),
    ignored("gsslib"),
    ignored("keepalives"),
    ignored("keepalives_count"),
    ignored("keepalives_idle"),
    ignored("keepalives_interval"),
    ignored("krbsrvname"),
    ignored("load_balance_hosts"),
    ignored("max_protocol_version"),
    ignored("min_protocol_version"),
    ignored("ssl_max_protocol_version"),
    ignored("sslcertmode"),
    ignored("sslcompression"),
    ignored("sslnegotiation"),
    ignored("sslsni"),
    ignored("tcp_user_timeout"),
];

/// Returns the setting with this name, if libpq has it.
pub(super) fn known(name: &str) -> Option<&'static KnownSetting> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Returns the names of the settings that forge uses and that an address may have.
pub(super) fn names_in_address() -> impl Iterator<Item = &'static str> {
    let used = KNOWN.iter().filter(|known| matches!(known.support, SettingSupport::Used));
    used.map(|known| known.name).filter(|name| *name != "password")
}

impl ConnectSettings {
    /// Adds the settings of the service and of the environment to the settings of an address. Empty
    /// values count as absent.
    ///
    /// # Errors
    /// [`AddressError::Service`]; [`AddressError::Setting`] for a setting that is refused.
    pub(super) fn gather(
        address: impl IntoIterator<Item = (&'static str, String)>,
        environment: &Environment,
    ) -> Result<Self, AddressError> {
        let mut found = Self::default();
        let mut of_address =
            address.into_iter().filter_map(|(name, text)| Some((known(name)?, text)));
        of_address.try_for_each(|(known, text)| found.add(known, &text, SettingOrigin::Address))?;
        let service = found.text("service").or_else(|| text_of(environment, "PGSERVICE"));
        if let Some(service) = service.map(str::to_owned) {
            for (name, text) in service::settings(&service, environment)? {
                let Some(known) = known(&name).filter(|known| known.name != "service") else {
                    let reason = format!(
                        "forge does not know its setting '{name}': correct or remove it, and write \
                         no space around the ="
                    );
                    return Err(AddressError::Service { name: service, reason });
                };
                found.add(known, &text, SettingOrigin::Service)?;
            }
        }
        for known in &KNOWN {
            if let Some(text) = text_of(environment, known.variable) {
                found.add(known, text, SettingOrigin::Variable)?;
            }
        }
        Ok(found)
    }

    /// Adds a setting, unless it has a value already.
    fn add(
        &mut self,
        known: &'static KnownSetting,
        text: &str,
        origin: SettingOrigin,
    ) -> Result<(), AddressError> {
        match known.support {
            _ if text.is_empty() => {}
            SettingSupport::Ignored => {}
            SettingSupport::Refused(except) if except.contains(&text) => {}
            SettingSupport::Refused(_) => {
                let setting = shown(known, origin);
                let reason = "forge does not support it: remove it".to_owned();
                return Err(AddressError::Setting { setting, reason });
            }
            SettingSupport::Used => {
                let value = || SettingValue { text: text.to_owned(), origin };
                self.0.entry(known.name).or_insert_with(value);
            }
        }
        Ok(())
    }

    /// Returns the value of a setting.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.text.as_str())
    }

    /// Makes the error for a setting that cannot be used.
    pub(super) fn wrong(&self, name: &str, reason: impl Into<String>) -> AddressError {
        let origin = self.0.get(name).map(|value| value.origin);
        let setting = match known(name).zip(origin) {
            Some((known, origin)) => shown(known, origin),
            None => format!("the setting '{name}'"),
        };
        AddressError::Setting { setting, reason: reason.into() }
    }
}

/// Returns the value of an environment variable; `None` if it is not set or empty.
pub(crate) fn text_of<'a>(environment: &'a Environment, variable: &str) -> Option<&'a str> {
    environment.get(variable).map(String::as_str).filter(|text| !text.is_empty())
}

fn shown(known: &KnownSetting, origin: SettingOrigin) -> String {
    match origin {
        SettingOrigin::Address => format!("'{}' in the address", known.name),
        SettingOrigin::Service => format!("'{}' in the service", known.name),
        SettingOrigin::Variable => format!("the variable {}", known.variable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_address_wins_over_the_service_and_the_service_over_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        fs::write(&file, "[team]\nhost=of-service\nport=5001\nkeepalives=0\nuser=\n").unwrap();
        let environment = environment(&[
            ("PGSERVICEFILE", file.to_str().unwrap()),
            ("PGSERVICE", "team"),
            ("PGHOST", "of-environment"),
            ("PGPORT", "5002"),
            ("PGUSER", "of-environment"),
            ("PGDATABASE", ""),
        ]);
        let found =
            ConnectSettings::gather([("host", "of-address".to_owned())], &environment).unwrap();
        let texts = ["host", "port", "user", "dbname", "keepalives"].map(|name| found.text(name));
        let expected = [Some("of-address"), Some("5001"), Some("of-environment"), None, None];
        assert_eq!(texts, expected);
        let error = |name| found.wrong(name, "x").to_string();
        assert!(error("host").contains("'host' in the address"), "{}", error("host"));
        assert!(error("port").contains("'port' in the service"), "{}", error("port"));
        assert!(error("user").contains("the variable PGUSER"), "{}", error("user"));
    }

    #[test]
    fn the_service_of_the_address_wins_over_that_of_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        fs::write(&file, "[one]\nhost=1\n[two]\nhost=2\n").unwrap();
        let environment =
            environment(&[("PGSERVICEFILE", file.to_str().unwrap()), ("PGSERVICE", "one")]);
        let host = |address: Vec<_>| {
            let found = ConnectSettings::gather(address, &environment).unwrap();
            found.text("host").map(str::to_owned)
        };
        assert_eq!(host(vec![]).as_deref(), Some("1"));
        assert_eq!(host(vec![("service", "two".to_owned())]).as_deref(), Some("2"));
    }

    #[test]
    fn a_setting_on_which_the_user_relies_is_refused() {
        for (variable, text, is_refused) in [
            ("PGREQUIREAUTH", "scram-sha-256", true),
            ("PGGSSENCMODE", "require", true),
            ("PGGSSENCMODE", "disable", false),
            ("PGSSLCRL", "/crl", true),
            ("PGSSLCRL", "", false),
            ("PGKEEPALIVES", "1", false),
        ] {
            let gathered = ConnectSettings::gather([], &environment(&[(variable, text)]));
            assert_eq!(gathered.is_err(), is_refused, "{variable}={text}");
            if let Err(error) = gathered {
                assert!(error.to_string().contains(&format!("the variable {variable}")), "{error}");
            }
        }
    }

    #[test]
    fn a_service_with_an_unknown_setting_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        fs::write(&file, "[a]\nhots=x\n[b]\nservice=a\n[c]\nhost = x\n").unwrap();
        for service in ["a", "b", "c"] {
            let environment =
                environment(&[("PGSERVICEFILE", file.to_str().unwrap()), ("PGSERVICE", service)]);
            let Err(error) = ConnectSettings::gather([], &environment) else {
                panic!("{service} is accepted");
            };
            assert!(error.to_string().contains("does not know its setting"), "{error}");
        }
    }
}
