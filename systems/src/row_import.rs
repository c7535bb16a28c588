//! The result of importing a row of a table.

words! {
    /// What an import did with a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RowImport {
        /// The row was saved.
        Saved = "saved",
        /// The row was imported before: nothing was written.
        Known = "known",
        /// Something newer than the row is stored: nothing was written.
        Older = "older",
    }
}
