//! How often progress should be saved.

/// When progress is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveFrequency {
    /// After every item, since each is expensive.
    PerItem,
    /// After this number of items, since each is cheap; 0 means 1.
    PerBatch(u64),
    /// After this number of microseconds, where there are no items to count.
    Interval(i64),
    /// Never: nothing progresses while the pipeline waits for a person.
    Paused,
}

impl SaveFrequency {
    /// Returns whether a save is due, given the items and microseconds since the last one.
    #[must_use]
    pub const fn is_due(self, items: u64, micros: i64) -> bool {
        match self {
            Self::PerItem => items > 0,
            Self::PerBatch(size) => items > 0 && items >= size,
            Self::Interval(every) => micros >= every,
            Self::Paused => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_is_due_by_items_or_by_time() {
        assert!(SaveFrequency::PerItem.is_due(1, 0) && !SaveFrequency::PerItem.is_due(0, i64::MAX));
        assert!(
            SaveFrequency::PerBatch(20).is_due(20, 0) && !SaveFrequency::PerBatch(20).is_due(19, 9)
        );
        assert!(!SaveFrequency::PerBatch(0).is_due(0, 0));
        assert!(
            SaveFrequency::Interval(5).is_due(0, 5) && !SaveFrequency::Interval(5).is_due(99, 4)
        );
        assert!(!SaveFrequency::Paused.is_due(99, i64::MAX));
    }
}
