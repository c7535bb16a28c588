//! The class `Mirror`: transcripts that the Claude Agent SDK hands over, for `forge_store.claude`.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive as values")]

use crate::handle::StoreHandle;
use crate::store::Store;
use crate::watch::detached;
use forge_agents::{MirrorKey, TranscriptMirror};
use forge_store::error::Error;
use forge_store::{Timestamp, WriteContext};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// The project, the session, and the path of a transcript below the session.
type KeyArgument = (String, String, Option<String>);

/// The session, when it was last written (in milliseconds since 1970), and its summary.
type ListedResult = (String, i64, Option<String>);

/// The transcripts in a store that are handed over line by line.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Mirror(Arc<StoreHandle>);

impl Mirror {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(TranscriptMirror<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let store = self.0.store(py)?;
        detached(py, || read(TranscriptMirror::new(&store)))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        verb: &str,
        write: impl FnOnce(TranscriptMirror<'_>, &WriteContext) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let store = self.0.writable(py)?;
        let context = WriteContext::asked(verb, Timestamp::now());
        detached(py, || write(TranscriptMirror::new(&store), &context))
    }
}

fn key_of((project, session, subpath): KeyArgument) -> MirrorKey {
    MirrorKey { project, session, subpath }
}

#[pymethods]
impl Mirror {
    #[new]
    fn new(store: &Store) -> Self {
        Self(Arc::clone(&store.handle))
    }

    /// Returns the lines as they are stored: without their secrets, if the store redacts.
    fn clean(&self, py: Python<'_>, lines: Vec<String>) -> PyResult<Vec<String>> {
        self.read(py, |mirror| Ok(lines.iter().map(|line| mirror.clean(line)).collect()))
    }

    /// Returns the position of the next line in bytes, whether all lines were deleted, and the
    /// summary; `None` if the transcript was never stored.
    fn state(
        &self,
        py: Python<'_>,
        key: KeyArgument,
    ) -> PyResult<Option<(u64, bool, Option<String>)>> {
        self.read(py, |mirror| {
            let state = mirror.state(&key_of(key))?;
            Ok(state.map(|state| (state.end, state.is_empty, state.summary)))
        })
    }

    /// Returns at most `length` of the last bytes of a transcript.
    fn tail<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tail = self.read(py, |mirror| mirror.tail(&key_of(key), length))?;
        Ok(PyBytes::new(py, &tail))
    }

    /// Returns all lines of a transcript; `None` if it has none.
    fn lines<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let lines = self.read(py, |mirror| mirror.lines(&key_of(key)))?;
        Ok(lines.map(|lines| PyBytes::new(py, &lines)))
    }

    #[pyo3(signature = (key, end, lines, summary=None))]
    fn append(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        end: u64,
        lines: &str,
        summary: Option<String>,
    ) -> PyResult<()> {
        self.write(py, "transcript append", |mirror, context| {
            mirror.append(context, &key_of(key), end, lines, summary)
        })
    }

    fn delete(&self, py: Python<'_>, key: KeyArgument) -> PyResult<()> {
        self.write(py, "transcript delete", |mirror, context| mirror.delete(context, &key_of(key)))
    }

    fn sessions(&self, py: Python<'_>, project: &str) -> PyResult<Vec<ListedResult>> {
        self.read(py, |mirror| {
            let listed = mirror.sessions(project)?.into_iter();
            Ok(listed.map(|one| (one.session, one.written_at, one.summary)).collect())
        })
    }

    fn subpaths(&self, py: Python<'_>, key: KeyArgument) -> PyResult<Vec<String>> {
        self.read(py, |mirror| mirror.subpaths(&key_of(key)))
    }
}
