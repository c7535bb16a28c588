//! The `forge` command.

fn main() {
    let code = forge_cli::run(std::env::args_os().collect());
    forge_cli::exit_process(code)
}
