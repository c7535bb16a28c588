//! Test support for forge's own tests.

pub mod audit;
pub mod conformance;
pub mod example;
pub mod fault;
pub mod files;
pub mod postgres;
pub mod process;
pub mod secret;
pub mod skip;
pub mod tcp_proxy;
