//! Dependencies between beliefs.

use super::field::{Strength, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// How one belief relates to another. Read it as a sentence: from, type, to.
    DependencyType, "dependency type" {
        /// `from` cannot hold without `to`.
        Requires = "requires",
        /// `from` follows from `to`.
        DerivesFrom = "derives_from",
        /// `from` takes `to` for granted.
        Assumes = "assumes",
        /// `from` speaks for `to`: here it is `to` that rests on `from`.
        Supports = "supports",
        /// Not both can hold: neither rests on the other.
        Contradicts = "contradicts",
    }
}

record! {
    /// That one belief rests on another, or contradicts it.
    Dependency, Dependency {
        /// The id of the first belief.
        "from" => from: String,
        /// The id of the second belief.
        "to" => to: String,
        /// How the first belief relates to the second; `requires` when absent.
        "type" => dependency_type: DependencyType,
        /// How strongly.
        "strength" => strength: Strength,
        /// Why.
        "reason" => reason: String,
    }
}

impl Dependency {
    /// Returns the id of the dependency between these beliefs.
    #[must_use]
    pub fn id(from: &str, to: &str) -> String {
        format!("{from}->{to}")
    }

    /// Returns the dependent belief and the one it rests on; `None` for a contradiction or if an
    /// end is missing.
    #[must_use]
    pub fn rests_on(&self) -> Option<(&str, &str)> {
        let (from, to) = (self.from.as_deref()?, self.to.as_deref()?);
        match self.dependency_type.unwrap_or(DependencyType::Requires) {
            DependencyType::Requires | DependencyType::DerivesFrom | DependencyType::Assumes => {
                Some((from, to))
            }
            DependencyType::Supports => Some((to, from)),
            DependencyType::Contradicts => None,
        }
    }
}
