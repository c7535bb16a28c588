use super::*;
use postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

/// Returns these variables, with `USER` and `PGSYSCONFDIR`, so that no configuration file of this
/// machine is read.
fn environment(variables: &[(&str, &str)]) -> Environment {
    let defaults = [("USER", "me"), ("PGSYSCONFDIR", "/nowhere")];
    let all = defaults.iter().chain(variables);
    all.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn parsed(address: &str, variables: &[(&str, &str)]) -> DatabaseAddress {
    DatabaseAddress::parse(address, &environment(variables)).unwrap()
}

fn refused(address: &str, variables: &[(&str, &str)]) -> String {
    DatabaseAddress::parse(address, &environment(variables)).unwrap_err().to_string()
}

/// Returns the targets of an address, each as `user@host:port/database`.
fn targets(address: &DatabaseAddress) -> String {
    let shown = address.hosts.iter().map(|HostConfig { config, .. }| {
        let host = match &config.get_hosts()[0] {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let (user, database) = (config.get_user().unwrap(), config.get_dbname().unwrap());
        format!("{user}@{host}:{}/{database}", config.get_ports()[0])
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn passwords(address: &DatabaseAddress) -> Vec<Option<String>> {
    let passwords = address.hosts.iter().map(|host| host.config.get_password());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
    passwords.map(|password| password.map(text)).collect()
}

#[test]
fn missing_parts_of_an_address_come_from_the_environment() {
    let all = [("PGHOST", "env"), ("PGPORT", "1"), ("PGUSER", "you"), ("PGDATABASE", "base")];
    for (address, variables, expected) in [
        ("postgres://h", &[][..], "me@h:5432/me"),
        ("postgres://h/t", &[("LOGNAME", "x")], "me@h:5432/t"),
        ("postgres://", &all, "you@env:1/base"),
        ("postgres://me@h:2/t", &all, "me@h:2/t"),
        ("postgres://h", &all, "you@h:1/base"),
        ("postgres:///t", &[("PGHOST", "a,b"), ("PGPORT", "1,")], "me@a:1/t me@b:5432/t"),
        ("postgres://a,b,[::1]:7/t", &[], "me@a:5432/t me@b:5432/t me@::1:7/t"),
        ("postgres://a,b/t", &[("PGPORT", "3")], "me@a:3/t me@b:3/t"),
        ("postgres:///t", &[("PGHOST", "/run/pg/")], "me@/run/pg:5432/t"),
        ("postgres:///t?host=/run/pg&port=9", &all, "you@/run/pg:9/t"),
        ("postgres://%2Frun%2Fpg/t", &[], "me@/run/pg:5432/t"),
    ] {
        assert_eq!(targets(&parsed(address, variables)), expected, "{address} {variables:?}");
    }
}

#[test]
fn the_default_host_is_this_machine() {
    let usual = Path::new("/var/run/postgresql");
    let host = if usual.is_dir() { "/var/run/postgresql" } else { "localhost" };
    assert_eq!(targets(&parsed("postgres:///t", &[])), format!("me@{host}:5432/t"));
    let list = targets(&parsed("postgres://a,/t", &[]));
    assert_eq!(list, format!("me@a:5432/t me@{host}:5432/t"));
}

#[test]
fn an_address_is_shown_without_the_environment() {
    let variables = [("PGHOST", "env"), ("PGPASSWORD", "hidden"), ("PGUSER", "you")];
    let address = parsed("postgresql:///team?sslmode=require", &variables);
    assert_eq!(address.shown(), "postgres:///team?sslmode=require");
    assert_eq!(passwords(&address), [Some("hidden".to_owned())]);
    let debug = format!("{address:?} {:?}", address.hosts[0].config);
    assert!(debug.contains("team") && !debug.contains("hidden"), "{debug}");
}

#[test]
fn connections_have_default_settings_that_can_be_changed() {
    let address = parsed("postgres://h/t", &[]);
    let config = &address.hosts[0].config;
    assert_eq!(address.limit, Some(Duration::from_secs(10)));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(5)));
    assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(30)));
    assert!(config.get_keepalives() && config.get_keepalives_idle() <= Duration::from_secs(60));
    assert_eq!(config.get_application_name(), Some("forge"));
    assert_eq!(config.get_options(), None);
    assert_eq!(config.get_ssl_mode(), SslMode::Prefer);
    assert_eq!(config.get_channel_binding(), ChannelBinding::Prefer);

    let variables = [("PGAPPNAME", "mine"), ("PGCONNECT_TIMEOUT", "4"), ("PGOPTIONS", "-c a=b")];
    let address = parsed("postgres://h/t?channel_binding=require", &variables);
    let config = &address.hosts[0].config;
    assert_eq!(address.limit, Some(Duration::from_secs(4)));
    assert_eq!(config.get_application_name(), Some("mine"));
    assert_eq!(config.get_options(), Some("-c a=b"));
    assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
    for unlimited in ["0", "-1"] {
        let address = parsed(&format!("postgres://h?connect_timeout={unlimited}"), &[]);
        assert_eq!((address.limit, address.hosts[0].config.get_connect_timeout()), (None, None));
    }
}

#[test]
fn with_several_hosts_a_writable_one_is_wanted() {
    let attributes = |address, variables: &[_]| {
        parsed(address, variables).hosts[0].config.get_target_session_attrs()
    };
    for (address, variable, expected) in [
        ("postgres://a/t", "", TargetSessionAttrs::Any),
        ("postgres://a,b/t", "", TargetSessionAttrs::ReadWrite),
        ("postgres://a,b/t", "any", TargetSessionAttrs::Any),
        ("postgres://a/t", "primary", TargetSessionAttrs::ReadWrite),
        ("postgres://a/t?target_session_attrs=read-only", "any", TargetSessionAttrs::ReadOnly),
    ] {
        let got = attributes(address, &[("PGTARGETSESSIONATTRS", variable)]);
        assert_eq!(got, expected, "{address} {variable}");
    }
}

#[test]
fn tls_is_configured_for_each_host() {
    let modes = |address, variables: &[_]| {
        let hosts = parsed(address, variables).hosts;
        hosts.iter().map(|host| (host.config.get_ssl_mode(), host.may_lack_tls)).collect::<Vec<_>>()
    };
    let (prefer, require, disable) =
        ((SslMode::Prefer, true), (SslMode::Require, false), (SslMode::Disable, false));
    assert_eq!(modes("postgres://h", &[]), [prefer]);
    assert_eq!(modes("postgres://h", &[("PGSSLMODE", "allow")]), [prefer]);
    assert_eq!(modes("postgres://h,%2Frun%2Fpg", &[("PGSSLMODE", "require")]), [require, disable]);
    assert_eq!(modes("postgres://h?sslmode=disable", &[("PGSSLMODE", "require")]), [disable]);
    // `require` does not read the root certificates of the system.
    let nowhere = ("SSL_CERT_FILE", "/nowhere");
    assert_eq!(modes("postgres://h?sslmode=require", &[nowhere]), [require]);
}

#[test]
fn root_certificates_are_found_in_the_home_folder() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".postgresql")).unwrap();
    fs::write(home.path().join(".postgresql/root.crt"), "none").unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = refused("postgres://h", &[home, ("PGSSLMODE", mode)]);
        assert!(error.contains("sslrootcert from") && error.contains("root.crt"), "{error}");
    }
    parsed("postgres://h", &[home]);
    for mode in ["prefer", "require", "verify-ca"] {
        let error = refused("postgres://h?sslrootcert=system", &[home, ("PGSSLMODE", mode)]);
        assert!(error.contains("use verify-full"), "{error}");
    }
}

#[test]
fn wrong_settings_are_refused_with_their_origin() {
    for (address, variable, text, expected) in [
        ("postgres://h:port", "X", "", "'port' in the address: it is not a number"),
        ("postgres://h:0", "X", "", "'port' in the address: it is not a number"),
        ("postgres://h", "PGPORT", "70000", "the variable PGPORT: it is not a number"),
        ("postgres://a,b,c", "PGPORT", "1,2", "there are 2 ports for 3 hosts"),
        ("postgres://h?sslmode=on", "X", "", "it is none of disable, allow"),
        ("postgres://h?channel_binding=x", "X", "", "it is none of disable, prefer"),
        ("postgres://h?connect_timeout=x", "X", "", "it is not a number of seconds"),
        ("postgres://h", "PGTARGETSESSIONATTRS", "standby", "read-write, primary"),
        ("postgres://h%20h", "X", "", "it is neither a name"),
        ("postgres://", "PGHOST", "@socket", "it is neither a name"),
        ("postgres://?service=none", "X", "", "there is none with this name"),
        ("postgres://h", "USER", "", "postgres://USER@HOST"),
    ] {
        let error = refused(address, &[(variable, text)]);
        assert!(error.contains(expected), "{address}: {error}");
    }
}

/// Creates a home folder with this `.pgpass`.
fn home_with(text: &str, mode: u32) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    home
}

#[test]
fn each_host_has_its_password() {
    let text =
        "a:5432:t:me:of-a\nb:1:*:*:of-b\nlocalhost:*:*:*:of-socket\n/run/pg:*:*:*:of-other\n";
    let home = home_with(text, 0o600);
    let home = ("HOME", home.path().to_str().unwrap());
    for (address, expected) in [
        ("postgres://a,b:1,c/t", &[Some("of-a"), Some("of-b"), None][..]),
        ("postgres://you@a/t", &[None]),
        ("postgres:///t?host=/var/run/postgresql,/tmp", &[Some("of-socket"), Some("of-socket")]),
        ("postgres:///t?host=/run/pg", &[Some("of-other")]),
        ("postgres://a/t?passfile=/nowhere", &[None]),
    ] {
        let address = parsed(address, &[home]);
        let expected: Vec<_> = expected.iter().map(|text| text.map(str::to_owned)).collect();
        assert_eq!(passwords(&address), expected, "{}", address.shown());
        assert_eq!(address.passfile_ignored(), None);
    }
    let given = passwords(&parsed("postgres://a/t", &[home, ("PGPASSWORD", "given")]));
    assert_eq!(given, [Some("given".to_owned())]);
}

#[test]
fn a_service_may_have_the_password() {
    let home = home_with("*:*:*:*:of-file", 0o600);
    let services = "[team]\nhost=db\nport=7\nuser=team\npassword=of-service\nsslmode=disable\n";
    fs::write(home.path().join(".pg_service.conf"), services).unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let address = parsed("postgres:///t?service=team", &[home, ("PGPASSWORD", "of-environment")]);
    assert_eq!(targets(&address), "team@db:7/t");
    assert_eq!(passwords(&address), [Some("of-service".to_owned())]);
    assert_eq!(address.shown(), "postgres:///t?service=team");
}

#[test]
fn an_ignored_file_of_passwords_is_reported() {
    let home = home_with("*:*:*:*:hidden", 0o644);
    let file = home.path().join(".pgpass");
    let named = home.path().join("named");
    fs::copy(&file, &named).unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let address = parsed("postgres://h/t", &[home]);
    assert_eq!(passwords(&address), [None]);
    assert_eq!(address.passfile_ignored(), Some(file.as_path()));
    let address = parsed("postgres://h/t", &[home, ("PGPASSFILE", named.to_str().unwrap())]);
    assert_eq!(address.passfile_ignored(), Some(named.as_path()));
    let address = parsed("postgres://h/t", &[home, ("PGPASSWORD", "given")]);
    assert_eq!(address.passfile_ignored(), None);
}

#[test]
fn the_next_host_is_tried_if_one_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The length of the message and the version of the protocol.
        let mut start = [0; 8];
        stream.read_exact(&mut start).unwrap();
        start
    });
    let hosts = format!("postgres://%2Fnowhere,127.0.0.1:{port}/t?sslmode=disable");
    assert!(parsed(&hosts, &[]).connect().is_err());
    assert_eq!(server.join().unwrap()[4..], [0, 3, 0, 0]);
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut address = parsed(&format!("postgres://127.0.0.1:{port}/t"), &[]);
    address.limit = Some(Duration::from_millis(20));
    let error = address.connect().err().unwrap().to_string();
    assert!(error.contains("timeout"), "{error}");
}
