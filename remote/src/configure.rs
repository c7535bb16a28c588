//! Configures the client of a storage by environment variables. They have the names that the tools
//! of each provider use.

use crate::Environment;
use crate::address::{DepotAddress, StorageKind, invalid_address};
use crate::observe::ObservedConnector;
use crate::profile;
use forge_store::error::DepotError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, HeaderValue, ObjectStore, RetryConfig,
};
use std::sync::Arc;
use std::time::Duration;

/// How long an idle connection is kept. Servers close it after about 20 seconds.
const IDLE: Duration = Duration::from_secs(10);
/// The maximum number of repetitions of a request that failed.
const RETRIES: usize = 4;

/// Makes the client for an address. Nothing is sent.
///
/// # Errors
/// [`DepotError::InvalidAddress`] if the environment is wrong; [`DepotError::Refused`] or
/// [`DepotError::Unavailable`] if the AWS profile cannot be used.
pub(crate) fn client(
    address: &DepotAddress,
    environment: &Environment,
    limit: Duration,
) -> Result<Arc<dyn ObjectStore>, DepotError> {
    choose_tls();
    let made = match address.kind {
        StorageKind::S3 => s3(address, environment, limit)?,
        StorageKind::Google => google(address, environment, limit),
        StorageKind::Azure => azure(address, environment, limit)?,
    };
    made.map_err(|error| invalid_address(address, format!("{error}: see docs/remote-storage.md")))
}

/// Makes `ring` the provider of cryptography for TLS in this process, unless one is chosen already.
fn choose_tls() {
    let _chosen_before = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the options of a client. A connection attempt takes at most two fifths of the limit, and
/// is not repeated after one fifth: a machine that does not answer is reported within the limit.
fn client_options(limit: Duration) -> ClientOptions {
    ClientOptions::new()
        .with_user_agent(HeaderValue::from_static("forge"))
        .with_timeout_disabled()
        .with_connect_timeout(limit * 2 / 5)
        .with_pool_idle_timeout(IDLE)
}

fn retries(limit: Duration) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: limit / 10,
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: limit / 5,
    }
}

fn connector(address: &DepotAddress) -> ObservedConnector {
    ObservedConnector { bucket: address.bucket.clone() }
}

type MadeClient = Result<Arc<dyn ObjectStore>, object_store::Error>;

fn s3(
    address: &DepotAddress,
    environment: &Environment,
    limit: Duration,
) -> Result<MadeClient, DepotError> {
    let mut builder = AmazonS3Builder::new()
        .with_client_options(client_options(limit))
        .with_retry(retries(limit))
        .with_http_connector(connector(address));
    let mut settings = settings(environment, "AWS_");
    settings.extend(profile::settings(environment)?);
    for (name, value) in settings {
        let Ok(key) = name.parse() else { continue };
        let is_endpoint =
            matches!(key, AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint);
        if is_endpoint && may_lack_tls(address, environment, &value, "AWS_ALLOW_HTTP")? {
            let allow = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
            builder = builder.with_config(allow, "true");
        }
        builder = builder.with_config(key, value);
    }
    // Only the answer to a single removal says whether the bucket keeps versions of the object.
    let built = builder.with_bucket_name(&address.bucket).with_disable_bulk_delete(true).build();
    Ok(built.map(|client| Arc::new(client) as Arc<dyn ObjectStore>))
}

fn google(address: &DepotAddress, environment: &Environment, limit: Duration) -> MadeClient {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_client_options(client_options(limit))
        .with_retry(retries(limit))
        .with_http_connector(connector(address));
    if let Some(path) = environment.get("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (name, value) in settings(environment, "GOOGLE_") {
        if let Ok(key) = name.parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    builder.with_bucket_name(&address.bucket).build().map(|client| Arc::new(client) as _)
}

fn azure(
    address: &DepotAddress,
    environment: &Environment,
    limit: Duration,
) -> Result<MadeClient, DepotError> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_client_options(client_options(limit))
        .with_retry(retries(limit))
        .with_http_connector(connector(address));
    if let Some(endpoint) = environment.get("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    let mut has_account = false;
    for (name, value) in settings(environment, "AZURE_") {
        let Ok(key) = name.parse() else { continue };
        has_account |= matches!(key, AzureConfigKey::AccountName | AzureConfigKey::UseEmulator);
        if matches!(key, AzureConfigKey::Endpoint)
            && may_lack_tls(address, environment, &value, "AZURE_ALLOW_HTTP")?
        {
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_config(key, value);
    }
    if !has_account {
        let reason = "the storage account is not known: set AZURE_STORAGE_ACCOUNT_NAME";
        return Err(invalid_address(address, reason));
    }
    let built = builder.with_container_name(&address.bucket).build();
    Ok(built.map(|client| Arc::new(client) as Arc<dyn ObjectStore>))
}

/// Returns the variables that begin with `prefix`, with their names in lower case.
fn settings(environment: &Environment, prefix: &str) -> Vec<(String, String)> {
    let of_provider = environment.iter().filter(|(name, _)| name.starts_with(prefix));
    of_provider.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
}

/// Returns whether an endpoint has no TLS.
///
/// # Errors
/// [`DepotError::InvalidAddress`] if it has no TLS, is on another machine, and the variable does
/// not permit that.
fn may_lack_tls(
    address: &DepotAddress,
    environment: &Environment,
    endpoint: &str,
    variable: &str,
) -> Result<bool, DepotError> {
    if !endpoint.starts_with("http://") || is_on_this_machine(endpoint) {
        return Ok(endpoint.starts_with("http://"));
    }
    if environment.get(variable).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(true);
    }
    let reason = format!("{endpoint} has no TLS: use https://, or set {variable}=true");
    Err(invalid_address(address, reason))
}

/// Returns whether an endpoint has no TLS and is on this machine, where no other machine can
/// listen.
fn is_on_this_machine(endpoint: &str) -> bool {
    let Some(rest) = endpoint.strip_prefix("http://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    // In `http://localhost:80@example.com` the user name `localhost` hides the real host.
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |name: &str| {
        host.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
    };
    ["127.0.0.1", "localhost", "[::1]"].into_iter().any(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn made(address: &str, variables: &[(&str, &str)]) -> Result<String, DepotError> {
        let address = DepotAddress::parse(address).unwrap();
        let mut environment = environment(variables);
        // The AWS profile of the user who runs this test is not read.
        environment.insert("AWS_CONFIG_FILE".to_owned(), "/dev/null".to_owned());
        environment.insert("AWS_SHARED_CREDENTIALS_FILE".to_owned(), "/dev/null".to_owned());
        let client = client(&address, &environment, Duration::from_secs(1))?;
        Ok(format!("{client}"))
    }

    #[test]
    fn each_kind_of_storage_has_its_client() {
        assert_eq!(made("s3://team/a", &[]).unwrap(), "AmazonS3(team)");
        let plain = [("AWS_ENDPOINT_URL", "http://10.0.0.1"), ("AWS_ALLOW_HTTP", "true")];
        assert_eq!(made("s3://team/a", &plain).unwrap(), "AmazonS3(team)");
        let azure = [("AZURE_STORAGE_ACCOUNT_NAME", "acme")];
        assert!(made("az://team", &azure).unwrap().contains("team"));
        let google = [("GOOGLE_BEARER_TOKEN", "x")];
        assert!(made("gs://team", &google).unwrap().contains("team"));
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        for (address, variables, expected) in [
            ("az://team", &[][..], "set AZURE_STORAGE_ACCOUNT_NAME"),
            ("s3://team", &[("AWS_ACCESS_KEY_ID", "a")], "ecret"),
            ("gs://team", &[("GOOGLE_SERVICE_ACCOUNT", "/missing/file")], "/missing/file"),
            ("s3://team", &[("AWS_ENDPOINT_URL", "http://10.0.0.1")], "set AWS_ALLOW_HTTP=true"),
            (
                "s3://team",
                &[("AWS_ENDPOINT_URL", "http://localhost:9000@storage.example/")],
                "set AWS_ALLOW_HTTP=true",
            ),
        ] {
            let error = made(address, variables).unwrap_err();
            assert!(matches!(error, DepotError::InvalidAddress { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_may_be_used_without_tls() {
        for endpoint in ["http://127.0.0.1:8333", "http://localhost", "http://[::1]:1/a"] {
            assert!(is_on_this_machine(endpoint), "{endpoint}");
        }
        for endpoint in [
            "https://127.0.0.1",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
            "http://localhost:9000@example.com/",
            "http://127.0.0.1:@example.com",
            "http://[::1]:9000\\@example.com",
            "http://localhost@example.com",
        ] {
            assert!(!is_on_this_machine(endpoint), "{endpoint}");
        }
    }
}
