//! What an import does with the rows of a table.

/// What an import did with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowImport {
    /// The row was saved.
    Saved,
    /// The row was imported before: nothing has changed.
    Known,
    /// Something newer than the row is stored: nothing has changed.
    Older,
}

impl RowImport {
    /// Returns the word for the result.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Known => "known",
            Self::Older => "older",
        }
    }
}
