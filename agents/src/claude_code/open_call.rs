//! Tool calls without results.

use crate::verification::CheckCommandLine;
use forge_store::model::{FieldMap, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tool call that waits for its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCall {
    pub(crate) called_at: Timestamp,
    pub(crate) cwd: Option<String>,
    pub(crate) tool: String,
    #[serde(rename = "asked")]
    pub(crate) request: CallRequest,
}

/// The part of a call's request that its result does not repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallRequest {
    Command {
        command: Value,
        description: Value,
        background: bool,
        commit: bool,
        verification: Option<CheckCommandLine>,
    },
    Edit {
        path: Option<String>,
        /// The patch as the call describes it, for results that only report success.
        patch: Value,
        added: u64,
        removed: u64,
    },
    Agent {
        kind: Option<String>,
        description: Option<String>,
        /// The hash of its prompt, by which a side chain without a name is recognised.
        prompt: String,
    },
    Patch {
        files: Vec<PatchedFile>,
    },
    /// Any other tool.
    Tool {
        /// The fields that its fact gets from the call.
        fields: FieldMap,
    },
    NewTask {
        fields: FieldMap,
    },
    TaskChange {
        id: String,
        fields: FieldMap,
    },
    Todos {
        items: BTreeMap<String, FieldMap>,
    },
}

/// The changes of a patch to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PatchedFile {
    pub(crate) path: String,
    pub(crate) moved_to: Option<String>,
    pub(crate) patch: Value,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}
