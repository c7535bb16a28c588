//! `forge mcp` as a real process, with raw lines of JSON.

mod era;
mod http;
mod junk;
mod page;
mod resource;
mod restore;
mod search;
mod tool;

use crate::environment::Environment;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A running server, and the pipes of its client.
pub(super) struct Server {
    pub(super) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Server {
    pub(super) fn begin(environment: &Environment) -> Self {
        Self::of(environment, ["mcp"])
    }

    pub(super) fn of<const N: usize>(environment: &Environment, args: [&str; N]) -> Self {
        let mut command = environment.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, requests: 0 }
    }

    /// Starts a server with the handshake of 2025 clients.
    pub(super) fn of_2025(environment: &Environment) -> Self {
        let mut server = Self::begin(environment);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = server.request("initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        server
    }

    pub(super) fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request without waiting for the answer. Returns its id.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request.to_string().as_bytes());
        id
    }

    pub(super) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request unchanged and returns its answer.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request of 2026-07-28 and returns its answer.
    pub(super) fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = meta(&json!({}));
        self.request(method, &params)
    }

    /// Calls a tool with the protocol of 2026-07-28 and returns the result.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.modern("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its structured result. The text of the answer
    /// must be the same.
    pub(super) fn found(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let mirrored: Value = serde_json::from_str(text).unwrap();
        assert_eq!(mirrored, result["structuredContent"]);
        mirrored
    }

    /// Calls a tool that must fail, and returns the error message.
    pub(super) fn wrong(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the input; returns the exit code, the rest of the output, and the error output.
    pub(super) fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.input.take());
        let (mut rest, mut stderr) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), rest, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed did not end the server.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the metadata of a request of 2026-07-28.
pub(super) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

/// Makes an environment with a store.
pub(super) fn place() -> Environment {
    let environment = Environment::new();
    let _ = environment.forge(["init"]).success();
    environment
}
