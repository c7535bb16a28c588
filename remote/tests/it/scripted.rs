//! A server that gives the answers that a test has prepared, and keeps the requests.

use forge_remote::{Environment, ObjectDepot};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends an answer with this status, these headers and this body.
    Answer(u16, &'static [(&'static str, &'static str)], String),
    /// Closes the connection.
    Cut,
    /// Sends nothing, and keeps the connection.
    Silence,
}

impl Reply {
    /// Returns an answer of S3 with this status and a tag. If there is a code, the body is an error
    /// with it.
    pub(crate) fn of(status: u16, code: &str) -> Self {
        let body = if code.is_empty() {
            String::new()
        } else {
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>")
        };
        Self::Answer(status, &[("etag", "\"tag\"")], body)
    }
}

/// A server with prepared answers. The last answer is repeated.
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    replies: Vec<Reply>,
    requests: Vec<String>,
    silent: Vec<TcpStream>,
}

impl Script {
    /// Keeps a request and returns its reply.
    fn next(&mut self, request: String) -> Reply {
        self.requests.push(request);
        if self.replies.len() > 1 { self.replies.remove(0) } else { self.replies[0].clone() }
    }
}

impl ScriptedServer {
    pub(crate) fn start(replies: &[Reply]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let script = Script { replies: replies.to_vec(), ..Script::default() };
        let script = Arc::new(Mutex::new(script));
        let shared = Arc::clone(&script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let script = Arc::clone(&shared);
                thread::spawn(move || serve(stream.unwrap(), &script));
            }
        });
        Self { address, script }
    }

    /// Returns the requests since the last call: a method, and the path with the query.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.script.lock().unwrap().requests)
    }

    /// Returns the URL of the server.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn depot(&self) -> ObjectDepot {
        self.depot_within(Duration::from_secs(20))
    }

    pub(crate) fn depot_within(&self, limit: Duration) -> ObjectDepot {
        let endpoint = self.endpoint();
        depot(
            &[
                ("AWS_ENDPOINT_URL", &endpoint),
                ("AWS_ACCESS_KEY_ID", "name"),
                ("AWS_SECRET_ACCESS_KEY", "secret"),
            ],
            limit,
        )
    }
}

/// Opens a depot with these variables.
pub(crate) fn depot(variables: &[(&str, &str)], limit: Duration) -> ObjectDepot {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: Environment = owned.collect();
    ObjectDepot::open("s3://team/forge", &environment, limit).unwrap()
}

/// Answers one request.
fn serve(mut stream: TcpStream, script: &Mutex<Script>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    // A connection without any bytes is not a request.
    if !reader.read_line(&mut first).is_ok_and(|bytes| bytes > 0) {
        return;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request = first.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let is_head = request.starts_with("HEAD ");
    let mut script = script.lock().unwrap();
    match script.next(request) {
        Reply::Cut => {}
        Reply::Silence => script.silent.push(stream),
        Reply::Answer(status, headers, body) => {
            let mut text = format!("HTTP/1.1 {status} -\r\nconnection: close\r\n");
            let own_length = headers.iter().any(|(name, _)| *name == "content-length");
            if !own_length {
                text.push_str(&format!("content-length: {}\r\n", body.len()));
            }
            for (name, value) in headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            let body = if is_head { "" } else { &body };
            // The client may have closed the connection.
            let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
        }
    }
}
