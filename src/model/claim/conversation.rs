//! What was said: facts that are handed on as they are found, so that only their types are checked.

use super::field::{Text, record};
use crate::model::Value;

record! {
    /// A message of a conversation.
    Message, Message {
        /// Who speaks: user, assistant, system.
        "role" => role: Text,
        /// What is said.
        "text" => text: Text,
        /// The message it answers.
        "parent" => parent: String,
        /// The id that the model's provider gave it.
        "message_id" => message_id: String,
        /// The model that spoke.
        "model" => model: Text,
        /// The branch of the version control checked out then.
        "git_branch" => git_branch: Text,
        /// The folder worked in.
        "cwd" => cwd: Text,
        /// The sub-agent it belongs to.
        "agent" => agent: String,
    }
}

record! {
    /// What a person asked for.
    Prompt, Prompt {
        /// What was asked.
        "text" => text: Text,
        /// Words it is found by.
        "tags" => tags: Vec<String>,
        /// The branch of the version control checked out then.
        "git_branch" => git_branch: Text,
        /// The folder worked in.
        "cwd" => cwd: Text,
    }
}

record! {
    /// A sub-agent.
    Agent, Agent {
        /// What sort of agent.
        "type" => agent_type: Text,
        /// What it was sent for.
        "description" => description: Text,
        /// What it was told.
        "prompt" => prompt: Text,
        /// The call that sent it.
        "call" => call: String,
        /// What it came back with.
        "result" => result: Text,
        /// What has become of it, in the agent's own word.
        "status" => status: Text,
    }
}

record! {
    /// What rules read in a message.
    Inference, Inference {
        /// The rule that read it.
        "rule" => rule: Text,
        /// The message it was read in.
        "message" => message: String,
        /// What was read.
        "description" => description: Text,
        /// Whatever else the rule found.
        "found" => found: Value,
    }
}
