//! What makes forge part of a coding agent: entries in the agent's own files, and their way back.
//!
//! * [`agent`]: what is wanted in which file of which agent.
//! * [`json`], [`toml`], [`section`]: changing such a file in place.
//! * [`splice`], [`receipt`]: what was changed, so that exactly that is taken back.
//! * [`plan`]: what a file is and would be; [`file`](mod@file) reads and writes it.
//! * [`detect`]: what is there of forge, told from the files alone; [`fault`]: what is wrong with it.
//! * [`permission_rules`]: the commands an agent may run unasked. [`binary`]: programs on the path.

pub mod agent;
pub mod binary;
pub mod detect;
pub mod fault;
pub mod file;
pub mod json;
pub mod permission_rules;
pub mod plan;
pub mod receipt;
pub mod section;
pub mod splice;
pub mod toml;

/// What begins a file that is forge's alone.
pub const OWN_MARK: &str = "Written by 'forge hooks install'";
