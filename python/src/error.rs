//! The exceptions of the package: one class for each [`ErrorKind`], all under `ForgeError`.

use forge_store::error::{BackendError, Error, ErrorKind};
use pyo3::exceptions::{PyException, PyLookupError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::error::Error as _;

pyo3::create_exception!(_forge, ForgeError, PyException, "Any error of a forge store.");

/// The classes below `ForgeError`, with their documentation. Each is named after its kind.
const CLASSES: [(ErrorKind, &str); 10] = [
    (ErrorKind::NotFound, "The named thing does not exist: name something else."),
    (ErrorKind::Invalid, "The request is not valid: change it."),
    (ErrorKind::Conflict, "A concurrent change of the same thing: read it again and retry."),
    (ErrorKind::Locked, "Another process holds a lock or lease: retry later."),
    (
        ErrorKind::Unavailable,
        "The system refused, for example for lack of space or permission: correct this and retry.",
    ),
    (ErrorKind::Corrupt, "Stored data is damaged: verify and repair."),
    (ErrorKind::Forged, "Stored data was not written by the holder of the store's key."),
    (ErrorKind::Unkeyed, "The key of a sealed or encrypted store is not on this machine."),
    (ErrorKind::Unsupported, "The store needs another version of forge."),
    (ErrorKind::Internal, "A bug in forge: report it."),
];

/// Adds the exceptions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let base = py.get_type::<ForgeError>();
    module.add("ForgeError", &base)?;
    let make = py.get_type::<PyType>();
    for (kind, about) in CLASSES {
        let mut bases = vec![base.clone()];
        match kind {
            ErrorKind::NotFound => bases.push(py.get_type::<PyLookupError>()),
            ErrorKind::Invalid => bases.push(py.get_type::<PyValueError>()),
            _ => {}
        }
        let fields = PyDict::new(py);
        fields.set_item("__doc__", about)?;
        fields.set_item("__module__", "forge_store")?;
        let name = name_of(kind);
        module.add(&name, make.call1((&name, PyTuple::new(py, bases)?, fields))?)?;
    }
    base.setattr("hint", "")?;
    base.setattr("__module__", "forge_store")
}

/// Returns the name of the class of this kind.
fn name_of(kind: ErrorKind) -> String {
    format!("{kind:?}")
}

/// Makes an exception from an error of the library. Its message contains the causes and the hint.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let hint = hint(error);
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = inner.source();
    }
    match error {
        // Most of these messages end with what to do.
        Error::Invalid(_) | Error::Conflict(_) => {
            let (what, next) = message.rsplit_once(": ").unwrap_or((&message, &hint));
            of_kind(py, error.kind(), what, next)
        }
        other => of_kind(py, other.kind(), &message, &hint),
    }
}

/// Makes an exception of this kind. `what` is wrong, and `next` says what to do about it.
pub(crate) fn of_kind(py: Python<'_>, kind: ErrorKind, what: &str, next: &str) -> PyErr {
    let make = || {
        let class = py.import("forge_store._forge")?.getattr(name_of(kind))?;
        let exception = class.call1((format!("{what}; {next}"),))?;
        exception.setattr("hint", next)?;
        Ok(PyErr::from_value(exception))
    };
    make().unwrap_or_else(|error| error)
}

/// Makes an exception for an invalid request.
pub(crate) fn invalid(py: Python<'_>, what: &str, next: &str) -> PyErr {
    of_kind(py, ErrorKind::Invalid, what, next)
}

/// Returns what to do about an error.
fn hint(error: &Error) -> String {
    let fixed = match error {
        Error::NothingAt { other: Some(other), .. } => {
            return format!("the session '{other}' has data for that time");
        }
        Error::NothingAt { .. } => "'start' names the first moment",
        Error::Folded { into, .. } => {
            return format!("name '#{into}', or undo the pruning");
        }
        Error::Ambiguous { .. } => "write more of the id",
        Error::EmptySession { .. } => "record something first, such as session.note('...')",
        Error::NothingToUndo | Error::NothingToRedo => "session.operations() lists what was done",
        Error::NoStore { .. } => "open it with create=True to make one",
        Error::StoreExists { .. } => "name another folder",
        Error::Duplicate { kind: "branch", .. } => "switch to it, or choose another name",
        Error::Duplicate { .. } => "update that one, or give the new one another id",
        Error::Dangling { .. } => "add that first, or name another",
        Error::Held { .. } => "wait for that, or open the store with a longer lock_timeout",
        Error::ReadOnly { .. } => "reading still works; to write, open it without read_only=True",
        Error::Unkeyed { .. } => {
            "'forge key import' restores the key; 'forge adopt' accepts the store as it is"
        }
        Error::DamagedKey { .. } => {
            "restore it from a copy, or import an exported key with 'forge key import'"
        }
        Error::Encrypted => {
            "restore the key with 'forge key import'; without it the store cannot be read"
        }
        Error::Backend(BackendError::Breach { .. }) => {
            "'forge verify' checks the whole store; 'forge repair TO' saves what is undamaged in a \
            new folder"
        }
        Error::Backend(BackendError::Busy { .. }) => {
            "try again, or open the store with a longer lock_timeout"
        }
        full if full.is_disk_full() => {
            "make room on the disk, or prune old history; reading still works"
        }
        other => match other.kind() {
            ErrorKind::NotFound => "name something that exists",
            ErrorKind::Invalid => "correct the request",
            ErrorKind::Conflict => "read it again and retry",
            ErrorKind::Locked => "retry later",
            ErrorKind::Unavailable => "correct this and retry",
            ErrorKind::Corrupt => {
                "'forge verify' checks the whole store; 'forge repair TO' saves what is undamaged \
                in a new folder"
            }
            ErrorKind::Forged => "find out who changed it; 'forge verify' checks the whole store",
            ErrorKind::Unkeyed => "restore the key with 'forge key import'",
            ErrorKind::Unsupported => "install a newer forge",
            ErrorKind::Internal => "this is a bug in forge: report it; what was saved is safe",
        },
    };
    fixed.to_owned()
}
