//! Measurements: facts.

use super::field::{Scalar, Text, record};

record! {
    /// A named value with unit and source.
    Measurement, Measurement {
        /// What was measured.
        "name" => name: Text,
        /// What came out.
        "value" => value: Scalar,
        /// The unit of the value.
        "unit" => unit: Text,
        /// Where it comes from.
        "source" => source: Text,
    }
}
