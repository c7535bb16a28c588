//! The native module of the Python package `forge_store`.
//!
//! It has the classes that need the library, such as stores, sessions and moments. Defaults, typed
//! states and documentation are in the Python code in `python/forge_store`. No class has methods
//! that take `&mut self`, and all work in the store runs without the GIL, so any number of threads
//! may share one store.

mod database;
mod error;
mod graph;
mod handle;
mod json;
mod memory;
mod mirror;
mod moment;
mod place;
mod plain;
mod session;
mod shards;
mod store;
mod systems;
mod watch;
mod write;

use pyo3::prelude::*;

/// The native part of `forge_store`; use that package instead.
#[pymodule]
fn _forge(module: &Bound<'_, PyModule>) -> PyResult<()> {
    handle::note_process();
    error::add_to(module)?;
    module.add_class::<graph::Graphs>()?;
    module.add_class::<mirror::Mirror>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<moment::SessionMoment>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<shards::Shards>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<systems::NativeRun>()?;
    module.add_class::<systems::NativeProgress>()?;
    module.add_class::<systems::NativeProgram>()?;
    module.add_class::<systems::NativeThread>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
