//! Messages as lines of JSON, over standard input and output.
//!
//! An invalid message is answered with an error, and the next line is read: junk, a line that is
//! too long or nested too deeply, a batch. Messages that the service cannot handle before its
//! initialisation are not passed to it.

use super::server::{ForgeServer, VERSIONS};
use crate::error::CommandError;
use forge_agents::readable_json;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// The maximum length of a line, in bytes.
pub const LINE_BYTES: usize = 4 * 1024 * 1024;
/// The maximum length of a request's id, in bytes.
const ID_BYTES: usize = 1024;

/// Serves these lines until they end, and then until all requests are answered.
pub async fn serve(
    forge: ForgeServer,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), CommandError> {
    use rmcp::service::ServerInitializeError::ConnectionClosed;
    let running = match forge.serve(LineTransport::new(read, write)).await {
        Ok(running) => running,
        // A client that disconnects at once is not an error.
        Err(ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            return Err(CommandError::internal("serving could not begin").caused_by(error));
        }
    };
    let ended = running.waiting().await;
    ended.map_err(|error| CommandError::internal("serving broke off").caused_by(error))?;
    Ok(())
}

/// The transport of messages as lines of JSON.
struct LineTransport<R, W> {
    read: BufReader<R>,
    /// The line that is being read. It is stored here because reading may be cancelled at any
    /// await.
    line: Vec<u8>,
    /// Whether the rest of a line that was too long is being skipped.
    passing: bool,
    write: Arc<Mutex<Option<W>>>,
    /// Errors that are being sent to the client.
    errors: JoinSet<()>,
    /// Whether the service is initialised. Only then it handles notifications.
    begun: bool,
}

/// The result of reading a line.
enum LineRead {
    Line(Vec<u8>),
    TooLong,
    End,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            passing: false,
            write: Arc::new(Mutex::new(Some(write))),
            errors: JoinSet::new(),
            begun: false,
        }
    }

    /// Reads the next line. Nothing is lost if this is dropped at its await.
    async fn next(&mut self) -> io::Result<LineRead> {
        loop {
            let here = self.read.fill_buf().await?;
            if here.is_empty() {
                // The last line may lack its line break.
                let rest = std::mem::take(&mut self.line);
                return Ok(if rest.is_empty() { LineRead::End } else { LineRead::Line(rest) });
            }
            let end = here.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(here.len(), |end| end + 1);
            let too_long = !self.passing && self.line.len() + taken > LINE_BYTES;
            if !self.passing && !too_long {
                self.line.extend_from_slice(&here[..taken]);
            }
            self.read.consume(taken);
            if too_long {
                self.line.clear();
                self.passing = end.is_none();
                return Ok(LineRead::TooLong);
            }
            match (end, self.passing) {
                (Some(_), true) => self.passing = false,
                (Some(_), false) => return Ok(LineRead::Line(std::mem::take(&mut self.line))),
                (None, _) => {}
            }
        }
    }

    /// Sends an error that does not come from the service.
    fn refuse(&mut self, code: ErrorCode, message: impl Into<String>, id: Option<RequestId>) {
        let error = ErrorData::new(code, message.into(), None);
        let write = Arc::clone(&self.write);
        while self.errors.try_join_next().is_some() {}
        let error: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::error(error, id);
        self.errors.spawn(async move {
            // A client that has disconnected needs no error.
            let _ = write_message(&write, &error).await;
        });
    }

    /// Returns the message of a line; `None` if an error was sent for it, or if it is to be
    /// ignored.
    fn message(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        // A client writes half of a surrogate pair if it cut a text within an emoji. An error about
        // a line that cannot be read has no id, so the request would never end for the client.
        let read = serde_json::from_slice(line).or_else(|error| {
            let text = String::from_utf8_lossy(line);
            serde_json::from_str(&readable_json(&text)).map_err(|_| error)
        });
        let mut value: Value = match read {
            Ok(value) => value,
            Err(error) => {
                self.refuse(ErrorCode::PARSE_ERROR, format!("this is not JSON: {error}"), None);
                return None;
            }
        };
        let Value::Object(fields) = &mut value else {
            let text = "a message is one JSON object in one line";
            self.refuse(ErrorCode::INVALID_REQUEST, text, None);
            return None;
        };
        let id = match fields.get("id").map(request_id).transpose() {
            Ok(id) => id,
            Err(text) => {
                self.refuse(ErrorCode::INVALID_REQUEST, text, None);
                return None;
            }
        };
        complete_probe(fields);
        let is_notification = id.is_none();
        match serde_json::from_value::<ClientJsonRpcMessage>(value) {
            Ok(JsonRpcMessage::Request(mut request)) => {
                self.begun |= begins_session(&mut request.request);
                Some(JsonRpcMessage::Request(request))
            }
            Ok(other) => self.begun.then_some(other),
            // A notification is never answered, even if it is invalid.
            Err(_) if is_notification => None,
            Err(_) => {
                let text = "this is not a message of the protocol";
                self.refuse(ErrorCode::INVALID_REQUEST, text, id);
                None
            }
        }
    }
}

/// Parses the id of a request, which the answer repeats.
pub(super) fn request_id(id: &Value) -> Result<RequestId, &'static str> {
    if id.as_str().is_some_and(|id| id.len() > ID_BYTES) {
        return Err("an id has at most 1024 bytes");
    }
    RequestId::deserialize(id).map_err(|_| "an id is a whole number or a text")
}

/// Whether this request initialises the service: `initialize` does, and any request with a
/// supported version of the protocol and all required metadata except `server/discover` and `ping`.
fn begins_session(request: &mut ClientRequest) -> bool {
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return true;
    }
    if matches!(request, ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_)) {
        return false;
    }
    let meta = request.get_meta();
    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(|version| VERSIONS.contains(&version))
}

/// Adds the version and the capabilities to a `server/discover` that lacks them: a client calls it
/// to find out the era of the server, so it need not name its own.
fn complete_probe(fields: &mut Map<String, Value>) {
    if fields.get("method").and_then(Value::as_str) != Some("server/discover") {
        return;
    }
    let params = fields.entry("params").or_insert_with(|| json!({}));
    let Some(params) = params.as_object_mut() else { return };
    let Some(meta) = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut() else {
        return;
    };
    let version = ProtocolVersion::V_2026_07_28.to_string();
    meta.entry("io.modelcontextprotocol/protocolVersion").or_insert_with(|| version.into());
    meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(|| json!({}));
}

async fn write_message<W: AsyncWrite + Send + Unpin>(
    write: &Mutex<Option<W>>,
    message: &TxJsonRpcMessage<RoleServer>,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    let mut write = write.lock().await;
    let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    write.write_all(&line).await?;
    write.flush().await
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move { write_message(&write, &item).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.next().await {
                Ok(LineRead::Line(line)) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Ok(LineRead::TooLong) => {
                    let text = format!("a message may have at most {LINE_BYTES} bytes");
                    self.refuse(ErrorCode::INVALID_REQUEST, text, None);
                }
                Ok(LineRead::End) => return None,
                Err(error) => {
                    tracing::error!(%error, "the input cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        while self.errors.join_next().await.is_some() {}
        if let Some(mut write) = self.write.lock().await.take() {
            write.flush().await?;
        }
        Ok(())
    }
}
