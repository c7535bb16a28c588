//! Commands: facts.

use super::field::{FactText, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// How a command ended.
    CommandOutcome, "command outcome" {
        /// By itself, with no error that the record tells.
        Finished = "finished",
        /// With an error, such as an exit code that is not 0.
        Failed = "failed",
        /// It was not allowed to run.
        Refused = "refused",
        /// It was stopped.
        Interrupted = "interrupted",
        /// It was stopped because it took too long.
        TimedOut = "timed_out",
        /// It went on in the background.
        Background = "background",
        /// The record does not say.
        Unknown = "unknown",
    }
}

record! {
    /// A command that was run.
    ExecutedCommand, Command {
        /// The command line.
        "command" => command: FactText,
        /// The folder it ran in.
        "working_dir" => working_dir: FactText,
        /// Its exit code; absent if that is not known.
        "exit_code" => exit_code: i64,
        /// How it ended.
        "outcome" => outcome: CommandOutcome,
        /// What it printed, or its beginning.
        "stdout_preview" => stdout_preview: FactText,
        /// What it printed on its error output, or its beginning.
        "stderr_preview" => stderr_preview: FactText,
        /// `merged` if both outputs are kept as one.
        "streams" => streams: FactText,
        /// What it was run for.
        "description" => description: FactText,
        /// Why it was refused.
        "reason" => reason: FactText,
        /// When it was called; it ended at the fact's own time.
        "called_at" => called_at: FactText,
        /// How long it took, in milliseconds.
        "duration_ms" => duration_ms: u64,
        /// The sub-agent that ran it.
        "agent" => agent: String,
    }
}
