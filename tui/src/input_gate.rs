//! A gate for the thread that reads keys: it is closed while another program uses the terminal.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait for a key. A program that needs the terminal waits at most this long.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    is_reading: bool,
}

/// Lets a thread read keys only while the gate is open.
#[derive(Debug, Default)]
pub(crate) struct InputGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

impl InputGate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gate is open, then runs a read.
    fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        let closed = |state: &mut GateState| state.is_closed;
        let state = self.changed.wait_while(self.state(), closed);
        state.unwrap_or_else(PoisonError::into_inner).is_reading = true;
        let read = read();
        self.state().is_reading = false;
        self.changed.notify_all();
        read
    }

    /// Closes the gate, and waits until nothing is read any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let reading = |state: &mut GateState| state.is_reading;
        drop(self.changed.wait_while(state, reading));
    }

    pub(crate) fn open(&self) {
        self.state().is_closed = false;
        self.changed.notify_all();
    }

    /// Returns the next event of the terminal; `None` if none comes within [`POLL`]. Waits first
    /// until the gate is open.
    pub(crate) fn next(&self) -> std::io::Result<Option<crossterm::event::Event>> {
        self.reading(|| match crossterm::event::poll(POLL)? {
            true => crossterm::event::read().map(Some),
            false => Ok(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn nothing_is_read_while_the_gate_is_closed() {
        let gate = Arc::new(InputGate::default());
        gate.close();
        let (sender, read) = mpsc::channel();
        let reader = Arc::clone(&gate);
        let thread = thread::spawn(move || reader.reading(|| sender.send(())));
        assert_eq!(read.try_recv(), Err(mpsc::TryRecvError::Empty));
        gate.open();
        assert_eq!(read.recv(), Ok(()));
        thread.join().expect("the reader ends").expect("it is received");
        // Nothing is being read, so closing does not wait.
        gate.close();
    }
}
