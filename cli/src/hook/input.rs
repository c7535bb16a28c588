//! Reads the event that an agent writes to a hook's standard input.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

/// The maximum size of an event, in bytes.
const MAX_EVENT_BYTES: u64 = 32 << 20;
/// How long to wait for more bytes, because an agent may not close its end.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads standard input to its end. If it stays open and nothing comes for `READ_TIMEOUT`, returns
/// what came so far.
///
/// # Errors
/// If it is a terminal, cannot be read, or is too long.
pub fn read() -> io::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        return Err(io::Error::other(
            "it is a terminal: 'forge hooks install' makes an agent call this command",
        ));
    }
    let (sender, parts) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut part = vec![0; 64 << 10];
        loop {
            let read = stdin.read(&mut part).map(|length| part[..length].to_vec());
            let is_last = read.as_ref().map_or(true, Vec::is_empty);
            if sender.send(read).is_err() || is_last {
                return;
            }
        }
    });
    let mut input = Vec::new();
    // The loop also ends after a timeout.
    while let Ok(part) = parts.recv_timeout(READ_TIMEOUT) {
        let part = part?;
        if part.is_empty() {
            break;
        }
        input.extend_from_slice(&part);
        if input.len() as u64 > MAX_EVENT_BYTES {
            return Err(io::Error::other(format!("it is longer than {MAX_EVENT_BYTES} bytes")));
        }
    }
    Ok(input)
}
