//! The `forge` command.
fn main() {}
