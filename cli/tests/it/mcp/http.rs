//! The server over HTTP: which requests are accepted, and which are refused.

use super::{Server, meta, place};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

const TOKEN: &str = "a-token-that-is-long-enough";

/// A server over HTTP, which is killed when it is dropped.
struct Http {
    child: std::process::Child,
    address: String,
    /// What the server printed when it began to listen.
    announcement: String,
}

impl Http {
    fn begin(environment: &crate::environment::Environment) -> Self {
        let mut command = environment.command(["mcp", "--http"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut announcement = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut announcement).unwrap();
        let address = announcement.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{announcement}")).to_owned();
        Self { child, address, announcement }
    }

    fn port(&self) -> &str {
        self.address.split(':').nth(1).unwrap()
    }

    /// Posts a body with these headers; returns status and body.
    fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = String::from("POST /mcp HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        // The server may close the connection while the client still writes.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
    }

    /// Posts a valid request of 2026-07-28.
    fn modern(&self, method: &str, name: Option<&str>, mut params: Value) -> Value {
        params["_meta"] = meta(&json!({}));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![
            ("Host", self.address.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let (status, body) = self.post(&headers, &body.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

#[test]
fn only_requests_to_its_own_host_with_the_token_are_accepted() {
    let environment = place().with("FORGE_MCP_TOKEN", TOKEN);
    let server = Http::begin(&environment);
    assert!(!server.announcement.contains(TOKEN), "{}", server.announcement);
    let port = server.port();
    let own = |host: &str| format!("{host}:{port}");
    let hosts = [
        (own("127.0.0.1"), true),
        (own("localhost"), true),
        (own("[::1]"), true),
        (own("evil.example"), false),
        ("127.0.0.1:1".to_owned(), false),
        ("localhost.evil.example".to_owned(), false),
        (format!("user@{}", own("127.0.0.1")), false),
        (format!("evil.example:80@{}", own("localhost")), false),
    ];
    let origins = [
        (None, true),
        (Some(format!("http://{}", own("localhost"))), true),
        (Some(format!("http://{}", own("127.0.0.1"))), true),
        (Some("http://evil.example".to_owned()), false),
        (Some("http://localhost:1".to_owned()), false),
        (Some("null".to_owned()), false),
        (Some(format!("http://user@{}", own("127.0.0.1"))), false),
        (Some(format!("http://evil.example:80@{}", own("localhost"))), false),
    ];
    let tokens = [
        (Some(format!("Bearer {TOKEN}")), true),
        (Some(format!("bearer {TOKEN}")), true),
        (None, false),
        (Some("Bearer wrong".to_owned()), false),
        (Some(format!("Bearer {TOKEN}x")), false),
        (Some(format!("Basic {TOKEN}")), false),
        (Some("Bearer ".to_owned()), false),
    ];
    for (host, right_host) in &hosts {
        for (origin, right_origin) in &origins {
            for (token, right_token) in &tokens {
                let mut headers = vec![
                    ("Host", host.as_str()),
                    ("Content-Type", "application/json"),
                    ("Accept", "application/json, text/event-stream"),
                ];
                headers.extend(origin.as_ref().map(|origin| ("Origin", origin.as_str())));
                headers.extend(token.as_ref().map(|token| ("Authorization", token.as_str())));
                let (status, body) = server.post(&headers, &hello());
                let wanted = match (right_token, right_host & right_origin) {
                    (false, _) => 401,
                    (true, false) => 403,
                    (true, true) => 200,
                };
                assert_eq!(status, wanted, "{headers:?}: {body}");
                assert_eq!(body.contains("2025-11-25"), wanted == 200, "{headers:?}: {body}");
            }
        }
    }
}

#[test]
fn both_eras_are_served_over_http() {
    let environment = place().with("FORGE_MCP_TOKEN", TOKEN);
    let server = Http::begin(&environment);
    let found = server.modern("server/discover", None, json!({}));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28", "{found}");
    let arguments = json!({ "description": "the cache is stale" });
    let call = json!({ "name": "record_hypothesis", "arguments": arguments });
    let found = server.modern("tools/call", Some("record_hypothesis"), call);
    assert_eq!(found["result"]["structuredContent"]["id"], "H1", "{found}");
    let older = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "brief", "arguments": {} },
    });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("Host", server.address.as_str()),
        ("Authorization", &bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let (status, body) = server.post(&headers, &older.to_string());
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("the cache is stale"), "{body}");
}

#[test]
fn invalid_http_requests_get_an_error_and_the_server_continues() {
    let environment = place().with("FORGE_MCP_TOKEN", TOKEN);
    let server = Http::begin(&environment);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("Host", server.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let deep = "[".repeat(100_000);
    let long = "x".repeat(9 * 1024 * 1024);
    for body in ["junk", "", "[]", &deep, &long] {
        let (status, answer) = server.post(&headers, body);
        let shown = &body[..body.len().min(20)];
        assert!((400..500).contains(&status) || status == 0, "{shown}: {status} {answer}");
    }
    assert!(server.modern("server/discover", None, json!({}))["error"].is_null());
}

/// A given token needs 16 bytes, and the message says so: `ö` is one character of two bytes.
#[test]
fn without_a_token_one_is_generated_and_a_short_one_is_refused() {
    let environment = place();
    let server = Http::begin(&environment);
    let token =
        server.announcement.split("Bearer ").nth(1).unwrap().trim_end().trim_end_matches('\'');
    assert_eq!(token.len(), 64, "{}", server.announcement);
    let other = Http::begin(&environment);
    assert!(!other.announcement.contains(token));
    for token in ["short", "ööööööö"] {
        let environment = place().with("FORGE_MCP_TOKEN", token);
        let output = environment.forge(["mcp", "--http"]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("fewer than 16 bytes"), "{output}");
    }
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let environment = place();
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let output = environment.forge(["mcp", "--http", address]);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("hint: name a loopback address"), "{output}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn over_standard_input_nothing_listens() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("brief", &json!({}));
    let pid = server.child.id();
    assert_eq!(listening(pid), 0);
    // The same check finds the server that does listen.
    let http = Http::begin(&environment);
    assert_eq!(listening(http.child.id()), 1);
}

/// Returns the number of listening sockets of a process.
#[cfg(target_os = "linux")]
fn listening(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let own: Vec<String> = files
        .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok())
        .filter_map(|link| {
            let link = link.to_string_lossy().into_owned();
            link.strip_prefix("socket:[").map(|inode| inode.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| {
        std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default()
    });
    // Column 3 is the state (0A: listening); column 9 is the inode.
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines
        .filter(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns.get(3) == Some(&"0A")
                && columns.get(9).is_some_and(|inode| own.iter().any(|own| own == inode))
        })
        .count()
}
