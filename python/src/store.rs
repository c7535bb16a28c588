//! The class `Store`.

use crate::error::{exception, invalid, of_kind};
use crate::handle::StoreHandle;
use crate::place::{self, PlaceError};
use forge_store::error::{Error, ErrorKind};
use forge_store::{Options, Redactor};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An open store.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Store {
    pub(crate) handle: Arc<StoreHandle>,
}

#[pymethods]
impl Store {
    /// Opens the store at a path, or the nearest one; creates it if that is asked for.
    #[staticmethod]
    #[pyo3(signature = (path=None, *, create=false, read_only=false, redact=true, allow=Vec::new(), sealed=true, encrypted=false, lock_timeout=5.0))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        create: bool,
        read_only: bool,
        redact: bool,
        allow: Vec<String>,
        sealed: bool,
        encrypted: bool,
        lock_timeout: f64,
    ) -> PyResult<Self> {
        let options = options(py, redact, &allow, lock_timeout)?
            .read_only(read_only)
            .keyring(place::keyring().filter(|_| sealed || !create))
            .encrypted(encrypted);
        let path = place::store_folder(path, create && !read_only)
            .map_err(|error| place_exception(py, error))?;
        let opened = py.detach(|| match create {
            true => forge_store::Store::open_or_create(&path, options.clone()),
            false => forge_store::Store::open(&path, options.clone()),
        });
        let store = opened.map_err(|error| match error {
            Error::NoStore { path } => of_kind(
                py,
                ErrorKind::NotFound,
                &format!("there is no store at '{}'", path.display()),
                "name another path, or make one with create=True",
            ),
            other => exception(py, &other),
        })?;
        Ok(Self { handle: Arc::new(StoreHandle::new(store, options)) })
    }

    /// Makes a store in memory.
    #[staticmethod]
    #[pyo3(signature = (*, redact=true, allow=Vec::new()))]
    fn in_memory(py: Python<'_>, redact: bool, allow: Vec<String>) -> PyResult<Self> {
        let options = options(py, redact, &allow, 5.0)?;
        let store = forge_store::Store::in_memory_with(options.clone())
            .map_err(|error| exception(py, &error))?;
        Ok(Self { handle: Arc::new(StoreHandle::new(store, options)) })
    }

    /// The folder of the store; `None` if it is in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.handle.path().map(PathBuf::from)
    }

    /// Whether the store was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Closes the store.
    fn close(&self, py: Python<'_>) {
        self.handle.close(py);
    }
}

fn options(py: Python<'_>, redact: bool, allow: &[String], lock_timeout: f64) -> PyResult<Options> {
    let timeout = Duration::try_from_secs_f64(lock_timeout).map_err(|_| {
        invalid(py, &format!("lock_timeout={lock_timeout} is no time"), "give seconds, at least 0")
    })?;
    let redactor = redact.then(|| Arc::new(Redactor::new().allow(allow)));
    Ok(Options::default().lock_timeout(timeout).redaction(redactor))
}

fn place_exception(py: Python<'_>, error: PlaceError) -> PyErr {
    match error {
        PlaceError::Missing(what, next) => of_kind(py, ErrorKind::NotFound, &what, next),
        PlaceError::Refused(what, next) => of_kind(py, ErrorKind::Invalid, &what, next),
        PlaceError::Io(what, error) => {
            let what = format!("{what}: {error}");
            of_kind(py, ErrorKind::Unavailable, &what, "mend that and retry")
        }
    }
}
