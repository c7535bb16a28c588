//! Decides after which failures a retry may help, and when to retry.

use forge_store::vocabulary;

vocabulary! {
    /// The class of a failure, which decides whether a retry may help.
    FailureClass, "failure class" {
        /// A service asked for a pause (rate limit).
        RateLimit = "rate_limit",
        /// The network timed out.
        NetworkTimeout = "network_timeout",
        /// A database chose this transaction as the victim of a deadlock.
        DatabaseDeadlock = "database_deadlock",
        /// A model timed out.
        InferenceTimeout = "inference_timeout",
        /// Authentication or authorisation failed.
        Authentication = "authentication",
        /// The review is misconfigured.
        InvalidConfiguration = "invalid_configuration",
        /// The data to be stored contradicts stored data.
        ConstraintViolation = "constraint_violation",
        /// The saved data cannot be read.
        CorruptedData = "corrupted_data",
    }
}

impl FailureClass {
    /// Returns whether a retry may help; otherwise a person must examine the error.
    #[must_use]
    pub const fn is_retriable(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::NetworkTimeout
                | Self::DatabaseDeadlock
                | Self::InferenceTimeout
        )
    }

    /// Classifies an error message, if it contains a known phrase.
    #[must_use]
    pub fn of_message(message: &str) -> Option<Self> {
        let lower = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let slow = says(&["timeout", "timed out"]);
        Some(if says(&["rate limit", "too many requests", "429"]) {
            Self::RateLimit
        } else if slow && says(&["llm", "inference", "model"]) {
            Self::InferenceTimeout
        } else if slow || says(&["connection reset", "connection refused"]) {
            Self::NetworkTimeout
        } else if says(&["deadlock"]) {
            Self::DatabaseDeadlock
        } else if says(&["unauthorized", "authentication", "401", "403", "api key"]) {
            Self::Authentication
        } else if says(&["constraint", "duplicate key"]) {
            Self::ConstraintViolation
        } else if says(&["corrupt"]) {
            Self::CorruptedData
        } else if says(&["configuration", "misconfigured"]) {
            Self::InvalidConfiguration
        } else {
            return None;
        })
    }
}

/// The delay before a failed item is retried. It doubles with each failure, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBackoff {
    /// Delay after the first failure, in microseconds.
    pub first_micros: i64,
    /// Maximum delay, in microseconds.
    pub most_micros: i64,
}

impl Default for RetryBackoff {
    /// Returns a first delay of 30 seconds and a maximum of an hour.
    fn default() -> Self {
        Self { first_micros: 30_000_000, most_micros: 3_600_000_000 }
    }
}

impl RetryBackoff {
    /// Returns the delay after this number of failures, in microseconds.
    #[must_use]
    pub fn wait_micros(&self, failures: i64) -> i64 {
        let doublings = u32::try_from(failures.saturating_sub(1).clamp(0, 40)).unwrap_or(0);
        self.first_micros.saturating_mul(1_i64 << doublings).min(self.most_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::claim::VocabularyWord as _;

    #[test]
    fn failure_classes_are_read_back_from_their_words_and_four_are_retriable() {
        for class in FailureClass::ALL.iter().copied() {
            assert_eq!(class.word().parse(), Ok(class));
        }
        assert_eq!(FailureClass::ALL.iter().filter(|class| class.is_retriable()).count(), 4);
        let unknown = "bad luck".parse::<FailureClass>().unwrap_err().to_string();
        assert!(unknown.contains("rate_limit"), "{unknown}");
    }

    #[test]
    fn error_messages_are_assigned_to_their_failure_classes() {
        for (message, class) in [
            ("LLM timeout after 60 seconds", Some(FailureClass::InferenceTimeout)),
            ("HTTP 429 Too Many Requests", Some(FailureClass::RateLimit)),
            ("read timed out", Some(FailureClass::NetworkTimeout)),
            ("deadlock detected", Some(FailureClass::DatabaseDeadlock)),
            ("401 Unauthorized", Some(FailureClass::Authentication)),
            (
                "duplicate key value violates unique constraint",
                Some(FailureClass::ConstraintViolation),
            ),
            ("it broke", None),
        ] {
            assert_eq!(FailureClass::of_message(message), class, "{message}");
        }
    }

    #[test]
    fn the_wait_doubles_up_to_one_hour() {
        let backoff = RetryBackoff::default();
        let waits: Vec<i64> =
            [0, 1, 2, 3, 8, i64::MAX].map(|n| backoff.wait_micros(n) / 1_000_000).into();
        assert_eq!(waits, [30, 30, 60, 120, 3600, 3600]);
    }
}
