//! A proxy between clients and a server that delays what each side sends, and counts round trips.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A proxy on a free port of this machine. It accepts connections until the process ends.
#[derive(Debug)]
pub struct TcpProxy {
    port: u16,
    shared: Arc<ProxyState>,
}

#[derive(Debug)]
struct ProxyState {
    server: u16,
    delay: Duration,
    round_trips: AtomicU64,
    connections: AtomicU64,
}

impl TcpProxy {
    /// Starts a proxy to a port of this machine. It passes on each packet after `delay`.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start(server: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (round_trips, connections) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Arc::new(ProxyState { server, delay, round_trips, connections });
        let state = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let _ = connect(client, &state);
            }
        });
        Self { port, shared }
    }

    /// Returns the port of the proxy.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns how many connections of clients have reached the server.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns how often clients have sent something and waited for the answer.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips.load(Ordering::Relaxed)
    }
}

/// Connects a client with the server. Two threads pass on what the two sides send.
fn connect(client: TcpStream, state: &Arc<ProxyState>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", state.server))?;
    state.connections.fetch_add(1, Ordering::Relaxed);
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // Whether the server was the last to send. Then the next packet of the client begins a round
    // trip.
    let answered = Arc::new(AtomicBool::new(true));
    let (requests, answers) = ((client.try_clone()?, server.try_clone()?), (server, client));
    let (answered_before, state) = (Arc::clone(&answered), Arc::clone(state));
    let delay = state.delay;
    thread::spawn(move || {
        pass(requests, delay, || {
            if answered_before.swap(false, Ordering::Relaxed) {
                state.round_trips.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    thread::spawn(move || pass(answers, delay, || answered.store(true, Ordering::Relaxed)));
    Ok(())
}

/// Passes on what one side sends until the connection ends. Calls `before` before each packet.
fn pass((mut from, mut to): (TcpStream, TcpStream), delay: Duration, before: impl Fn()) {
    let mut packet = vec![0; 256 << 10];
    while let Ok(bytes) = from.read(&mut packet) {
        if bytes == 0 {
            break;
        }
        // A PostgreSQL client ends a connection with this message, which gets no answer.
        if packet[..bytes] != *b"X\0\0\0\x04" {
            before();
        }
        if !delay.is_zero() {
            thread::park_timeout(delay);
        }
        if to.write_all(&packet[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
