//! Measurements: facts.

use super::field::{FactText, MeasuredValue, record};

record! {
    /// A named value with unit and source.
    Measurement, Measurement {
        /// What was measured.
        "name" => name: FactText,
        /// The measured value.
        "value" => value: MeasuredValue,
        /// The unit of the value.
        "unit" => unit: FactText,
        /// Where it comes from.
        "source" => source: FactText,
    }
}
