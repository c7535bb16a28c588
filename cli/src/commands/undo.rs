//! `forge undo`.

/// Arguments of `forge undo`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// Name the operation by its id or a unique prefix of it; the last one if left out
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}
