//! Makes the address of a database from its settings.

use super::error::AddressError;
use super::settings::ConnectSettings;
use super::{DatabaseAddress, Environment, HostConfig, home_file, text_of};
use crate::passfile::{PasswordFile, PasswordUse};
use crate::tls::{self, ClientFiles, TlsMode, TlsSettings, TrustedRoots};
use postgres::Config;
use postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default port of PostgreSQL.
const PORT: u16 = 5432;
/// The folders in which servers on this machine have their sockets: first the one of packages, then
/// the default of PostgreSQL itself.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// The default time limit of a connection attempt to one host.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long sent data may stay unacknowledged until the connection is given up.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection is idle before the first keepalive probe is sent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// The time between two keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// The number of unanswered keepalive probes after which the connection is given up.
const KEEPALIVE_RETRIES: u32 = 3;

/// Makes the address from its settings.
///
/// # Errors
/// [`AddressError::Setting`]; [`AddressError::Tls`].
pub(super) fn build(
    shown: String,
    settings: &ConnectSettings,
    environment: &Environment,
) -> Result<DatabaseAddress, AddressError> {
    let user = user(settings, environment)?;
    let database = settings.text("dbname").unwrap_or(&user);
    let hosts = hosts(settings)?;
    let tls = tls_settings(settings, environment)?;
    let limit = limit(settings)?;
    let mut common = Config::new();
    common
        .user(&user)
        .dbname(database)
        .application_name(settings.text("application_name").unwrap_or("forge"))
        .target_session_attrs(session_attributes(settings, hosts.len())?)
        .channel_binding(channel_binding(settings)?)
        .tcp_user_timeout(UNACKNOWLEDGED_LIMIT)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES);
    if let Some(options) = settings.text("options") {
        common.options(options);
    }
    if let Some(limit) = limit {
        // This limit is for one address of a host. A second address must get a part of the time.
        common.connect_timeout(limit / 2);
    }
    let given = settings.text("password");
    let passfile = if given.is_none() { passfile(settings, environment) } else { None };
    let configs = hosts.into_iter().map(|(host, port)| {
        let mut config = common.clone();
        let is_socket = host.starts_with('/');
        // PostgreSQL has no TLS on sockets.
        let mode = if is_socket { TlsMode::Disable } else { tls.mode };
        config.host(&host).port(port).ssl_mode(match mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        let is_usual = SOCKET_FOLDERS.contains(&host.as_str());
        let names = if is_usual { vec!["localhost", &host] } else { vec![host.as_str()] };
        let needed = PasswordUse { hosts: &names, port, database, user: &user };
        if let Some(password) = given {
            config.password(password);
        } else if let Some(password) = passfile.as_ref().and_then(|file| file.password(needed)) {
            config.password(password);
        }
        HostConfig { config, may_lack_tls: mode == TlsMode::Prefer }
    });
    let hosts = configs.collect();
    let passfile_ignored = match passfile {
        Some(PasswordFile::Ignored(path)) => Some(path),
        _ => None,
    };
    let tls = tls::connector(&tls)?;
    Ok(DatabaseAddress { shown, hosts, tls, limit, passfile_ignored })
}

fn user(settings: &ConnectSettings, environment: &Environment) -> Result<String, AddressError> {
    let of_system = || ["USER", "LOGNAME"].iter().find_map(|name| text_of(environment, name));
    settings.text("user").or_else(of_system).map(str::to_owned).ok_or_else(|| {
        let reason = "it is not known: write it before the host, as in postgres://USER@HOST, or \
                      set PGUSER";
        settings.wrong("user", reason)
    })
}

/// Returns each host with its port. A host that begins with `/` is the folder of a socket.
fn hosts(settings: &ConnectSettings) -> Result<Vec<(String, u16)>, AddressError> {
    let hosts: Vec<_> = settings.text("host").unwrap_or_default().split(',').collect();
    let ports: Vec<_> = settings.text("port").unwrap_or_default().split(',').collect();
    if ports.len() > 1 && ports.len() != hosts.len() {
        let (ports, hosts) = (ports.len(), hosts.len());
        let reason =
            format!("there are {ports} ports for {hosts} hosts: write one, or one for each");
        return Err(settings.wrong("port", reason));
    }
    let mut found = Vec::new();
    for (at, host) in hosts.into_iter().enumerate() {
        let port = match ports.get(at).or(ports.first()).map_or("", |port| port.trim()) {
            "" => PORT,
            text => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                settings.wrong("port", "it is not a number from 1 to 65535: correct it")
            })?,
        };
        let is_odd = |char: char| char.is_whitespace() || char.is_control() || "@?#".contains(char);
        let host = match host.trim_end_matches('/') {
            "" => default_host().to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            name if name.contains(is_odd) || name.contains('/') => {
                let reason = "it is neither a name, nor an IP address, nor the folder of a socket \
                              that begins with /: correct it";
                return Err(settings.wrong("host", reason));
            }
            name => name.to_owned(),
        };
        found.push((host, port));
    }
    Ok(found)
}

fn default_host() -> &'static str {
    if Path::new(SOCKET_FOLDERS[0]).is_dir() { SOCKET_FOLDERS[0] } else { "localhost" }
}

fn limit(settings: &ConnectSettings) -> Result<Option<Duration>, AddressError> {
    let Some(text) = settings.text("connect_timeout") else { return Ok(Some(CONNECT_LIMIT)) };
    let Ok(seconds) = text.trim().parse::<i32>() else {
        return Err(settings.wrong("connect_timeout", "it is not a number of seconds: correct it"));
    };
    // As in libpq, zero and less mean no limit.
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

fn session_attributes(
    settings: &ConnectSettings,
    hosts: usize,
) -> Result<TargetSessionAttrs, AddressError> {
    let name = "target_session_attrs";
    match settings.text(name) {
        // Of several hosts, all but one are usually standbys.
        None if hosts > 1 => Ok(TargetSessionAttrs::ReadWrite),
        None | Some("any") => Ok(TargetSessionAttrs::Any),
        Some("read-write" | "primary") => Ok(TargetSessionAttrs::ReadWrite),
        Some("read-only") => Ok(TargetSessionAttrs::ReadOnly),
        Some(_) => {
            let reason = "forge supports any, read-write, primary and read-only: use one of them";
            Err(settings.wrong(name, reason))
        }
    }
}

fn channel_binding(settings: &ConnectSettings) -> Result<ChannelBinding, AddressError> {
    match settings.text("channel_binding") {
        None | Some("prefer") => Ok(ChannelBinding::Prefer),
        Some("disable") => Ok(ChannelBinding::Disable),
        Some("require") => Ok(ChannelBinding::Require),
        Some(_) => {
            let reason = "it is none of disable, prefer and require: use one of them";
            Err(settings.wrong("channel_binding", reason))
        }
    }
}

fn passfile(settings: &ConnectSettings, environment: &Environment) -> Option<PasswordFile> {
    let named = settings.text("passfile").map(PathBuf::from);
    let path = named.or_else(|| home_file(environment, ".pgpass"))?;
    Some(PasswordFile::open(&path))
}

fn tls_settings(
    settings: &ConnectSettings,
    environment: &Environment,
) -> Result<TlsSettings, AddressError> {
    let at_home = |file| home_file(environment, file).filter(|path| path.exists());
    let roots = match settings.text("sslrootcert") {
        Some("system") => Some(TrustedRoots::System),
        Some(path) => Some(TrustedRoots::File(path.into())),
        None => at_home(".postgresql/root.crt").map(TrustedRoots::File),
    };
    let mode = match settings.text("sslmode") {
        None if roots == Some(TrustedRoots::System) => TlsMode::VerifyFull,
        None => TlsMode::Prefer,
        Some(text) => TlsMode::parse(text).ok_or_else(|| {
            let reason = "it is none of disable, allow, prefer, require, verify-ca and \
                          verify-full: use one of them";
            settings.wrong("sslmode", reason)
        })?,
    };
    if roots == Some(TrustedRoots::System)
        && !matches!(mode, TlsMode::Disable | TlsMode::VerifyFull)
    {
        let reason = "with sslrootcert=system, it must be verify-full, since the system trusts \
                      everybody's certificates: use verify-full";
        return Err(settings.wrong("sslmode", reason));
    }
    let client = match settings.text("sslcert").map(PathBuf::from) {
        Some(path) => Some(path),
        None => at_home(".postgresql/postgresql.crt"),
    };
    let client = client.map(|certificate| {
        let key = settings.text("sslkey").map(PathBuf::from);
        let key = key.or_else(|| home_file(environment, ".postgresql/postgresql.key"));
        ClientFiles { certificate, key: key.unwrap_or_default() }
    });
    Ok(TlsSettings { mode, roots, client })
}
