//! Handshakes with certificates that are valid until 2125. `ISSUED` is for `db.example` and issued
//! by `ROOT`; `OWN` is for `own.example` and signed by itself, as in the manual of PostgreSQL.

use super::*;
use rustls::client::ClientConnection;
use rustls::server::{ClientHello, ResolvesServerCert, ServerConnection, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, crypto};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const ROOT: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUQ1WfMMzkHUKdrw9uXPyQceyFSfYwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJVGVzdCByb290MCAXDTI2MTEyODE0MDcwMFoYDzIxMjYxMTA0
MTQwNzAwWjAUMRIwEAYDVQQDDAlUZXN0IHJvb3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASNKz4lBpCNZk5AdA50x9XQ2ItKLjnykAMNDOJffO6KF2w2R3/N3duV
agOG7z9ytTY3Mf1lVG24bKDhLs1qptHAo1MwUTAdBgNVHQ4EFgQUx/OX5IpaK6xG
hHTHapqxlOX9fMcwHwYDVR0jBBgwFoAUx/OX5IpaK6xGhHTHapqxlOX9fMcwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA68sbX8kVwW6ceLMm9wbN
OjvU8odvxt1P24mKtszhUmQCIFwKM4DBK8fDfaI5RAj4to+Bz7vbDqC5NiFA64Po
1mha
-----END CERTIFICATE-----";
const ISSUED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBhjCCASygAwIBAgIUGgrYZxls73YTYHadNPdXUsymdcIwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJVGVzdCByb290MCAXDTI2MTEyODE0MDcwMFoYDzIxMjYxMTA0
MTQwNzAwWjAVMRMwEQYDVQQDDApkYi5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZI
zj0DAQcDQgAEVjOqyxTC0tGEkYNiFu9YkaMv03YngQyNjDqzVVm6zSorY7gT+NO+
D3Fzo0oZuzPU5T3zgb9hwVoZNPNbXIXZbaNZMFcwFQYDVR0RBA4wDIIKZGIuZXhh
bXBsZTAdBgNVHQ4EFgQUqYv0jjoVnX7Z65IcogOC0Ui/E18wHwYDVR0jBBgwFoAU
x/OX5IpaK6xGhHTHapqxlOX9fMcwCgYIKoZIzj0EAwIDSAAwRQIgHxizm3lQPAtl
aXkC5QX2VZhQNXUZiUsxje8IXjon8aUCIQDcRSUotPJWthEFxufw1vwBHeYnCeMZ
wsvPexA/nzfUkA==
-----END CERTIFICATE-----";
const OWN: &str = "\
-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUPGDXSR8xVUUOFfa6fTfxmpVREw4wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLb3duLmV4YW1wbGUwIBcNMjYxMTI4MTQwNzAwWhgPMjEyNjEx
MDQxNDA3MDBaMBYxFDASBgNVBAMMC293bi5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEVjOqyxTC0tGEkYNiFu9YkaMv03YngQyNjDqzVVm6zSorY7gT
+NO+D3Fzo0oZuzPU5T3zgb9hwVoZNPNbXIXZbaNrMGkwHQYDVR0OBBYEFKmL9I46
FZ1+2euSHKIDgtFIvxNfMB8GA1UdIwQYMBaAFKmL9I46FZ1+2euSHKIDgtFIvxNf
MA8GA1UdEwEB/wQFMAMBAf8wFgYDVR0RBA8wDYILb3duLmV4YW1wbGUwCgYIKoZI
zj0EAwIDRwAwRAIgSVKJOzOZE6x6BqN5YsUjGHgfWZF9vL5IBZhYn4+C4uYCIAi1
ERTBIc3UUZRtdKgiZadMkQEkVGBE+6DDOjVkJido
-----END CERTIFICATE-----";
/// The key of `ISSUED` and `OWN`.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgsYXMTKFL1U2dJdFg
jOooXMHbHIHTKr9wBjVZD1GdqyihRANCAARWM6rLFMLS0YSRg2IW71iRoy/TdieB
DI2MOrNVWbrNKitjuBP4074PcXOjShm7M9TlPfOBv2HBWhk081tchdlt
-----END PRIVATE KEY-----";
const OTHER_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/qC3HdOH5EZ3OP6C
jFrUy0ypDaRsakuZ1TVob+qnJTehRANCAARoZhxU83YUpdEpSafwRmHwRsu5KK8h
ZqyRLeBAAzge7b3r195I4B56c0NMPUG1IXXR1G90NauqRYfzhmRRKMTc
-----END PRIVATE KEY-----";

/// A server that shows a certificate, whether or not it has its key.
#[derive(Debug)]
struct ShownCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn server(certificate: &str, key: &str) -> ServerConfig {
    let provider = Arc::new(crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let shown = ShownCertificate(Arc::new(CertifiedKey::new(chain, key)));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown))
}

/// Makes a handshake in memory. Returns the first error of either side.
fn handshake(client: ClientConfig, server: ServerConfig, name: &str) -> Result<(), Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    let mut bytes = Vec::new();
    while client.wants_write() || server.wants_write() {
        bytes.clear();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

fn settings(mode: TlsMode, roots: Option<&Path>) -> TlsSettings {
    let roots = roots.map(|path| TrustedRoots::File(path.to_owned()));
    TlsSettings { mode, roots, client: None }
}

/// Writes files with these contents and modes.
fn files<const N: usize>(texts: [(&str, u32); N]) -> (tempfile::TempDir, [PathBuf; N]) {
    let folder = tempfile::tempdir().unwrap();
    let mut at = 0;
    let paths = texts.map(|(text, mode)| {
        at += 1;
        let path = folder.path().join(at.to_string());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    });
    (folder, paths)
}

fn error_of(settings: &TlsSettings) -> String {
    client_config(settings).unwrap_err().to_string()
}

#[test]
fn each_tls_mode_accepts_the_certificates_that_it_should() {
    use TlsMode::{Prefer, Require, VerifyCa, VerifyFull};
    let (_folder, [root, own]) = files([(ROOT, 0o644), (OWN, 0o644)]);
    let (root, own) = (Some(root.as_path()), Some(own.as_path()));
    for (mode, roots, certificate, name, is_accepted) in [
        (Prefer, None, OWN, "other.example", true),
        (Prefer, root, OWN, "other.example", true),
        (Require, None, OWN, "other.example", true),
        (Require, root, ISSUED, "other.example", true),
        (Require, root, OWN, "own.example", false),
        (VerifyCa, root, ISSUED, "other.example", true),
        (VerifyCa, root, ISSUED, "127.0.0.1", true),
        (VerifyCa, root, OWN, "own.example", false),
        (VerifyCa, own, OWN, "other.example", true),
        (VerifyCa, own, ISSUED, "db.example", false),
        (VerifyFull, root, ISSUED, "db.example", true),
        (VerifyFull, root, ISSUED, "other.example", false),
        (VerifyFull, root, OWN, "own.example", false),
        (VerifyFull, own, OWN, "own.example", true),
        (VerifyFull, own, OWN, "other.example", false),
    ] {
        let client = client_config(&settings(mode, roots)).unwrap();
        let result = handshake(client, server(certificate, KEY), name);
        assert_eq!(result.is_ok(), is_accepted, "{mode:?} {roots:?} {name}: {result:?}");
    }
}

#[test]
fn a_server_without_the_key_of_its_certificate_is_refused_in_each_mode() {
    let (_folder, [own]) = files([(OWN, 0o644)]);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (mode, roots) in [(TlsMode::Prefer, None), (TlsMode::VerifyFull, Some(own.as_path()))] {
            let client = client_config(&settings(mode, roots)).unwrap();
            let provider = Arc::clone(client.crypto_provider());
            let verifier = verifier(&settings(mode, roots), &provider).unwrap();
            let client = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_no_client_auth();
            handshake(client.clone(), server(OWN, KEY), "own.example").unwrap();
            let error = handshake(client, server(OWN, OTHER_KEY), "own.example").unwrap_err();
            let expected = Error::InvalidCertificate(CertificateError::BadSignature);
            assert_eq!(error, expected, "{mode:?}");
        }
    }
}

#[test]
fn a_certificate_that_is_no_longer_valid_is_refused() {
    let (_folder, [root, own]) = files([(ROOT, 0o644), (OWN, 0o644)]);
    let provider = Arc::new(crypto::ring::default_provider());
    let in_2200 = UnixTime::since_unix_epoch(std::time::Duration::from_secs(7_258_118_400));
    for (roots, certificate) in [(&root, ISSUED), (&own, OWN)] {
        let verifier = verifier(&settings(TlsMode::VerifyCa, Some(roots)), &provider).unwrap();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let name = ServerName::try_from("db.example").unwrap();
        let error =
            verifier.verify_server_cert(&certificate, &[], &name, &[], in_2200).unwrap_err();
        let is_expired = |error: &Error| {
            matches!(error, Error::InvalidCertificate(CertificateError::ExpiredContext { .. }))
        };
        assert!(is_expired(&error), "{error:?}");
    }
}

#[test]
fn a_server_may_ask_for_a_certificate() {
    let (_folder, [own, key, open_key]) = files([(OWN, 0o644), (KEY, 0o600), (KEY, 0o644)]);
    let mut used = settings(TlsMode::Require, None);
    used.client = Some(ClientFiles { certificate: own.clone(), key });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ROOT.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = vec![CertificateDer::from_pem_slice(OWN.as_bytes()).unwrap()];
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap())
        .unwrap();
    // The client sent its certificate, because the server says what is wrong with it.
    let sent = handshake(client_config(&used).unwrap(), server.clone(), "own.example");
    assert!(matches!(sent, Err(Error::InvalidCertificate(_))), "{sent:?}");
    let missing = client_config(&settings(TlsMode::Require, None)).unwrap();
    let missing = handshake(missing, server, "own.example");
    assert!(matches!(missing, Err(Error::NoCertificatesPresented)), "{missing:?}");

    used.client = Some(ClientFiles { certificate: own, key: open_key });
    let error = error_of(&used);
    assert!(error.contains("others may use the key") && error.contains("chmod 600"), "{error}");
    used.mode = TlsMode::Disable;
    client_config(&used).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_setting() {
    let damaged = "-----BEGIN CERTIFICATE-----\nhidden\n";
    let (folder, [own, other_key, empty, damaged]) =
        files([(OWN, 0o644), (OTHER_KEY, 0o600), ("hidden", 0o600), (damaged, 0o600)]);
    let missing = folder.path().join("missing");
    let client = |certificate: &Path, key: &Path| {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        let client = Some(ClientFiles { certificate, key });
        TlsSettings { client, ..settings(TlsMode::Require, None) }
    };
    let roots = |path: &Path| settings(TlsMode::VerifyFull, Some(path));
    for (settings, expected) in [
        (roots(&missing), "cannot read sslrootcert"),
        (roots(&empty), "it has none in PEM"),
        (roots(&damaged), "it is damaged; correct sslrootcert"),
        (client(&missing, &other_key), "cannot read sslcert"),
        (client(&own, &missing), "cannot read sslkey"),
        (client(&own, &empty), "it has none in PEM"),
        (client(&own, &other_key), "check sslcert and sslkey"),
        (settings(TlsMode::VerifyCa, None), "name the root certificate by sslrootcert"),
    ] {
        let error = error_of(&settings);
        assert!(error.contains(expected) && !error.contains("hidden"), "{error}");
    }
}

/// Regression: a key file was cut at the limit.
#[test]
fn a_key_file_that_is_too_large_is_refused() {
    let (_folder, [certificate, key]) = files([(OWN, 0o644), (KEY, 0o600)]);
    fs::File::options().write(true).open(&key).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    let client = Some(ClientFiles { certificate, key });
    let error = error_of(&TlsSettings { client, ..settings(TlsMode::Require, None) });
    assert!(error.contains("cannot read sslkey") && error.contains("at most"), "{error}");
}

#[test]
fn modes_have_the_names_of_libpq() {
    for (text, expected) in [
        ("disable", Some(TlsMode::Disable)),
        ("allow", Some(TlsMode::Prefer)),
        ("prefer", Some(TlsMode::Prefer)),
        ("require", Some(TlsMode::Require)),
        ("verify-ca", Some(TlsMode::VerifyCa)),
        ("verify-full", Some(TlsMode::VerifyFull)),
        ("verify", None),
        ("", None),
    ] {
        assert_eq!(TlsMode::parse(text), expected, "{text}");
    }
}
