//! Messages over HTTP, only for clients on this machine: the address is a loopback address, a
//! request must name this server as its host (and as its origin, if it has one), and must have the
//! token. A client that sends too slowly is disconnected.

use crate::error::CommandError;
use crate::text::hex;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

pub const PATH: &str = "/mcp";
/// The maximum size of a message, in bytes.
const BODY_BYTES: usize = super::line_transport::LINE_BYTES;
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The host names under which a client may address this server.
pub const OWN_HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What authorises a client.
#[derive(Clone, Debug)]
pub enum AccessToken {
    Bearer(Arc<str>),
    /// Nothing; only for a server without private data.
    None,
}

impl AccessToken {
    /// Generates a random token.
    pub fn new() -> Result<Self, CommandError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            CommandError::internal("the system gives no random numbers")
                .caused_by(error.to_string())
        })?;
        Ok(Self::Bearer(hex(&bytes).into()))
    }
}

/// Listens on this address, which must be a loopback address.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CommandError> {
    if !address.ip().is_loopback() {
        return Err(CommandError::invalid(format!("{address} can be reached from other machines"))
            .hinted("name a loopback address, such as 127.0.0.1:8765"));
    }
    let failed = |error: std::io::Error| {
        CommandError::io(&format!("cannot listen on {address}"), error)
            .hinted("name another port, or 0 for a free one")
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// The time limits, and the maximum number of clients.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The time limit for the head of a request, also for each further request of a connection.
    pub header: Duration,
    /// The time limit for its body.
    pub body: Duration,
    /// The maximum number of connections.
    pub connections: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        let (header, body) = (Duration::from_secs(10), Duration::from_secs(10));
        Self { header, body, connections: 64 }
    }
}

/// Returns the router of a server at this address. The service is at [`PATH`].
pub fn router<S: ServerHandler + Clone>(
    server: S,
    address: SocketAddr,
    token: AccessToken,
    limits: HttpLimits,
) -> Router {
    let port = address.port();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES)
        .with_allowed_hosts(OWN_HOSTS.map(|host| format!("{host}:{port}")))
        .with_allowed_origins(OWN_HOSTS.map(|host| format!("http://{host}:{port}")))
        .enforce_origin_validation();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state((token, limits), check_token))
}

/// Serves until `stop` completes, and then until the open requests are answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: HttpLimits,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let free = Arc::new(Semaphore::new(limits.connections));
    let (ending, ended) = watch::channel(false);
    let mut running = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &free) => accepted,
        };
        while running.try_join_next().is_some() {}
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut ended = ended.clone();
        running.spawn(async move {
            let _place = place;
            tokio::pin!(connection);
            let done = tokio::select! {
                done = connection.as_mut() => done,
                () = async { drop(ended.wait_for(|ended| *ended).await) } => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = done {
                tracing::debug!(%error, "a connection was ended");
            }
        });
    }
    drop(listener);
    ending.send_replace(true);
    while running.join_next().await.is_some() {}
}

/// Accepts the next connection once there is a free place. Others wait until a connection ends.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = Arc::clone(free).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // The client may have disconnected, or this process has too many open files: both
                // are temporary.
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Reads the whole body of a request. Refuses it if it is too large, does not arrive in time, or is
/// not a message.
async fn with_body(request: Request, limits: HttpLimits) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    let refused = |status, text: &str| error_response(status, ErrorCode::INVALID_REQUEST, text);
    let body = tokio::time::timeout(limits.body, to_bytes(body, BODY_BYTES))
        .await
        .map_err(|_| refused(StatusCode::REQUEST_TIMEOUT, "the message did not come in time"))?
        .map_err(|_| {
            let text = format!("a message has at most {BODY_BYTES} bytes");
            refused(StatusCode::PAYLOAD_TOO_LARGE, &text)
        })?;
    if head.method == Method::POST {
        let wrong = match serde_json::from_slice::<Value>(&body) {
            Err(error) => Some((ErrorCode::PARSE_ERROR, format!("this is not JSON: {error}"))),
            Ok(message) => {
                let id = message.get("id").map(super::line_transport::request_id);
                id.and_then(Result::err).map(|text| (ErrorCode::INVALID_REQUEST, text.to_owned()))
            }
        };
        if let Some((code, text)) = wrong {
            return Err(error_response(StatusCode::BAD_REQUEST, code, &text));
        }
    }
    Ok(Request::from_parts(head, body.into()))
}

/// Returns the protocol error for an invalid message.
fn error_response(status: StatusCode, code: ErrorCode, text: &str) -> Response {
    let error = json!({ "code": code.0, "message": text });
    let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Passes on requests that have the token and a valid message, and whose host and origin name no
/// user. Refuses others without any data of the server.
async fn check_token(
    State((token, limits)): State<(AccessToken, HttpLimits)>,
    request: Request,
    next: Next,
) -> Response {
    if let AccessToken::Bearer(token) = &token {
        let given = request.headers().get(AUTHORIZATION).and_then(bearer_token);
        if !given.is_some_and(|given| is_same(given, token.as_bytes())) {
            let challenge = [(WWW_AUTHENTICATE, "Bearer")];
            let text = "this server wants its token: 'Authorization: Bearer TOKEN'\n";
            return (StatusCode::UNAUTHORIZED, challenge, text).into_response();
        }
    }
    if let Some(what) = named_user(&request) {
        let text = format!("Forbidden: the {what} names a user\n");
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    match with_body(request, limits).await {
        Ok(request) => next.run(request).await,
        Err(answer) => answer,
    }
}

/// Returns which of a request's origin and host contains a user name, if any. A valid one does not:
/// in `http://localhost@example.com` the user name `localhost` hides the real host.
fn named_user(request: &Request) -> Option<&'static str> {
    let holds_at =
        |name| request.headers().get_all(name).iter().any(|value| value.as_bytes().contains(&b'@'));
    if holds_at(ORIGIN) {
        return Some("origin");
    }
    let target = request.uri().authority();
    let names_user = holds_at(HOST) || target.is_some_and(|target| target.as_str().contains('@'));
    names_user.then_some("host")
}

fn bearer_token(header: &HeaderValue) -> Option<&[u8]> {
    let (scheme, word) = header.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| word.trim_ascii())
}

/// Compares two words in a time that does not depend on where they differ.
pub fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    blake3::hash(given) == blake3::hash(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net;

    /// A server without tools.
    #[derive(Clone, Debug)]
    struct Nothing;

    impl ServerHandler for Nothing {}

    /// A server in a thread, until it is dropped.
    struct BackgroundServer {
        address: SocketAddr,
        stop: Option<tokio::sync::oneshot::Sender<()>>,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Drop for BackgroundServer {
        fn drop(&mut self) {
            drop(self.stop.take());
            self.thread.take().map(std::thread::JoinHandle::join);
        }
    }

    fn served(header: u64, body: u64, connections: usize) -> BackgroundServer {
        let (header, body) = (Duration::from_millis(header), Duration::from_millis(body));
        let limits = HttpLimits { header, body, connections };
        let runtime = crate::mcp::runtime().unwrap();
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let (listener, address) = runtime.block_on(listen(loopback)).unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let router = router(Nothing, address, AccessToken::None, limits);
            let stopped = async move {
                let _ = stopped.await;
            };
            runtime.block_on(serve(listener, router, limits, stopped));
        });
        BackgroundServer { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns everything that the server sends for these bytes until it closes the connection.
    fn send(server: &BackgroundServer, bytes: &str) -> String {
        let mut stream = net::TcpStream::connect(server.address).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                        Accept: application/json, text/event-stream\r\n";

    /// Each of these would wait for the rest for ever.
    #[test]
    fn a_connection_that_sends_no_head_or_body_is_ended() {
        let server = served(50, 50, 8);
        for bytes in ["", "POST", HEAD] {
            assert!(!send(&server, bytes).contains("200 OK"), "{bytes}");
        }
        let response = send(&server, &format!("{HEAD}Content-Length: 100\r\n\r\n{{"));
        assert!(response.starts_with("HTTP/1.1 408"), "{response}");
        assert!(response.contains("\"jsonrpc\":\"2.0\""), "{response}");
    }

    /// Both places are occupied by idle clients: the third one is served once these are
    /// disconnected.
    #[test]
    fn a_waiting_connection_is_served_once_an_idle_one_is_closed() {
        let server = served(100, 100, 2);
        let idle: Vec<_> =
            (0..5).map(|_| net::TcpStream::connect(server.address).unwrap()).collect();
        let response = send(&server, &format!("{HEAD}Content-Length: 4\r\n\r\njunk"));
        assert!(response.starts_with("HTTP/1.1 400"), "{response}");
        drop(idle);
    }

    #[test]
    fn invalid_json_gets_an_error_of_the_protocol() {
        let server = served(200, 10_000, 8);
        let deep = "[".repeat(100_000);
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\"}}", "x".repeat(2000));
        for (body, code) in [
            ("{\"a\":\"\\ud800\"}", -32700),
            (&deep, -32700),
            ("junk", -32700),
            ("", -32700),
            (&long, -32600),
        ] {
            let length = body.len();
            let response = send(&server, &format!("{HEAD}Content-Length: {length}\r\n\r\n{body}"));
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 400"), "{response}");
            let answer: Value = serde_json::from_str(body).unwrap();
            assert_eq!(answer["error"]["code"], code, "{response}");
        }
    }
}
