//! TLS connections to a database, with rustls and the cryptography of ring.

use crate::address::AddressError;
use forge_store::plain_file;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The maximum size of a file with certificates or a key, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Whether TLS is used, and what is verified: the `sslmode` of libpq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Disable,
    /// TLS if the server supports it, without verification.
    Prefer,
    /// TLS. If a file of roots is given, verified like [`TlsMode::VerifyCa`].
    Require,
    /// TLS with a certificate that a root issued, for any name.
    VerifyCa,
    /// TLS with a certificate that a root issued for the name of the host.
    VerifyFull,
}

/// The root certificates that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustedRoots {
    System,
    /// A file in PEM.
    File(PathBuf),
}

/// The files of the client's certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub(crate) struct ClientFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// How TLS is used.
#[derive(Clone, Debug)]
pub(crate) struct TlsSettings {
    pub(crate) mode: TlsMode,
    /// The roots that the user named, or the file of roots in the home directory.
    pub(crate) roots: Option<TrustedRoots>,
    pub(crate) client: Option<ClientFiles>,
}

impl TlsMode {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            // Neither of them protects against an attacker, so both can mean the same.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

/// Creates the connector for TLS, and reads the files of the settings.
///
/// # Errors
/// [`AddressError::Tls`].
pub(crate) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect, AddressError> {
    client_config(settings).map(MakeRustlsConnect::new)
}

fn client_config(settings: &TlsSettings) -> Result<ClientConfig, AddressError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(settings, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(format!("{error}: report this as an error of forge")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match &settings.client {
        Some(files) if settings.mode != TlsMode::Disable => {
            let (certificates, key) = client_certificate(files)?;
            builder.with_client_auth_cert(certificates, key).map_err(|error| {
                let path = files.certificate.display();
                wrong(format!(
                    "cannot use the certificate in {path}: {error}; check sslcert and sslkey"
                ))
            })
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn verifier(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, AddressError> {
    let trust = match (settings.mode, &settings.roots) {
        (TlsMode::VerifyFull, None | Some(TrustedRoots::System)) => {
            let verifier = rustls_platform_verifier::Verifier::new(Arc::clone(provider));
            let verifier = verifier.map_err(|error| {
                wrong(format!("{error}: name a file with the root certificates by sslrootcert"))
            })?;
            return Ok(Arc::new(verifier));
        }
        (TlsMode::VerifyCa, None | Some(TrustedRoots::System)) => {
            let reason = "verify-ca with the certificates of the system would accept a certificate \
                          of any server: name the root certificate by sslrootcert, or use \
                          verify-full";
            return Err(wrong(reason));
        }
        (
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull,
            Some(TrustedRoots::File(path)),
        ) => {
            let for_name = settings.mode == TlsMode::VerifyFull;
            CertificateTrust::Issued { by: RootCertificates::read(path)?, for_name }
        }
        (TlsMode::Disable | TlsMode::Prefer | TlsMode::Require, _) => CertificateTrust::Any,
    };
    let algorithms = provider.signature_verification_algorithms;
    Ok(Arc::new(ServerVerifier { trust, algorithms }))
}

fn wrong(reason: impl Into<String>) -> AddressError {
    AddressError::Tls { reason: reason.into() }
}

/// The root certificates in a file.
#[derive(Debug)]
struct RootCertificates {
    all: Vec<CertificateDer<'static>>,
    store: RootCertStore,
}

impl RootCertificates {
    fn read(path: &Path) -> Result<Self, AddressError> {
        let all = certificates(path, "sslrootcert")?;
        let mut store = RootCertStore::empty();
        for certificate in &all {
            store.add(certificate.clone()).map_err(|error| {
                let path = path.display();
                wrong(format!("a certificate in {path} cannot be used: {error}; check sslrootcert"))
            })?;
        }
        Ok(Self { all, store })
    }
}

fn certificates(path: &Path, setting: &str) -> Result<Vec<CertificateDer<'static>>, AddressError> {
    let text = plain_file::read(path, MAX_FILE_BYTES)
        .map_err(|error| unreadable(path, setting, &pem::Error::Io(error)))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unreadable(path, setting, &pem::Error::NoItemsFound)),
        Err(error) => Err(unreadable(path, setting, &error)),
    }
}

/// Creates the error of a file that cannot be used. The error shows no content of the file.
fn unreadable(path: &Path, setting: &str, error: &pem::Error) -> AddressError {
    let what = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it has none in PEM that is not encrypted".to_owned(),
        _ => "it is damaged".to_owned(),
    };
    wrong(format!("cannot read {setting} from {}: {what}; correct {setting}", path.display()))
}

type ClientCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_certificate(files: &ClientFiles) -> Result<ClientCertificate, AddressError> {
    let chain = certificates(&files.certificate, "sslcert")?;
    let (path, setting) = (&files.key, "sslkey");
    let (text, open_to_others) =
        read_key(path).map_err(|error| unreadable(path, setting, &pem::Error::Io(error)))?;
    if open_to_others {
        let path = path.display();
        return Err(wrong(format!("others may use the key in {path}: run chmod 600 {path}")));
    }
    let key = PrivateKeyDer::from_pem_slice(&text);
    Ok((chain, key.map_err(|error| unreadable(path, setting, &error))?))
}

/// Reads a file with a key. Also returns whether other users may use the file.
fn read_key(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let file = plain_file::open(path)?;
    let about = file.metadata()?;
    // Like libpq: if the file belongs to root, its group may read it.
    let forbidden = if about.uid() == 0 { 0o037 } else { 0o077 };
    Ok((plain_file::read_opened(file, MAX_FILE_BYTES)?, about.mode() & forbidden != 0))
}

/// Which certificates of a server are accepted.
#[derive(Debug)]
enum CertificateTrust {
    Any,
    Issued { by: RootCertificates, for_name: bool },
}

/// Verifies a server as the `sslmode` requires. In every mode, the server must prove that it has
/// the key of its certificate.
#[derive(Debug)]
struct ServerVerifier {
    trust: CertificateTrust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let CertificateTrust::Issued { by, for_name } = &self.trust {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            match verify_server_cert_signed_by_trust_anchor(
                &certificate, &by.store, intermediates, now, self.algorithms.all,
            ) {
                Ok(()) => {}
                // A self-signed certificate is usually the certificate of an authority, which
                // rustls does not accept as the certificate of a server. It is trusted here if the
                // file contains it. rustls verifies its dates before it returns this error.
                Err(Error::InvalidCertificate(CertificateError::Other(_)))
                    if by.all.contains(end_entity) => {}
                Err(error) => return Err(error),
            }
            if *for_name {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
