//! Notes.

use super::field::record;

record! {
    /// A free remark.
    Note, Note {
        /// What it says.
        "description" => description: String,
        /// Where it comes from, or who says so.
        "source" => source: String,
    }
}
