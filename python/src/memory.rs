//! The class `Memory`: values under keys. Its Python side is `forge_store.memory`.

use crate::json::json_from;
use crate::moment::SessionMoment;
use crate::plain::PlainValue;
use crate::store::Store;
use crate::systems::SystemKey;
use crate::watch::detached;
use forge_systems::memory::{ItemQuery, KeyedMemory, MemoryChanges, MemoryItem, memory_names};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, BTreeSet};

/// A memory of a store.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Memory(SystemKey);

#[pymethods]
impl Memory {
    #[new]
    fn new(store: &Store, name: String) -> Self {
        Self(SystemKey::new(store, name))
    }

    /// Returns the id of its session; `None` before the first write.
    fn session_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.read(py, |store, name| {
            let session = KeyedMemory::new(store.clone(), name)?.session()?;
            session.map(|session| Ok(session.summary()?.info.id.to_string())).transpose()
        })
    }

    #[pyo3(signature = (key, moment=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        moment: Option<Bound<'py, SessionMoment>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let resolved = moment.map(|moment| moment.get().moment.clone());
        let found = self.0.read(py, |store, name| {
            KeyedMemory::new(store.clone(), name)?.get(key, resolved.as_ref())
        })?;
        found.map(|item| item_tuple(py, item)).transpose()
    }

    #[pyo3(signature = (prefix, after=None, limit=None, moment=None))]
    fn items<'py>(
        &self,
        py: Python<'py>,
        prefix: &str,
        after: Option<&str>,
        limit: Option<usize>,
        moment: Option<Bound<'py, SessionMoment>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let resolved = moment.map(|moment| moment.get().moment.clone());
        let found = self.0.read(py, |store, name| {
            let query = ItemQuery { prefix, after, limit };
            KeyedMemory::new(store.clone(), name)?.items(query, resolved.as_ref())
        })?;
        found.into_iter().map(|item| item_tuple(py, item)).collect()
    }

    #[pyo3(signature = (puts, deletes, expected, message=None))]
    fn write(
        &self,
        py: Python<'_>,
        puts: &Bound<'_, PyDict>,
        deletes: BTreeSet<String>,
        expected: BTreeMap<String, Option<u64>>,
        message: Option<String>,
    ) -> PyResult<()> {
        let puts = puts.iter().map(|(key, value)| {
            let key = key.extract::<String>()?;
            let value = json_from(&value, &format!("the value of '{key}'"))?;
            Ok((key, value))
        });
        let puts = puts.collect::<PyResult<_>>()?;
        let changes = MemoryChanges { puts, deletes, expected, message };
        self.0.write(py, "memory write", |store, name, context| {
            KeyedMemory::new(store.clone(), name)?.write(context, &changes)
        })
    }

    fn drop(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.write(py, "memory drop", |store, name, context| {
            KeyedMemory::new(store.clone(), name)?.drop_all(context)
        })
    }

    /// Returns the names of the memories of a store that begin with `prefix`.
    #[staticmethod]
    fn names(py: Python<'_>, store: &Store, prefix: &str) -> PyResult<Vec<String>> {
        let store = store.handle.store(py)?;
        detached(py, || memory_names(&store, prefix))
    }
}

/// Returns an item as a tuple: key, value, version, when it was added, when it was last written.
fn item_tuple(py: Python<'_>, item: MemoryItem) -> PyResult<Bound<'_, PyAny>> {
    let value = PlainValue::from(item.value);
    let (created, updated) = (item.created_at.to_datetime(), item.updated_at.to_datetime());
    let fields = (item.key, value, item.version, created, updated);
    Ok(fields.into_pyobject(py)?.into_any())
}
