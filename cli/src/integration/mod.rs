//! Integration with coding agents: entries in the agent's own files, and their removal.
//!
//! * [`agent`]: the wanted content of the files of each agent.
//! * [`json`], [`toml`], [`section`]: edit such files in place.
//! * [`splice`], [`receipt`]: record what was changed, so that exactly that is undone.
//! * [`plan`]: the current and the wanted state of files; [`file`](mod@file) reads and writes them.
//! * [`detect`]: finds forge's entries, from the files alone; [`fault`]: finds their faults.
//! * [`permission_rules`]: the commands that an agent may run without asking. [`binary`]: programs
//!   on the path.

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

/// The beginning of a file that belongs to forge alone.
pub const OWN_MARK: &str = "Written by 'forge hooks install'";
