//! Reads what an agent writes to a hook's standard input.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

/// The maximum size of an event, in bytes.
const MOST_BYTES: u64 = 32 << 20;
/// How long to wait for an agent that does not close its end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads all of standard input; if it does not end, what came so far.
pub fn read() -> io::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        return Err(io::Error::other("a hook is called by an agent, with the event on stdin"));
    }
    let (sender, parts) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut part = vec![0; 64 << 10];
        loop {
            let read = stdin.read(&mut part).map(|length| part[..length].to_vec());
            let over = read.as_ref().map_or(true, Vec::is_empty);
            if sender.send(read).is_err() || over {
                return;
            }
        }
    });
    let mut input = Vec::new();
    // An end that stays open is treated as closed.
    while let Ok(part) = parts.recv_timeout(PATIENCE) {
        let part = part?;
        if part.is_empty() {
            break;
        }
        input.extend_from_slice(&part);
        if input.len() as u64 > MOST_BYTES {
            return Err(io::Error::other(format!("it is longer than {MOST_BYTES} bytes")));
        }
    }
    Ok(input)
}
