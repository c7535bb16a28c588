//! Messages over HTTP, for clients on this machine alone: the address is a loopback one, the host and origin that a
//! request names are this server's own, and it bears the token.

use super::runtime;
use crate::error::CommandError;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Where messages are posted to.
pub const PATH: &str = "/mcp";
/// The largest message, in bytes.
const BODY_BYTES: usize = super::line::LINE_BYTES;
/// The names of this machine to itself.
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What a client must bear to be heard.
#[derive(Clone, Debug)]
pub enum Token {
    /// This word.
    Bearer(Arc<str>),
    /// Nothing. Only for a server without anybody's data behind it.
    None,
}

impl Token {
    /// A new one that nobody can guess.
    ///
    /// # Errors
    ///
    /// If the system gives no random numbers.
    pub fn new() -> Result<Self, CommandError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            CommandError::internal("the system gives no random numbers")
                .caused_by(error.to_string())
        })?;
        let word: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self::Bearer(word.into()))
    }
}

/// Takes this address, which must be a loopback one.
///
/// # Errors
///
/// Invalid if others could reach it; unavailable if it is taken.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CommandError> {
    if !address.ip().is_loopback() {
        return Err(CommandError::invalid(format!("{address} can be reached from other machines"))
            .hinted("name a loopback address, such as 127.0.0.1:8765"));
    }
    let taken = || format!("cannot listen on {address}");
    let listener =
        TcpListener::bind(address).await.map_err(|error| CommandError::io(&taken(), error))?;
    let address = listener.local_addr().map_err(|error| CommandError::io(&taken(), error))?;
    Ok((listener, address))
}

/// The service at [`PATH`] of the server at this address.
pub fn router<S: ServerHandler + Clone>(server: S, address: SocketAddr, token: Token) -> Router {
    let port = address.port();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES)
        .with_allowed_hosts(HOSTS.map(|host| format!("{host}:{port}")))
        .with_allowed_origins(HOSTS.map(|host| format!("http://{host}:{port}")))
        .enforce_origin_validation();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new().route_service(PATH, service).layer(from_fn_with_state(token, heard))
}

/// Serves until `stop` comes to something.
///
/// # Errors
///
/// If the address is lost.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), CommandError> {
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
        .map_err(|error| CommandError::io("cannot serve", error))
}

/// Lets those through who bear the token. Nobody else is told anything.
async fn heard(State(token): State<Token>, request: Request, next: Next) -> Response {
    if let Token::Bearer(token) = &token {
        let given = request.headers().get(AUTHORIZATION).and_then(bearer);
        if !given.is_some_and(|given| is_same(given, token.as_bytes())) {
            let challenge = [(WWW_AUTHENTICATE, "Bearer")];
            let text = "this server wants its token: 'Authorization: Bearer TOKEN'\n";
            return (StatusCode::UNAUTHORIZED, challenge, text).into_response();
        }
    }
    next.run(request).await
}

fn bearer(header: &HeaderValue) -> Option<&[u8]> {
    let (scheme, word) = header.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| word.trim_ascii())
}

/// Whether two words are the same, found out in a time that does not say where they differ.
fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    blake3::hash(given) == blake3::hash(wanted)
}

/// Serves on a thread of this process until it is dropped; for tests and examples.
#[derive(Debug)]
pub struct Background {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Background {
    /// Begins to serve on a free loopback port.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn begin<S: ServerHandler + Clone>(server: S, token: Token) -> Result<Self, CommandError> {
        let runtime = runtime()?;
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let (listener, address) = runtime.block_on(listen(loopback))?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let router = router(server, address, token);
            let stopped = async move {
                let _ = stopped.await;
            };
            if let Err(error) = runtime.block_on(serve(listener, router, stopped)) {
                tracing::error!(%error, "serving broke off");
            }
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
