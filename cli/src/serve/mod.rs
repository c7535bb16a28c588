//! Serves the pages of all sessions over HTTP to browsers on this machine. It listens on a loopback
//! address, changes nothing, and refuses requests for another host name or without its token.
//!
//! * `address`: finds the page that a path names.
//! * `pages`: reads the pages from the store.
//! * `live`: sends the changed parts of an open page.

mod address;
mod live;
mod pages;

use crate::error::{CommandError, CommandErrorKind};
use crate::mcp::http::{AccessToken, OWN_HOSTS, is_same};
use address::PageAddress;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use forge_report::html::served::{failure_page, notice_page};
use forge_report::{PageText, PageZone};
use forge_store::redact::Redactor;
use forge_store::store::Store;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The maximum number of pages that are read at the same time.
const READERS: usize = 2;

/// A server of pages. Clones share its state.
#[derive(Clone)]
pub struct PageServer {
    inner: Arc<ServerParts>,
}

struct ServerParts {
    store: Store,
    redactor: Redactor,
    zone: PageZone,
    token: AccessToken,
    port: u16,
    readers: Semaphore,
    stopping: watch::Receiver<bool>,
}

impl PageServer {
    /// Creates a server of the pages of a store. `stopping` becomes true when the server ends.
    pub fn new(
        store: Store,
        redactor: Redactor,
        zone: PageZone,
        access: (AccessToken, u16),
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (token, port) = access;
        let readers = Semaphore::new(READERS);
        let inner = ServerParts { store, redactor, zone, token, port, readers, stopping };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the address to open, with the token.
    pub fn start_address(&self) -> String {
        let port = self.inner.port;
        match &self.inner.token {
            AccessToken::Bearer(token) => format!("http://127.0.0.1:{port}/?token={token}"),
            AccessToken::None => format!("http://127.0.0.1:{port}/"),
        }
    }

    /// Returns the service that answers all requests.
    pub fn router(self) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// Returns the name of the cookie. It contains the port, because a browser sends a cookie to
    /// all ports of a host.
    fn cookie_name(&self) -> String {
        format!("forge-{}", self.inner.port)
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let AccessToken::Bearer(token) = &self.inner.token else { return true };
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.any(|(key, value)| {
            key.trim() == name && is_same(value.trim().as_bytes(), token.as_bytes())
        })
    }

    /// Runs a read of the store on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ServerParts) -> Result<T, CommandError> + Send + 'static,
    ) -> Result<T, CommandError> {
        // This fails only for a closed semaphore, and this one is never closed.
        let _place = self.inner.readers.acquire().await.ok();
        let parts = Arc::clone(&self.inner);
        let work = move || {
            check_in_place(&parts.store)?;
            work(&parts)
        };
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(CommandError::internal("the page could not be read")))
    }
}

/// Checks that the store is still in its folder. What is open of it could still be read.
fn check_in_place(store: &Store) -> Result<(), CommandError> {
    let Some(path) = store.path().filter(|_| !store.is_in_place()) else { return Ok(()) };
    let problem = format!("the store at {} was deleted, moved or replaced", path.display());
    Err(CommandError::new(CommandErrorKind::Unavailable, problem)
        .hinted("end this server, and begin 'forge serve' again"))
}

async fn answer(State(server): State<PageServer>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let mut response = match refusal(&server, &head.method, &head.headers, &head.uri) {
        Some(refused) => refused,
        None => allowed(&server, &head.uri).await,
    };
    let headers = response.headers_mut();
    let policy = format!("{}; frame-ancestors 'none'", forge_report::policy(true, true));
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

/// Returns the answer to a request that gets no page: an error, or, if the address has the token, a
/// redirect that stores the token as a cookie. `None` if the request is allowed. The answer says
/// nothing about the store.
fn refusal(
    server: &PageServer,
    method: &Method,
    headers: &HeaderMap,
    uri: &Uri,
) -> Option<Response> {
    let port = server.inner.port;
    let is_own = |host: &str| OWN_HOSTS.iter().any(|own| host == format!("{own}:{port}"));
    let mut hosts = headers.get_all(HOST).iter();
    let one = hosts.next().and_then(|host| host.to_str().ok());
    let named = uri.authority().is_none_or(|target| is_own(target.as_str()));
    if !one.is_some_and(is_own) || hosts.next().is_some() || !named {
        let text = "This server answers only to its own address on this machine.";
        return Some(page(StatusCode::MISDIRECTED_REQUEST, notice_page("Wrong address", text)));
    }
    if method != Method::GET && method != Method::HEAD {
        let text = "This server only shows; it changes nothing.";
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, notice_page("Not allowed", text));
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(refused);
    }
    if server.has_token(headers) {
        return None;
    }
    if let (AccessToken::Bearer(token), Some(given)) =
        (&server.inner.token, address::parameter(uri.query(), "token"))
        && is_same(given.as_bytes(), token.as_bytes())
    {
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", server.cookie_name());
        let mut moved = redirect(uri.path());
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            moved.headers_mut().insert(SET_COOKIE, cookie);
        }
        return Some(moved);
    }
    let text = "Open the address that 'forge serve' printed: it has the token.";
    Some(page(StatusCode::UNAUTHORIZED, notice_page("The token is missing", text)))
}

/// Returns the answer to an allowed request.
async fn allowed(server: &PageServer, uri: &Uri) -> Response {
    let Some(address) = PageAddress::parse(uri.path(), uri.query()) else {
        let text = "There is no page with this address.";
        return page(StatusCode::NOT_FOUND, notice_page("Not found", text));
    };
    match address {
        PageAddress::Moved(path) => redirect(&path),
        PageAddress::Events { session, after } => live::events(server, session, after).await,
        address => {
            let session = address.session().map(str::to_owned);
            match server.read(move |parts| pages::read(parts, &address)).await {
                Ok(html) => page(StatusCode::OK, html),
                Err(error) => error_page(server, &error, session).await,
            }
        }
    }
}

/// Returns the page about an error, with the forms of the session that was named, if it exists.
async fn error_page(
    server: &PageServer,
    error: &CommandError,
    session: Option<String>,
) -> Response {
    let status = match error.kind() {
        CommandErrorKind::NotFound => StatusCode::NOT_FOUND,
        CommandErrorKind::Invalid => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let cleaner = forge_report::TextCleaner::new(&server.inner.redactor);
    let text = cleaner.clean(&error.message_with_causes());
    let hints: Vec<PageText> = error.hints().iter().map(|hint| cleaner.clean(hint)).collect();
    let path = match session {
        Some(name) => server.read(move |parts| pages::session_path(parts, &name)).await.ok(),
        None => None,
    };
    page(status, failure_page(path.as_deref(), &text, &hints))
}

fn page(status: StatusCode, html: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Returns a redirect to another path of this server.
fn redirect(path: &str) -> Response {
    let mut moved = Response::new(Body::empty());
    *moved.status_mut() = StatusCode::SEE_OTHER;
    // Two slashes at the beginning would name another host.
    let path = format!("/{}", path.trim_start_matches('/'));
    if let Ok(path) = HeaderValue::from_str(&path) {
        moved.headers_mut().insert(LOCATION, path);
    }
    moved
}
