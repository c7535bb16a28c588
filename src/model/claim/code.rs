//! Code: facts.

use super::field::{FactText, record};
use std::collections::BTreeMap;

record! {
    /// An edit with its patch, or a captured state of the code.
    CodeState, Code {
        /// The file an edit changed.
        "path" => path: FactText,
        /// What an edit changed, as a unified diff.
        "patch" => patch: FactText,
        /// The tool that made an edit; `outside` if the agent did not make it.
        "tool" => tool: FactText,
        /// How many lines an edit added.
        "lines_added" => lines_added: u64,
        /// How many lines an edit removed.
        "lines_removed" => lines_removed: u64,
        /// A part of the file after an edit whose patch is not known.
        "snippet" => snippet: FactText,
        /// What the file held before.
        "original_file" => original_file: FactText,
        /// Whether a person changed what the agent proposed.
        "user_modified" => user_modified: bool,
        /// The commit that a captured state is based on.
        "commit" => commit: FactText,
        /// The branch of the version control checked out then.
        "branch" => branch: FactText,
        /// The changes of a captured state since its commit, as unified diffs.
        "patches" => patches: Vec<FactText>,
        /// The environment variables a captured state needs.
        "env_vars" => env_vars: BTreeMap<String, FactText>,
        /// The sub-agent that made the edit.
        "agent" => agent: String,
    }
}
