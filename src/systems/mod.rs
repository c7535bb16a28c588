//! The other systems: small modules on the store, one a system. Each keeps what it knows in sessions of its own kind,
//! which are never current.

pub mod thread;
