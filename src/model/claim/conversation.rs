//! Messages, prompts, sub-agents, uses of tools, notices and inferences: facts that are stored as
//! they were found. Only the types of their fields are checked.

use super::field::{FactText, record};
use super::vocabulary::vocabulary;
use crate::model::Value;

record! {
    /// A message of a conversation.
    Message, Message {
        /// The role of its author: user, assistant, system.
        "role" => role: FactText,
        /// Its text.
        "text" => text: FactText,
        /// The message it answers.
        "parent" => parent: String,
        /// The id that the model's provider gave it.
        "message_id" => message_id: String,
        /// The model that wrote it.
        "model" => model: FactText,
        /// The branch of the version control checked out then.
        "git_branch" => git_branch: FactText,
        /// The folder worked in.
        "cwd" => cwd: FactText,
        /// The sub-agent it belongs to.
        "agent" => agent: String,
        /// Tokens the model read that were not in a cache.
        "input_tokens" => input_tokens: u64,
        /// Tokens the model wrote.
        "output_tokens" => output_tokens: u64,
        /// Tokens the model read from a cache.
        "cache_read_tokens" => cache_read_tokens: u64,
        /// Tokens the model wrote into a cache.
        "cache_creation_tokens" => cache_creation_tokens: u64,
    }
}

record! {
    /// A person's instruction or question to an agent.
    Prompt, Prompt {
        /// Its text.
        "text" => text: FactText,
        /// Words that find it.
        "tags" => tags: Vec<String>,
        /// The branch of the version control checked out then.
        "git_branch" => git_branch: FactText,
        /// The folder worked in.
        "cwd" => cwd: FactText,
    }
}

record! {
    /// A sub-agent.
    Agent, Agent {
        /// What sort of agent.
        "type" => agent_type: FactText,
        /// Its task.
        "description" => description: FactText,
        /// The instructions it was given.
        "prompt" => prompt: FactText,
        /// The call that started it.
        "call" => call: String,
        /// Its result.
        "result" => result: FactText,
        /// Its status, in the agent's own word.
        "status" => status: FactText,
    }
}

record! {
    /// A use of a tool that is no command, edit, task or sub-agent.
    ToolUse, Tool {
        /// The tool, as the agent names it.
        "tool" => tool: FactText,
        /// The file or folder it was used on.
        "path" => path: FactText,
        /// The pattern it searched for.
        "pattern" => pattern: FactText,
        /// The address it fetched.
        "address" => address: FactText,
        /// The question it was asked.
        "query" => query: FactText,
        /// All that it was given.
        "input" => input: Value,
        /// How it ended.
        "outcome" => outcome: ToolOutcome,
        /// Why it was refused or failed.
        "reason" => reason: FactText,
        /// What the person answered, by question.
        "answers" => answers: Value,
        /// The plan it was given to show.
        "plan" => plan: FactText,
        /// When it was called; it ended at the fact's own time.
        "called_at" => called_at: FactText,
        /// How long it took, in milliseconds.
        "duration_ms" => duration_ms: u64,
        /// The sub-agent that used it.
        "agent" => agent: String,
    }
}

vocabulary! {
    /// How the use of a tool ended.
    ToolOutcome, "tool outcome" {
        /// With a result.
        Finished = "finished",
        /// With an error.
        Failed = "failed",
        /// It was not allowed to run.
        Refused = "refused",
        /// It was stopped.
        Interrupted = "interrupted",
        /// The record does not say.
        Unknown = "unknown",
    }
}

record! {
    /// Something the session received that no person typed and no tool returned.
    Notice, Notice {
        /// What sort of notice: diagnostics, goal, link, mode, model, limit.
        "type" => notice_type: FactText,
        /// What it says.
        "text" => text: FactText,
        /// The file it is about.
        "path" => path: FactText,
        /// The address it names.
        "address" => address: FactText,
        /// The sub-agent that received it.
        "agent" => agent: String,
    }
}

record! {
    /// What rules read in a message.
    Inference, Inference {
        /// The rule that read it.
        "rule" => rule: FactText,
        /// The message it was read in.
        "message" => message: String,
        /// What was read.
        "description" => description: FactText,
        /// Everything else that the rule found.
        "found" => found: Value,
    }
}
