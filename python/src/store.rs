//! The class `Store`.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive as values")]

use crate::database::{self, place_in_database};
use crate::error::{exception, invalid, of_kind};
use crate::handle::{StoreHandle, StorePlace};
use crate::place::{self, PlaceError, StoreFolder};
use crate::plain::{PlainValue, plain_map, time_from};
use crate::session::{Session, summary_fields};
use crate::watch::{detached, watched};
use forge_store::admin::{SealStatus, VerifyDepth, VerifyOutcome};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::SessionKind;
use forge_store::redact::unknown_kind;
use forge_store::store::BundleRange;
use forge_store::{Options, Redactor, SearchQuery, Timestamp, WriteContext};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
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
    /// Opens the store at a path, in a database, or the nearest one. With `create` it is created if
    /// it does not exist.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        name: Option<String>,
        arguments: OpenArguments,
    ) -> PyResult<Self> {
        if let Some((connections, name)) = place_in_database(py, path.as_deref(), name)? {
            let database = connections.named(py, &name)?;
            if arguments.create && !arguments.read_only {
                let options = arguments.options(py)?.keyring(arguments.new_keyring());
                detached(py, || match database.marker()? {
                    Some(_) => Ok(()),
                    None => forge_store::Store::open_or_create_at(&database, options).map(drop),
                })?;
            }
            let place = StorePlace::Database(Arc::new(connections), name);
            return Self::open_in_database(py, place, &arguments);
        }
        let may_create = arguments.create && !arguments.read_only;
        let folder = place::store_folder(path, may_create);
        let folder = folder.map_err(|error| place_exception(py, error))?;
        check_database_named(py, &folder)?;
        let options = arguments.options(py)?.keyring(place::keyring());
        let options = options.connector(folder.is_named.then(database::connector));
        let path = folder.path;
        let opened = py.detach(|| match forge_store::Store::open(&path, options.clone()) {
            Err(Error::NoStore { .. }) if may_create => {
                // Only a new store can be without seals. An existing one needs its key.
                let keyring = place::keyring().filter(|_| arguments.sealed.unwrap_or(true));
                forge_store::Store::open_or_create(&path, options.clone().keyring(keyring))
            }
            opened => opened,
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
        arguments.check_protection(py, &store)?;
        let place = StorePlace::Folder(path);
        Ok(Self::wrap(StoreHandle::new(store, place, options, arguments.checkpoints)))
    }

    /// Makes a store in memory.
    #[staticmethod]
    #[pyo3(signature = (*, redact=true, allow=Vec::new(), checkpoints=true))]
    fn in_memory(
        py: Python<'_>,
        redact: bool,
        allow: Vec<String>,
        checkpoints: bool,
    ) -> PyResult<Self> {
        let options = options(py, redact, &allow, 5.0)?;
        let store = forge_store::Store::in_memory_with(options.clone())
            .map_err(|error| exception(py, &error))?;
        Ok(Self::wrap(StoreHandle::new(store, StorePlace::Memory, options, checkpoints)))
    }

    /// The address of the database that holds the store, and its name there; `None` if it is in
    /// files or in memory.
    #[getter]
    fn database(&self) -> Option<(String, String)> {
        let place = self.handle.database()?;
        Some((place.address.clone(), place.name.clone()))
    }

    /// The folder of the store; `None` if it has none.
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

    /// Makes all writes durable, also those that did not wait for a sync.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.handle.store(py)?;
        detached(py, || store.sync())
    }

    /// Returns whether the store is sealed and encrypted.
    fn about(&self, py: Python<'_>) -> PyResult<PlainValue> {
        let store = self.handle.store(py)?;
        Ok(plain_map! {
            "seals": match store.seal_status() {
                SealStatus::Unsealed => "unsealed",
                SealStatus::Sealed => "sealed",
                SealStatus::NoKey => "no_key",
                SealStatus::NoWitness => "no_witness",
            },
            "encrypted": store.is_encrypted(),
        })
    }

    /// Returns the session with this name, or creates it. Without a name, returns the current one.
    #[pyo3(signature = (name=None, create=true))]
    fn session(&self, py: Python<'_>, name: Option<String>, create: bool) -> PyResult<Session> {
        let store = if create { self.handle.writable(py)? } else { self.handle.store(py)? };
        let now = Timestamp::now();
        let id = detached(py, || {
            let session = match name {
                None => store
                    .current_session()?
                    .ok_or_else(|| Error::invalid("this store has no session yet: give a name"))?,
                Some(name) if create => {
                    let context = WriteContext::asked("session new", now);
                    forge_systems::open_or_create(&store, &context, SessionKind::Debug, &name)?
                }
                Some(name) => store.session(&name)?,
            };
            Ok(session.summary()?.info.id.to_string())
        })?;
        Ok(Session { handle: Arc::clone(&self.handle), id })
    }

    /// Returns the sessions of all kinds.
    fn sessions(&self, py: Python<'_>) -> PyResult<PlainValue> {
        let store = self.handle.store(py)?;
        detached(py, || {
            Ok(PlainValue::List(store.sessions()?.into_iter().map(summary_fields).collect()))
        })
    }

    /// Brings back the session of this kind and name that was dropped last.
    fn restore_session(&self, py: Python<'_>, name: &str, kind: &str) -> PyResult<Session> {
        let store = self.handle.writable(py)?;
        let context = WriteContext::asked("session restore", Timestamp::now());
        let id = detached(py, || {
            let known = SessionKind::ALL.into_iter().find(|one| one.name() == kind);
            let kind = known.ok_or_else(|| {
                let kinds = SessionKind::ALL.map(SessionKind::name).join(", ");
                Error::invalid(format!("'{kind}' is not a kind of session: use one of {kinds}"))
            })?;
            let dropped = store.dropped_session(kind, name)?;
            let dropped = dropped.ok_or_else(|| Error::not_found("dropped session", name))?;
            dropped.undo(&context, None)?;
            Ok(dropped.summary()?.info.id.to_string())
        })?;
        Ok(Session { handle: Arc::clone(&self.handle), id })
    }

    /// Searches these sessions, or all sessions.
    #[pyo3(signature = (words, sessions=None, kinds=Vec::new(), since=None, until=None, limit=20, cursor=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn search(
        &self,
        py: Python<'_>,
        words: &str,
        sessions: Option<Vec<String>>,
        kinds: Vec<String>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        limit: usize,
        cursor: Option<String>,
    ) -> PyResult<PlainValue> {
        let since = since.map(time_from).transpose()?;
        let until = until.map(time_from).transpose()?;
        let store = self.handle.store(py)?;
        let sessions = sessions
            .map(|ids| {
                ids.iter().map(|id| self.handle.session(py, id)).collect::<PyResult<Vec<_>>>()
            })
            .transpose()?;
        detached(py, || {
            let mut query = SearchQuery::parse(words)?;
            query.kinds =
                kinds.iter().map(|kind| crate::moment::kind_of(kind)).collect::<Result<_, _>>()?;
            (query.since, query.until, query.limit, query.cursor) = (since, until, limit, cursor);
            let page = match &sessions {
                None => store.search_all(&query, &forge_agents::resolve)?,
                Some(sessions) => store.search(sessions, &query, &forge_agents::resolve)?,
            };
            let hits = page.hits.into_iter().map(|hit| {
                let kind = hit.kind_word();
                plain_map! {
                    "session": hit.session,
                    "kind": kind,
                    "id": hit.id,
                    "at": hit.at,
                    "revision": hit.revision,
                    "snippet": hit.snippet,
                }
            });
            Ok(plain_map! {
                "hits": hits.collect::<Vec<_>>(),
                "cursor": page.cursor,
                "total": page.total,
            })
        })
    }

    /// Checks the store: quickly, or with `full` all its data.
    #[pyo3(signature = (full=false, progress=None))]
    fn verify(
        &self,
        py: Python<'_>,
        full: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let store = self.handle.store(py)?;
        let path = match store.database() {
            Some(_) => None,
            None => Some(self.folder(py, "verify")?),
        };
        let depth = if full { VerifyDepth::ReadData } else { VerifyDepth::Quick };
        let now = Timestamp::now();
        watched(py, progress, move || {
            let keyring = place::keyring();
            let report = match path {
                Some(path) => forge_store::Store::verify(&path, depth, now, keyring.as_deref())?,
                None => store.verify_in_database(depth)?,
            };
            let findings = report.findings.into_iter().map(|finding| {
                plain_map! {
                    "place": finding.place,
                    "problem": finding.problem,
                    "rebuildable": finding.derived,
                }
            });
            Ok(plain_map! {
                "outcome": match report.outcome {
                    VerifyOutcome::Clean => "clean",
                    VerifyOutcome::Repairable => "repairable",
                    VerifyOutcome::Loss => "loss",
                    VerifyOutcome::Forged => "forged",
                },
                "findings": findings.collect::<Vec<_>>(),
                "records": report.checked.records,
                "revisions": report.checked.revisions,
            })
        })
    }

    /// Copies the store to a folder. Others may write to the store meanwhile.
    #[pyo3(signature = (to, progress=None))]
    fn backup(
        &self,
        py: Python<'_>,
        to: PathBuf,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let path = self.folder(py, "backup")?;
        let now = Timestamp::now();
        watched(py, progress, move || {
            let keyring = place::keyring();
            let report = forge_store::Store::backup(&path, &to, now, keyring.as_deref())?;
            Ok(plain_map! { "revisions": report.revisions, "waiting": report.waiting })
        })
    }

    /// Writes these sessions, or all sessions, as one file. Calls `progress` with the bytes
    /// written; an exception from it ends the export.
    #[pyo3(signature = (to, sessions=None, progress=None))]
    fn export_bundle(
        &self,
        py: Python<'_>,
        to: PathBuf,
        sessions: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PlainValue> {
        let store = self.handle.store(py)?;
        let sessions = match sessions {
            Some(ids) => {
                ids.iter().map(|id| self.handle.session(py, id)).collect::<PyResult<Vec<_>>>()?
            }
            None => detached(py, || store.every_session())?,
        };
        let ranges: Vec<_> = sessions
            .into_iter()
            .map(|session| BundleRange { session, from: 0, to: None })
            .collect();
        py.detach(|| write_bundle(&store, &ranges, &to, progress.as_ref())).map_err(|error| {
            match error {
                ExportError::Store(error) => exception(py, &error),
                ExportError::Python(error) => error,
                ExportError::Io(what, error) => of_kind(
                    py,
                    ErrorKind::Unavailable,
                    &format!("{what} '{}': {error}", to.display()),
                    "correct this and retry; no bundle was written",
                ),
            }
        })
    }

    /// Imports the sessions of a bundle.
    #[pyo3(signature = (source, name=None, progress=None))]
    fn import_bundle(
        &self,
        py: Python<'_>,
        source: PathBuf,
        name: Option<String>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let mut file = File::open(&source).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Unavailable,
            };
            let what = format!("cannot open the bundle '{}': {error}", source.display());
            of_kind(py, kind, &what, "name a file that 'export_bundle' has written")
        })?;
        let store = self.handle.writable(py)?;
        let now = Timestamp::now();
        watched(py, progress, move || {
            let context = WriteContext::asked("bundle import", now);
            let source = source.display().to_string();
            let done = store.import_bundle_file(&context, &mut file, &source, name.as_deref())?;
            Ok(plain_map! {
                "sessions": done.sessions,
                "records": done.records,
                "known": done.known,
            })
        })
    }

    /// Removes what was pruned before a time. These prunings cannot be undone any more.
    #[pyo3(signature = (until, progress=None))]
    fn sweep(
        &self,
        py: Python<'_>,
        until: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let until = time_from(until)?;
        let store = self.handle.maintainable(py)?;
        let now = Timestamp::now();
        watched(py, progress, move || {
            let done = store.sweep(now, until)?;
            Ok(plain_map! { "prunings": done.prunings, "values": done.values })
        })
    }
}

impl Store {
    /// Opens a store that is in a database.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened, or an argument is not valid.
    pub(crate) fn open_in_database(
        py: Python<'_>,
        place: StorePlace,
        arguments: &OpenArguments,
    ) -> PyResult<Self> {
        let options = arguments.options(py)?.keyring(arguments.known_keyring());
        let store = place.open(py, &options)?;
        arguments.check_protection(py, &store)?;
        Ok(Self::wrap(StoreHandle::new(store, place, options, arguments.checkpoints)))
    }

    fn wrap(handle: StoreHandle) -> Self {
        Self { handle: Arc::new(handle) }
    }

    fn folder(&self, py: Python<'_>, what: &str) -> PyResult<PathBuf> {
        self.handle.store(py)?;
        if let Some(path) = self.handle.path() {
            return Ok(path.to_owned());
        }
        Err(match self.handle.database() {
            Some(place) => {
                let problem = format!("'{what}' is for stores in files, and this is {place}");
                invalid(py, &problem, "use 'export_bundle', or back up the database")
            }
            None => {
                let problem = format!("a store in memory has no files for '{what}'");
                invalid(py, &problem, "open a store in a folder")
            }
        })
    }
}

enum ExportError {
    Store(Error),
    Python(PyErr),
    Io(&'static str, std::io::Error),
}

impl From<Error> for ExportError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Writes a bundle. The file has another name until it is complete.
fn write_bundle(
    store: &forge_store::Store,
    ranges: &[BundleRange],
    to: &std::path::Path,
    progress: Option<&Py<PyAny>>,
) -> Result<PlainValue, ExportError> {
    let io = |error| ExportError::Io("cannot write", error);
    // A link stays a link: its target is replaced.
    let to = std::fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
    if std::fs::metadata(&to).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Err(io(std::io::Error::other("it is a pipe or a device, not a file")));
    }
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    // If the file is there, another thread is writing it. The content of a store is private.
    let file = File::options().write(true).create_new(true).mode(0o600).open(&part);
    let mut file = BufWriter::new(file.map_err(io)?);
    let write = || -> Result<PlainValue, ExportError> {
        let mut written = 0;
        let report = store.export_bundle::<ExportError>(ranges, &mut |bytes| {
            file.write_all(bytes).map_err(io)?;
            written += bytes.len() as u64;
            let Some(progress) = progress else { return Ok(()) };
            Python::attach(|py| {
                py.check_signals()?;
                progress.call1(py, (written,)).map(drop)
            })
            .map_err(ExportError::Python)
        })?;
        file.into_inner().map_err(|error| io(error.into_error()))?.sync_all().map_err(io)?;
        std::fs::rename(&part, &to).map_err(io)?;
        Ok(plain_map! {
            "sessions": report.sessions,
            "records": report.records,
            "bytes": report.bytes,
        })
    };
    write().inspect_err(|_| {
        // If the removal fails, the name of the file says that it is a part.
        let _ = std::fs::remove_file(&part);
    })
}

/// How a store is opened: the keywords of `forge_store.open`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct OpenArguments {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    redact: bool,
    allow: Vec<String>,
    sealed: Option<bool>,
    encrypted: bool,
    lock_timeout: f64,
    checkpoints: bool,
}

impl OpenArguments {
    /// Returns the options, without a keyring.
    ///
    /// # Errors
    /// If a keyword is not valid.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<Options> {
        if self.encrypted && self.sealed == Some(false) {
            return Err(invalid(py, "an encrypted store is sealed too", "leave out sealed=False"));
        }
        let options = options(py, self.redact, &self.allow, self.lock_timeout)?;
        Ok(options.read_only(self.read_only).encrypted(self.encrypted))
    }

    /// Refuses an existing store that was made without the protection which the caller wants.
    fn check_protection(&self, py: Python<'_>, store: &forge_store::Store) -> PyResult<()> {
        let missing = if self.encrypted && !store.is_encrypted() {
            "encrypted"
        } else if self.sealed == Some(true) && store.seal_status() == SealStatus::Unsealed {
            "sealed"
        } else {
            return Ok(());
        };
        let what = format!("the store is not {missing}");
        let next = format!(
            "open it without {missing}=True, or move its sessions to a new store with \
            export_bundle and import_bundle"
        );
        Err(invalid(py, &what, &next))
    }

    /// Returns the keyring for a new store in a database; `None` if the store is to have no seals.
    pub(crate) fn new_keyring(&self) -> Option<PathBuf> {
        place::keyring().filter(|_| self.sealed.unwrap_or(self.encrypted))
    }

    /// Returns the keyring for an existing store in a database, if the folder of the keyring
    /// exists. The folder is not created, because many processes that use a database have no
    /// lasting folder.
    fn known_keyring(&self) -> Option<PathBuf> {
        place::keyring().filter(|folder| folder.is_dir())
    }
}

/// Refuses to connect to the database that a folder names, if only a search found the folder.
fn check_database_named(py: Python<'_>, folder: &StoreFolder) -> PyResult<()> {
    if folder.is_named {
        return Ok(());
    }
    // An error of the folder is reported when the store is opened.
    let Ok(Some(place)) = forge_store::Store::database_of(&folder.path) else { return Ok(()) };
    let what = format!("the store that was found at '{}' is {place}", folder.path.display());
    let next = "if you made that folder, name it as the path: one that came with a project could \
                name a server that collects passwords";
    Err(invalid(py, &what, next))
}

fn options(py: Python<'_>, redact: bool, allow: &[String], lock_timeout: f64) -> PyResult<Options> {
    let timeout = Duration::try_from_secs_f64(lock_timeout).map_err(|_| {
        let what = format!("lock_timeout={lock_timeout} is not a valid time");
        invalid(py, &what, "give seconds, at least 0")
    })?;
    if let Some(kind) = allow.iter().find_map(|entry| unknown_kind(entry)) {
        let what = format!("there is no kind of secrets '{kind}'");
        let next = "'forge redact --list' shows the kind of each secret in a text";
        return Err(invalid(py, &what, next));
    }
    let redactor = redact.then(|| Arc::new(Redactor::new().allow(allow)));
    Ok(Options::default().lock_timeout(timeout).redaction(redactor))
}

fn place_exception(py: Python<'_>, error: PlaceError) -> PyErr {
    match error {
        PlaceError::Missing(what, next) => of_kind(py, ErrorKind::NotFound, &what, next),
        PlaceError::Refused(what, next) => of_kind(py, ErrorKind::Invalid, &what, next),
        PlaceError::Io(what, error) => {
            let what = format!("{what}: {error}");
            of_kind(py, ErrorKind::Unavailable, &what, "correct this and retry")
        }
    }
}
