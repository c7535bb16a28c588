//! The `forge` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    forge_cli::run(std::env::args_os().collect())
}
