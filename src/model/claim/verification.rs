//! Verifications: facts.

use super::field::{FactText, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// How a test, build or check came out.
    VerificationStatus, "verification status" {
        /// It holds.
        Passed = "passed",
        /// It does not hold.
        Failed = "failed",
        /// It could not be run.
        Error = "error",
        /// It took too long.
        TimedOut = "timed_out",
        /// It was left out.
        Skipped = "skipped",
        /// It is not known.
        Unknown = "unknown",
    }
}

record! {
    /// A test, build or check and its result.
    VerificationResult, Verification {
        /// What was checked.
        "name" => name: FactText,
        /// What sort of check: test, build, lint.
        "check" => check: FactText,
        /// The program that checked it.
        "tool" => tool: FactText,
        /// The subcommand, script or target of the tool.
        "call" => call: FactText,
        /// What it was run on; a word with `+` widens the run, one with `-` narrows it, one with
        /// `=` makes it another run.
        "target" => target: Vec<String>,
        /// The folder it ran in.
        "working_dir" => working_dir: FactText,
        /// The result; `unknown` when absent.
        "status" => status: VerificationStatus,
        /// The command that checked it.
        "command" => command: FactText,
        /// The exit code of the command.
        "exit_code" => exit_code: i64,
        /// What it printed.
        "output" => output: FactText,
        /// A remark about it.
        "description" => description: FactText,
        /// How long it took, in milliseconds.
        "duration_ms" => duration_ms: u64,
        /// The sub-agent that ran it.
        "agent" => agent: String,
        /// Where it comes from.
        "source" => source: FactText,
    }
}
