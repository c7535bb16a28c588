//! What an import does with the rows of a table.

words! {
    /// What an import did with a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RowImport {
        /// The row was saved.
        Saved = "saved",
        /// The row was imported before: nothing has changed.
        Known = "known",
        /// Something newer than the row is stored: nothing has changed.
        Older = "older",
    }
}
