//! `forge serve`: which requests are answered, and with what.

use crate::environment::Environment;
use crate::story::example_session;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server of pages, which is killed when it is dropped.
struct PageServer {
    child: Child,
    address: String,
    token: String,
}

/// An answer of the server.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl PageServer {
    fn begin(environment: &Environment) -> Self {
        let mut command = environment.command(["serve"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut announcement = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut announcement).unwrap();
        let start =
            announcement.split("http://").nth(1).unwrap_or_else(|| panic!("{announcement}"));
        let (address, token) = start.trim().split_once("/?token=").unwrap();
        Self { child, address: address.to_owned(), token: token.to_owned() }
    }

    fn cookie(&self) -> String {
        let port = self.address.split(':').nth(1).unwrap();
        format!("theme=dark; forge-{port}={}", self.token)
    }

    /// Opens a connection with this request.
    fn open(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut answer = Vec::new();
        let _ = self.open(method, path, headers).read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Gets a page as a browser with the cookie does.
    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[("Host", &self.address), ("Cookie", &self.cookie())])
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Regression: the page listed the latest 50 sessions as if there were no others, and its times had
/// no year.
#[test]
fn the_list_of_sessions_says_that_there_are_more() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let note = r#""put":{"kind":"note","id":"N1","value":{"description":"x"}}"#;
    let line = |number: u32| {
        format!("{{\"at\":\"2024-03-11T10:00:00Z\",\"session\":\"s{number}\",{note}}}\n")
    };
    environment.write("project/events.jsonl", &(1..=51).map(line).collect::<String>());
    environment.forge(["import", "events", "events.jsonl"]).success();
    let list = PageServer::begin(&environment).get("/").body;
    assert!(list.contains("The latest of 51 sessions."), "{list}");
    assert!(list.contains("last activity 11 Mar 2024"), "{list}");
}

#[test]
fn only_a_browser_with_the_token_on_this_machine_is_answered() {
    let environment = example_session();
    let server = PageServer::begin(&environment);
    let port = server.address.split(':').nth(1).unwrap();
    let (own, cookie) = (server.address.as_str(), server.cookie());
    let local = format!("localhost:{port}");
    let evil = format!("evil.example:{port}");
    let wrong = format!("forge-{port}={}x", server.token);
    let with_token = format!("/s/tensor?token={}", server.token);
    let with_wrong = format!("/?token={}x", server.token);
    for (method, path, headers, status) in [
        ("GET", "/", vec![("Host", own), ("Cookie", &cookie)], 200),
        ("HEAD", "/", vec![("Host", own), ("Cookie", &cookie)], 200),
        ("GET", "/", vec![("Host", local.as_str()), ("Cookie", &cookie)], 200),
        ("GET", "/", vec![("Host", own)], 401),
        ("GET", "/", vec![("Host", own), ("Cookie", &wrong)], 401),
        ("GET", with_wrong.as_str(), vec![("Host", own)], 401),
        ("GET", with_token.as_str(), vec![("Host", own)], 303),
        ("GET", "/", vec![("Host", evil.as_str()), ("Cookie", &cookie)], 421),
        ("GET", "/", vec![("Host", "127.0.0.1"), ("Cookie", &cookie)], 421),
        ("GET", "/", vec![("Cookie", cookie.as_str())], 421),
        ("GET", with_token.as_str(), vec![("Host", evil.as_str())], 421),
        ("GET", "http://evil.example/", vec![("Host", own), ("Cookie", &cookie)], 421),
        ("POST", "/", vec![("Host", own), ("Cookie", &cookie)], 405),
        ("DELETE", "/s/tensor", vec![("Host", own), ("Cookie", &cookie)], 405),
    ] {
        let answer = server.ask(method, path, &headers);
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.head);
        let says_something = answer.body.contains("tensor") || answer.body.contains("layout");
        assert_eq!(says_something, status == 200 && method == "GET", "{method} {path} {headers:?}");
        for header in [
            "content-security-policy: default-src 'none'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{header}: {}", answer.head);
        }
    }
    let moved = server.ask("GET", &with_token, &[("Host", own)]);
    assert!(moved.head.contains("location: /s/tensor\r\n"), "{}", moved.head);
    assert!(moved.head.contains("httponly; samesite=strict"), "{}", moved.head);
}

#[test]
fn each_address_has_its_page() {
    let environment = example_session();
    let server = PageServer::begin(&environment);
    for (path, text) in [
        ("/", "href=\"/s/"),
        ("/s/tensor", "the layout is wrong"),
        ("/s/tensor/at/baseline", "As of Sun 1 Feb"),
        ("/s/tensor/e/hypothesis:H1", "hypothesis H1"),
        ("/s/tensor/e/N1", "日本語"),
        ("/s/tensor/diff/baseline/HEAD", "Changes from baseline to HEAD"),
        ("/s/tensor/search?q=strides", "strides swap"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.contains(text), "{path}: {}", answer.body);
    }
    // Regression: a confidence had 16 decimals.
    let changes = server.get("/s/tensor/diff/%231/HEAD").body;
    assert!(changes.contains("0.40") && !changes.contains("0.7945"), "{changes}");
    let hypothesis = server.get("/s/tensor/e/H1").body;
    assert!(hypothesis.contains("0.79") && !hypothesis.contains("0.7945"), "{hypothesis}");
    // Regression: the list of sessions and the page of an entity had times without the year.
    assert!(hypothesis.contains("1 Feb 2026, "), "{hypothesis}");
    assert!(server.get("/").body.contains("1 Feb 2026, "));
    let then = server.get("/s/tensor/at/baseline").body;
    assert!(!then.contains("the layout is fine"), "nothing of later is on the page");
    for (path, location) in [
        ("/s/tensor/at?t=baseline", "/s/tensor/at/baseline"),
        ("/s/tensor/diff?a=&b=%2342", "/s/tensor/diff/start/%2342"),
        ("/s/%2F%2Fevil.example/at?t=x", "/s/%2f%2fevil.example/at/x"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 303, "{path}");
        assert!(answer.head.contains(&format!("location: {location}\r\n")), "{}", answer.head);
    }
    for (path, status) in [
        ("/s/nowhere", 404),
        ("/s/tensor/e/H99", 404),
        ("/s/tensor/at/%23999", 404),
        ("/x", 404),
        ("/s/tensor/search?q=%22", 200),
    ] {
        let answer = server.get(path);
        assert!(
            answer.status == status || (status == 200 && answer.status == 400),
            "{path}: {}",
            answer.status
        );
    }
    // Regression: a page about an error had neither the hint of the command line nor the forms.
    let unknown = server.get("/s/tensor/at/basline").body;
    assert!(unknown.contains("Hint: ") && unknown.contains("/at\""), "{unknown}");
    let unknown = server.get("/s/nowhere").body;
    assert!(unknown.contains("Hint: ") && !unknown.contains("<form"), "{unknown}");
}

/// Regression: the pages showed a store that had been moved away.
#[test]
fn a_store_that_was_moved_away_is_not_shown() {
    let environment = example_session();
    let server = PageServer::begin(&environment);
    assert_eq!(server.get("/s/tensor").status, 200);
    std::fs::rename(environment.path("project/.forge"), environment.path("moved")).unwrap();
    let answer = server.get("/s/tensor");
    assert_eq!(answer.status, 500);
    assert!(answer.body.contains("was deleted, moved or replaced"), "{}", answer.body);
}

#[test]
fn a_port_that_is_in_use_is_refused_with_what_to_do() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = environment.forge(["serve", "--port", &port]);
    assert!(refused.stderr.contains("name another port, or 0 for a free one"), "{refused}");
}

/// Regression: most rows of a comparison of an agent's session were messages without text.
#[test]
fn a_comparison_lists_no_messages_without_text() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let lines = r#"
{"at":"2026-01-01T09:00:00Z","put":{"kind":"prompt","id":"P1","value":{"text":"why?"}}}
{"at":"2026-01-01T10:00:00Z","put":{"kind":"message","id":"M1","value":{"text":"I look at it"}}}
{"at":"2026-01-01T10:00:00Z","put":{"kind":"message","id":"M2","value":{"role":"assistant"}}}
"#;
    environment.write("project/calls.jsonl", lines);
    environment.forge(["import", "events", "calls.jsonl"]).success();
    let page = PageServer::begin(&environment).get("/s/calls/diff/start/HEAD").body;
    assert!(page.contains("I look at it") && !page.contains("message:M2"), "{page}");
}

#[test]
fn an_open_page_receives_new_entries() {
    let environment = example_session();
    let server = PageServer::begin(&environment);
    let page = server.get("/s/tensor").body;
    let position = page.split("data-position=\"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/s/tensor/events?after={}", position.unwrap());
    let stream =
        server.open("GET", &path, &[("Host", &server.address), ("Cookie", &server.cookie())]);
    let mut lines = BufReader::new(stream).lines();
    let head = lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty());
    let head: Vec<String> = head.collect();
    assert!(head[0].contains("200"), "{head:?}");
    environment.forge(["note", "add", "written while the page is open"]).success();
    let sent = lines.map(Result::unwrap).find(|line| line.starts_with("data: "));
    let sent = sent.unwrap();
    assert!(sent.contains("written while the page is open"), "{sent}");
    let parts: serde_json::Value = serde_json::from_str(&sent[6..]).unwrap();
    assert!(parts["story"].as_str().unwrap().contains("the layout is wrong"));
}
