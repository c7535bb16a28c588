//! A proxy between a client and its database, which loses requests or answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A part of the traffic that is lost, together with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The request: the database never sees it.
    Request,
    /// The answer: the database has done what was asked for.
    Answer,
}

#[derive(Default)]
struct Traffic {
    /// The coming losses, each with a text that the request contains.
    losses: Vec<(Lost, &'static str)>,
    /// Both sides of all connections.
    streams: Vec<TcpStream>,
}

/// A proxy on its own port, until the test ends.
pub(crate) struct Proxy {
    port: u16,
    traffic: Arc<Mutex<Traffic>>,
}

impl Proxy {
    /// Starts a proxy for the server on this port.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let traffic = Arc::<Mutex<Traffic>>::default();
        let shared = Arc::clone(&traffic);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // If the server is away, the client is refused.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) {
                    connect(client, server, &shared);
                }
            }
        });
        Self { port, traffic }
    }

    /// Returns the address of a database through the proxy, from its address at the server.
    pub(crate) fn address_of(&self, address: &str) -> String {
        let (_, database) = address.rsplit_once('/').unwrap();
        format!("postgres://forge@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Loses the next request that contains this text, or the answer to it. Of several losses, the
    /// first one is next.
    pub(crate) fn lose(&self, lost: Lost, text: &'static str) {
        lock(&self.traffic).losses.push((lost, text));
    }

    /// Returns whether everything that was to be lost was lost.
    pub(crate) fn has_lost_all(&self) -> bool {
        lock(&self.traffic).losses.is_empty()
    }

    /// Loses nothing more.
    pub(crate) fn forget(&self) {
        lock(&self.traffic).losses.clear();
    }

    /// Cuts all connections. A session of the server that is busy does not notice it yet.
    pub(crate) fn cut(&self) {
        for stream in lock(&self.traffic).streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn lock(traffic: &Mutex<Traffic>) -> MutexGuard<'_, Traffic> {
    traffic.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(client: TcpStream, server: TcpStream, traffic: &Arc<Mutex<Traffic>>) {
    let copy = |stream: &TcpStream| stream.try_clone().unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    lock(traffic).streams.extend([copy(&client), copy(&server)]);
    let loses_answer = Arc::new(AtomicBool::new(false));
    let (traffic, is_lost) = (Arc::clone(traffic), Arc::clone(&loses_answer));
    let (from, to) = (copy(&client), copy(&server));
    thread::spawn(move || {
        pass(from, to, |bytes| {
            let mut traffic = lock(&traffic);
            let lost = traffic.losses.first().filter(|(_, text)| contains(bytes, text)).copied();
            if lost.is_some() {
                traffic.losses.remove(0);
            }
            is_lost.fetch_or(matches!(lost, Some((Lost::Answer, _))), Ordering::SeqCst);
            !matches!(lost, Some((Lost::Request, _)))
        });
    });
    thread::spawn(move || pass(server, client, |_| !loses_answer.load(Ordering::SeqCst)));
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Passes bytes on until one side closes, or until a part must not pass.
fn pass(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
        && may_pass(&buffer[..length])
        && to.write_all(&buffer[..length]).is_ok()
    {}
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
