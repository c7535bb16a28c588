//! Observes the requests of `object_store`. Its errors lack facts that the contract of a depot
//! needs: whether a write may have happened, what the storage answered, and the time of its clock.

use chrono::DateTime;
use forge_store::Timestamp;
use forge_store::store::remote::MAX_DEPOT_OBJECT_BYTES;
use futures_util::StreamExt as _;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use http_body_util::Limited;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The maximum size of an answer in bytes: the largest object, with some room.
const MAX_ANSWER_BYTES: usize = MAX_DEPOT_OBJECT_BYTES + (1 << 20);
/// The hosts that give the credentials of the machine, or of its container or pod. A bucket can
/// have the name of a part of their paths. The host of the storage is not known here:
/// `object_store` makes it from its settings.
const METADATA_HOSTS: [&str; 6] = [
    "169.254.169.254", "[fd00:ec2::254]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
    "metadata.google.internal",
];
/// The maximum number of bytes that are read of an answer that reports an error.
const MAX_ERROR_BYTES: usize = 64 << 10;

tokio::task_local! {
    /// What was seen of the requests of the running call. It is not set outside of [`observed`].
    static SEEN: Arc<Mutex<CallRecord>>;
}

/// What was seen of the requests of one call of a depot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallRecord {
    /// Whether a request was begun, even if it could not be sent.
    pub(crate) has_begun: bool,
    /// Whether the last request was to a service that gives credentials, not to the storage.
    pub(crate) for_credentials: bool,
    /// Whether the last request has no answer yet.
    pub(crate) is_waiting: bool,
    /// Whether the storage may have done what a request asked for, although its answer was an error
    /// or was lost.
    pub(crate) maybe_done: bool,
    /// The status of the last answer, unless the last request got none.
    pub(crate) status: Option<StatusCode>,
    /// The code of the last error, such as `NoSuchBucket`; empty if the answer has none.
    pub(crate) code: String,
    /// How long the storage asks to wait, in its last answer.
    pub(crate) retry_after: Option<Duration>,
    /// The time of the storage's clock, in its last answer.
    pub(crate) date: Option<Timestamp>,
    /// Whether a removed object was only hidden by a delete marker.
    pub(crate) left_versions: bool,
}

impl CallRecord {
    /// Returns whether the storage refused the last request because it has too many.
    pub(crate) fn is_busy(&self) -> bool {
        self.status == Some(StatusCode::TOO_MANY_REQUESTS)
            || self.status == Some(StatusCode::SERVICE_UNAVAILABLE)
                && ["SlowDown", "ServerBusy"].contains(&self.code.as_str())
    }

    /// Returns whether the last answer says that the bucket does not exist.
    pub(crate) fn lacks_bucket(&self) -> bool {
        ["NoSuchBucket", "ContainerNotFound"].contains(&self.code.as_str())
    }

    fn begin(&mut self, for_credentials: bool) {
        self.has_begun = true;
        self.for_credentials = for_credentials;
        self.is_waiting = true;
        self.status = None;
        self.code.clear();
    }

    fn fail(&mut self, kind: HttpErrorKind) {
        self.is_waiting = false;
        self.maybe_done |= !self.for_credentials && kind != HttpErrorKind::Connect;
    }

    fn answer(&mut self, status: StatusCode, headers: &HeaderMap, body: &[u8]) {
        self.is_waiting = false;
        self.status = Some(status);
        self.code = error_code(headers, body);
        if self.for_credentials {
            return;
        }
        self.retry_after = text(headers, &RETRY_AFTER)
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs);
        let date = text(headers, &DATE).and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        self.date = date.map(|date| date.to_utc().into());
        self.left_versions |= headers.get("x-amz-delete-marker").is_some();
        let refused = status == StatusCode::NOT_IMPLEMENTED || self.is_busy();
        let is_open = status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT;
        self.maybe_done |= is_open && !refused;
    }
}

/// Runs a call and returns what was seen of its requests.
pub(crate) async fn observed<T>(call: impl Future<Output = T>) -> (T, CallRecord) {
    let seen = Arc::new(Mutex::new(CallRecord::default()));
    let result = SEEN.scope(Arc::clone(&seen), call).await;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (result, seen)
}

/// Changes what was seen of the running call, and returns it.
pub(crate) fn look(change: impl FnOnce(&mut CallRecord)) -> CallRecord {
    let changed = SEEN.try_with(|seen| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut seen);
        seen.clone()
    });
    changed.unwrap_or_default()
}

/// Makes clients whose requests are observed.
#[derive(Debug)]
pub(crate) struct ObservedConnector {
    pub(crate) bucket: String,
}

impl HttpConnector for ObservedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(ObservedClient { client, bucket: self.bucket.clone() }))
    }
}

#[derive(Debug)]
struct ObservedClient {
    client: HttpClient,
    bucket: String,
}

#[async_trait::async_trait]
impl HttpService for ObservedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let for_credentials = !names_bucket(request.uri(), &self.bucket);
        look(|seen| seen.begin(for_credentials));
        let response = self.client.execute(request).await.inspect_err(|error| {
            look(|seen| seen.fail(error.kind()));
        })?;
        let (parts, body) = response.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            let body = beginning(body).await;
            look(|seen| seen.answer(parts.status, &parts.headers, &body));
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        look(|seen| seen.answer(parts.status, &parts.headers, &[]));
        Ok(HttpResponse::from_parts(parts, limited(body)))
    }
}

/// Returns whether a request is to the storage: its host is none of [`METADATA_HOSTS`], and begins
/// with the name of the bucket, or that is one of the first two parts of its path.
fn names_bucket(uri: &Uri, bucket: &str) -> bool {
    let host = uri.host().unwrap_or_default();
    if METADATA_HOSTS.contains(&host) {
        return false;
    }
    let is_in_host = host.strip_prefix(bucket).is_some_and(|rest| rest.starts_with('.'));
    is_in_host || uri.path().split('/').take(3).any(|part| part == bucket)
}

/// Reads the beginning of an answer that reports an error, up to a failure to read it.
async fn beginning(body: HttpResponseBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = body.bytes_stream();
    while let Some(Ok(part)) = stream.next().await {
        let room = MAX_ERROR_BYTES.saturating_sub(bytes.len());
        bytes.extend(part.iter().take(room));
        if bytes.len() >= MAX_ERROR_BYTES {
            break;
        }
    }
    // `object_store` reads it as UTF-8.
    String::from_utf8_lossy(&bytes).into_owned().into_bytes()
}

/// Limits an answer to [`MAX_ANSWER_BYTES`]: a longer one fails while it is read.
fn limited(body: HttpResponseBody) -> HttpResponseBody {
    use http_body_util::BodyExt as _;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| match error.downcast() {
        Ok(error) => *error,
        Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
    };
    HttpResponseBody::new(Limited::new(body, MAX_ANSWER_BYTES).map_err(failed))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the code of an error: from a header of Azure, or from the XML of other storages. Empty
/// if there is none.
fn error_code(headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(code) = text(headers, &HeaderName::from_static("x-ms-error-code")) {
        return code.to_owned();
    }
    let body = String::from_utf8_lossy(body);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map(|(code, _)| code.trim()).unwrap_or_default();
    let is_plain = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { code.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, code: &str) -> CallRecord {
        let mut seen = CallRecord::default();
        seen.begin(false);
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        seen.answer(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes());
        seen
    }

    #[test]
    fn a_write_may_have_happened_only_if_the_storage_did_not_refuse_it() {
        for (status, code, maybe_done) in [
            (200, "", false),
            (403, "AccessDenied", false),
            (412, "PreconditionFailed", false),
            (429, "", false),
            (500, "InternalError", true),
            (501, "NotImplemented", false),
            (503, "SlowDown", false),
            (503, "ServerBusy", false),
            (503, "", true),
            (408, "", true),
        ] {
            let seen = answered(status, code);
            assert_eq!((seen.maybe_done, &*seen.code), (maybe_done, code), "{status}");
        }
        for (kind, maybe_done) in [
            (HttpErrorKind::Connect, false),
            (HttpErrorKind::Request, true),
            (HttpErrorKind::Timeout, true),
            (HttpErrorKind::Unknown, true),
        ] {
            let mut seen = CallRecord::default();
            seen.begin(false);
            seen.fail(kind);
            assert_eq!(seen.maybe_done, maybe_done, "{kind:?}");
            // Later attempts do not change what an earlier one may have done.
            seen.begin(false);
            seen.answer(StatusCode::FORBIDDEN, &HeaderMap::new(), b"");
            assert_eq!(seen.maybe_done, maybe_done, "{kind:?}");
            let mut seen = CallRecord::default();
            seen.begin(true);
            seen.fail(kind);
            assert!(!seen.maybe_done, "{kind:?} of a service for credentials");
        }
    }

    #[test]
    fn an_address_with_the_bucket_is_distinguished_from_other_services() {
        for (uri, expected) in [
            ("https://s3.eu-west-1.amazonaws.com/team/forge", true),
            ("https://team.s3.eu-west-1.amazonaws.com/forge", true),
            ("http://127.0.0.1:10000/devstoreaccount1/team/forge", true),
            ("https://storage.googleapis.com/team?list-type=2", true),
            ("http://169.254.169.254/latest/api/token", false),
            ("https://sts.amazonaws.com/?Action=AssumeRole", false),
            ("https://teams.example.com/a", false),
        ] {
            assert_eq!(names_bucket(&uri.parse().unwrap(), "team"), expected, "{uri}");
        }
    }

    /// Regression: with a bucket of such a name, a write counted as possibly done if the credentials
    /// for it could not be read.
    #[test]
    fn a_bucket_named_like_a_path_to_credentials_is_not_confused_with_it() {
        for (uri, bucket, expected) in [
            ("http://169.254.169.254/latest/api/token", "latest", false),
            ("http://169.254.169.254/metadata/identity/oauth2/token", "metadata", false),
            ("http://169.254.170.2/v2/credentials/x", "v2", false),
            ("http://169.254.170.23/v1/credentials", "v1", false),
            ("http://[fd00:ec2::23]/v1/credentials", "v1", false),
            ("http://[fd00:ec2::254]/latest/api/token", "latest", false),
            ("http://metadata.google.internal/computeMetadata/v1/x", "metadata", false),
            ("https://latest.s3.eu-west-1.amazonaws.com/x", "latest", true),
            ("https://s3.eu-west-1.amazonaws.com/latest/x", "latest", true),
        ] {
            assert_eq!(names_bucket(&uri.parse().unwrap(), bucket), expected, "{uri}");
        }
    }

    #[test]
    fn the_clock_and_the_wait_are_read_from_an_answer() {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, "Fri, 27 Nov 2026 15:40:48 GMT".parse().unwrap());
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        let mut seen = CallRecord::default();
        seen.answer(StatusCode::OK, &headers, b"");
        assert_eq!(seen.date, Some(Timestamp::from_micros(1_795_794_048_000_000)));
        assert_eq!(seen.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn only_one_plain_word_is_read_as_an_error_code() {
        let headers = HeaderMap::new();
        assert_eq!(error_code(&headers, b"<Code> NoSuchKey </Code>"), "NoSuchKey");
        for body in [&b"<Code>No such\nkey</Code>"[..], b"<Code>", b"</Code><Code>", b"\xff"] {
            assert_eq!(error_code(&headers, body), "");
        }
    }
}
