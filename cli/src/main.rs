//! The `forge` command.

use mimalloc::MiMalloc;

/// The allocator. An import allocates and frees many small rows on several threads, which takes
/// less processor time with this allocator than with glibc's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let code = forge_cli::run(std::env::args_os().collect());
    forge_cli::exit_process(code)
}
