//! An open store that threads share, that can be closed, and that also works after a `fork`.

use crate::database::{DatabaseConnections, open_exception};
use crate::error::{exception, of_kind};
use forge_store::admin::MaintenanceThread;
use forge_store::error::ErrorKind;
use forge_store::store::database::DatabasePlace;
use forge_store::{Options, Session, Store};
use forge_systems::graph::GraphStore;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The process that imported the module. A process that is forked from it has none of RocksDB's
/// background threads, so it cannot write an index in files.
static FIRST_PROCESS: OnceLock<u32> = OnceLock::new();

/// Notes the process that imports the module.
pub(crate) fn note_process() {
    FIRST_PROCESS.get_or_init(process::id);
}

/// Where a store is. A forked process opens the store there again.
pub(crate) enum StorePlace {
    Memory,
    Folder(PathBuf),
    /// The store of this name in a database.
    Database(Arc<DatabaseConnections>, String),
}

impl StorePlace {
    /// Opens the store with these options.
    ///
    /// # Errors
    /// If the store does not exist, is in memory, or cannot be opened.
    pub(crate) fn open(&self, py: Python<'_>, options: &Options) -> PyResult<Store> {
        let opened = match self {
            Self::Memory => {
                let what = "a store in memory belongs to the process that made it";
                let next = "use a store in a folder to share it";
                return Err(of_kind(py, ErrorKind::Invalid, what, next));
            }
            Self::Folder(path) => py.detach(|| Store::open(path, options.clone())),
            Self::Database(connections, name) => {
                let database = connections.named(py, name)?;
                py.detach(|| Store::at(&database, options.clone()))
            }
        };
        opened.map_err(|error| open_exception(py, &error))
    }
}

/// What one process has open.
struct OpenStore {
    store: Store,
    /// The sessions that were used, by id.
    sessions: HashMap<String, Session>,
    /// The stored graphs of agent frameworks.
    graphs: GraphStore,
    /// The thread that maintains the index; it starts with the first write.
    maintenance: Option<MaintenanceThread>,
}

/// A value of one process. A forked process neither uses nor drops its copy: the threads of the
/// value do not exist there, its locks may stay locked for ever, and the parent process still uses
/// its connections.
struct ProcessOwned<T> {
    process: u32,
    value: Option<T>,
}

impl<T> ProcessOwned<T> {
    fn new(value: T) -> Self {
        Self { process: process::id(), value: Some(value) }
    }

    fn get(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.process == process::id())
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.value.take());
        }
    }
}

/// A store that several Python objects share.
///
/// The mutex is only locked while the interpreter is held, and never across work in the store.
/// `os.fork` holds the interpreter too, so a child never finds the mutex locked.
pub(crate) struct StoreHandle {
    place: StorePlace,
    database: Option<DatabasePlace>,
    options: Options,
    /// Whether events make checkpoints.
    checkpoints: bool,
    opened: Mutex<Option<ProcessOwned<OpenStore>>>,
}

impl StoreHandle {
    /// Wraps a store that was just opened at this place with these options.
    pub(crate) fn new(
        store: Store,
        place: StorePlace,
        options: Options,
        checkpoints: bool,
    ) -> Self {
        let database = store.database().map(|database| database.place().clone());
        let opened = Mutex::new(Some(ProcessOwned::new(OpenStore::new(store))));
        Self { place, database, options, checkpoints, opened }
    }

    /// Returns whether events make checkpoints.
    pub(crate) const fn makes_checkpoints(&self) -> bool {
        self.checkpoints
    }

    /// Returns the folder of the store; `None` if it has none.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            StorePlace::Folder(path) => Some(path),
            StorePlace::Memory | StorePlace::Database(..) => None,
        }
    }

    /// Returns the place of the store in a database; `None` if it is in files or in memory.
    pub(crate) const fn database(&self) -> Option<&DatabasePlace> {
        self.database.as_ref()
    }

    /// Returns whether this process cannot write the index, because it was forked.
    fn lacks_threads(&self) -> bool {
        self.database.is_none() && FIRST_PROCESS.get().is_some_and(|first| *first != process::id())
    }

    /// Returns the store, for reading.
    ///
    /// # Errors
    /// If it is closed, or cannot be opened again in a forked process.
    pub(crate) fn store(&self, py: Python<'_>) -> PyResult<Store> {
        self.with(py, |opened| opened.store.clone())
    }

    /// Returns the store, for writing: from now on a thread of this process maintains the index.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) fn writable(&self, py: Python<'_>) -> PyResult<Store> {
        self.with(py, |opened| {
            if opened.maintenance.is_none() && !self.lacks_threads() && !self.options.read_only {
                opened.maintenance = Some(opened.store.maintainer());
            }
            opened.store.clone()
        })
    }

    /// Returns the stored graphs of agent frameworks, for writing.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) fn graphs(&self, py: Python<'_>) -> PyResult<GraphStore> {
        self.writable(py)?;
        self.with(py, |opened| opened.graphs.clone())
    }

    /// Returns the store, for work that writes the index.
    ///
    /// # Errors
    /// As [`Self::store`]; also if this process was forked from one that imported the module.
    pub(crate) fn maintainable(&self, py: Python<'_>) -> PyResult<Store> {
        if self.lacks_threads() {
            let what = "a forked process cannot write the index of a store";
            let next = "do this in the process that imported forge_store, or start processes with \
                        the method 'spawn'";
            return Err(of_kind(py, ErrorKind::Unavailable, what, next));
        }
        self.writable(py)
    }

    /// Returns the session with this id.
    ///
    /// # Errors
    /// As [`Self::store`]; also if there is no such session.
    pub(crate) fn session(&self, py: Python<'_>, id: &str) -> PyResult<Session> {
        let known = self.with(py, |opened| opened.sessions.get(id).cloned())?;
        if let Some(known) = known.filter(|known| !known.is_removed()) {
            return Ok(known);
        }
        let store = self.store(py)?;
        let found = py.detach(|| store.session(id)).map_err(|error| exception(py, &error))?;
        self.with(py, |opened| opened.sessions.insert(id.to_owned(), found.clone()))?;
        Ok(found)
    }

    /// Closes the store. Calls that still run in other threads complete.
    pub(crate) fn close(&self, py: Python<'_>) {
        let opened = self.lock().take();
        // This waits for the maintenance thread, which may be at work.
        py.detach(|| drop(opened));
    }

    /// Returns whether the store was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ProcessOwned<OpenStore>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with what this process has open; opens the store again after a fork.
    fn with<T>(&self, py: Python<'_>, read: impl Fn(&mut OpenStore) -> T) -> PyResult<T> {
        let closed = || {
            let next = "open it again with forge_store.open()";
            of_kind(py, ErrorKind::Invalid, "the store is closed", next)
        };
        {
            let mut opened = self.lock();
            let known = opened.as_mut().ok_or_else(closed)?;
            if let Some(own) = known.get() {
                return Ok(read(own));
            }
        }
        let fresh = self.place.open(py, &self.options)?;
        let mut opened = self.lock();
        let known = opened.as_mut().ok_or_else(closed)?;
        if let Some(own) = known.get() {
            // Another thread of this process was quicker.
            return Ok(read(own));
        }
        let mut own = OpenStore::new(fresh);
        let value = read(&mut own);
        *known = ProcessOwned::new(own);
        Ok(value)
    }
}

impl OpenStore {
    fn new(store: Store) -> Self {
        let graphs = GraphStore::new(store.clone());
        Self { store, sessions: HashMap::new(), graphs, maintenance: None }
    }
}
