//! How often clones do what. Each mix makes the events likely that some faults need together.

use super::depot::Planted;

/// How often something happens, of 100 times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    /// What a clone begins in a turn; it pushes in the rest of them.
    pub(super) write: u64,
    pub(super) purge: u64,
    pub(super) sweep: u64,
    pub(super) open_again: u64,
    pub(super) wait_for_days: u64,
    pub(super) tidy: u64,
    pub(super) finish_purges: u64,
    pub(super) pull: u64,
    /// How many texts have a secret.
    pub(super) secrets: u64,
    /// How many texts are too large for a ref.
    pub(super) large: u64,
    /// How many processes stand still for days after they stored a pack.
    pub(super) standstills: u64,
}

impl Mix {
    /// A bit of everything.
    pub(super) const EVEN: Self = Self {
        write: 45,
        purge: 5,
        sweep: 3,
        open_again: 3,
        wait_for_days: 3,
        tidy: 4,
        finish_purges: 3,
        pull: 14,
        secrets: 25,
        large: 15,
        standstills: 3,
    };
    /// Packs become old before a ref names them, while others remove garbage.
    pub(super) const STANDSTILLS: Self = Self {
        write: 34,
        purge: 2,
        sweep: 1,
        open_again: 2,
        wait_for_days: 4,
        tidy: 30,
        finish_purges: 1,
        pull: 4,
        secrets: 5,
        large: 90,
        standstills: 50,
    };
    /// The same secrets are written and purged by several clones, which are opened again in between.
    pub(super) const PURGES: Self = Self {
        write: 40,
        purge: 14,
        sweep: 1,
        open_again: 12,
        wait_for_days: 2,
        tidy: 2,
        finish_purges: 3,
        pull: 10,
        secrets: 70,
        large: 5,
        standstills: 3,
    };
    pub(super) const ALL: [Self; 3] = [Self::EVEN, Self::STANDSTILLS, Self::PURGES];

    /// Returns the mix that shows a planted fault.
    pub(super) const fn showing(planted: Planted) -> Self {
        match planted {
            Planted::EarlyTidy | Planted::LongPush => Self::STANDSTILLS,
            Planted::OwnNotices | Planted::ForgottenPurge => Self::PURGES,
            _ => Self::EVEN,
        }
    }
}
