//! A ruler of time on which long pauses are folded, so that what happened has room.

use crate::model::Timestamp;

/// A pause is folded if it is longer than this.
const MIN_PAUSE_MICROS: i64 = 20 * 60 * 1_000_000;
/// A pause is folded if it is longer than this part of the whole time.
const MIN_PAUSE_SHARE: f64 = 0.004;
/// The most pauses that are folded: the longest ones.
const MAX_FOLDS: usize = 16;
/// The width of a folded pause.
const FOLD_WIDTH: f64 = 0.017;
/// The free room at each end.
const MARGIN: f64 = 0.012;
/// The least width of the time between two folded pauses.
const MIN_STRETCH: f64 = 0.012;

/// Maps moments to places from 0 to 1, with long pauses folded.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeRuler {
    stretches: Vec<RulerStretch>,
}

/// A part of a ruler without folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerStretch {
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub to: Timestamp,
    /// The place of the first moment.
    pub start: f64,
    /// The width.
    pub width: f64,
}

/// A folded pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerFold {
    /// How long the pause was, in microseconds.
    pub micros: i64,
    /// The place where it begins.
    pub start: f64,
    /// The width.
    pub width: f64,
}

impl TimeRuler {
    /// Returns the ruler of these moments, in any order; `None` if there are none.
    #[must_use]
    pub fn of(mut times: Vec<Timestamp>) -> Option<Self> {
        times.sort_unstable();
        times.dedup();
        let (first, last) = (*times.first()?, *times.last()?);
        let span = seconds(last.micros_since(first));
        let mut pauses: Vec<(i64, Timestamp, Timestamp)> = times
            .iter()
            .zip(times.iter().skip(1))
            .map(|(from, to)| (to.micros_since(*from), *from, *to))
            .filter(|(micros, ..)| *micros > MIN_PAUSE_MICROS)
            .filter(|(micros, ..)| seconds(*micros) > span * MIN_PAUSE_SHARE)
            .collect();
        pauses.sort_unstable_by_key(|(micros, from, _)| (std::cmp::Reverse(*micros), *from));
        pauses.truncate(MAX_FOLDS);
        pauses.sort_unstable_by_key(|(_, from, _)| *from);
        let mut parts = Vec::with_capacity(pauses.len() + 1);
        let mut from = first;
        for (_, end, next) in pauses {
            parts.push((from, end));
            from = next;
        }
        parts.push((from, last));
        Some(Self { stretches: place(&parts) })
    }

    /// Returns the place of a moment, from 0 to 1. A moment in a folded pause is at its end.
    #[must_use]
    pub fn place(&self, at: Timestamp) -> f64 {
        let Some(stretch) = self.stretches.iter().find(|stretch| at <= stretch.to) else {
            return self.stretches.last().map_or(0.0, |last| last.start + last.width);
        };
        let length = seconds(stretch.to.micros_since(stretch.from));
        if length <= 0.0 {
            return stretch.start + stretch.width / 2.0;
        }
        let passed = seconds(at.micros_since(stretch.from)).max(0.0);
        stretch.start + stretch.width * passed / length
    }

    /// Returns the parts between the folded pauses.
    #[must_use]
    pub fn stretches(&self) -> &[RulerStretch] {
        &self.stretches
    }

    /// Returns the folded pauses.
    pub fn folds(&self) -> impl Iterator<Item = RulerFold> {
        let pairs = self.stretches.iter().zip(self.stretches.iter().skip(1));
        pairs.map(|(before, after)| {
            let start = before.start + before.width;
            let micros = after.from.micros_since(before.to);
            RulerFold { micros, start, width: after.start - start }
        })
    }

    /// Returns the first and the last moment.
    #[must_use]
    pub fn span(&self) -> (Timestamp, Timestamp) {
        let first = self.stretches.first().map(|stretch| stretch.from).unwrap_or_default();
        (first, self.stretches.last().map_or(first, |stretch| stretch.to))
    }

    /// Returns the time without the folded pauses, in microseconds.
    #[must_use]
    pub fn active_micros(&self) -> i64 {
        self.stretches.iter().map(|stretch| stretch.to.micros_since(stretch.from)).sum()
    }
}

/// Gives each part a width in proportion to its length, but at least the least one.
fn place(parts: &[(Timestamp, Timestamp)]) -> Vec<RulerStretch> {
    #[expect(clippy::cast_precision_loss, reason = "there are at most 17 parts")]
    let count = parts.len() as f64;
    let length = |part: &(Timestamp, Timestamp)| seconds(part.1.micros_since(part.0));
    let all: f64 = parts.iter().map(length).sum();
    let room = 1.0 - 2.0 * MARGIN - FOLD_WIDTH * (count - 1.0);
    let free = room - MIN_STRETCH * count;
    let mut start = MARGIN;
    let placed = parts.iter().map(|part| {
        let share = if all > 0.0 { length(part) / all } else { 1.0 / count };
        let stretch =
            RulerStretch { from: part.0, to: part.1, start, width: MIN_STRETCH + free * share };
        start += stretch.width + FOLD_WIDTH;
        stretch
    });
    placed.collect()
}

#[expect(clippy::cast_precision_loss, reason = "a place on a screen does not need microseconds")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_micros(minute * 60_000_000)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_long_pause_is_folded_and_the_rest_is_in_proportion() {
        let ruler = TimeRuler::of(vec![at(10), at(0), at(610), at(630)]).unwrap();
        let folds: Vec<_> = ruler.folds().collect();
        assert_eq!(folds.len(), 1, "{ruler:?}");
        assert_eq!(folds[0].micros, 600 * 60_000_000);
        assert!(near(folds[0].width, FOLD_WIDTH));
        assert!(near(ruler.place(at(0)), MARGIN));
        assert!(near(ruler.place(at(630)), 1.0 - MARGIN));
        assert!(near(ruler.place(at(300)), ruler.place(at(610))), "inside of the pause");
        let [first, second] = ruler.stretches() else { panic!("{ruler:?}") };
        assert!(second.width > first.width);
        assert_eq!(ruler.active_micros(), 30 * 60_000_000);
        assert_eq!(ruler.span(), (at(0), at(630)));
    }

    #[test]
    fn the_longest_pauses_are_folded_and_a_place_is_never_outside() {
        let times: Vec<_> = (0..40).flat_map(|n| [at(n * 100), at(n * 100 + n)]).collect();
        let ruler = TimeRuler::of(times.clone()).unwrap();
        assert_eq!(ruler.folds().count(), MAX_FOLDS);
        let places: Vec<f64> = times.iter().map(|time| ruler.place(*time)).collect();
        assert!(places.is_sorted());
        assert!(places.iter().all(|place| (0.0..=1.0).contains(place)), "{places:?}");
        let (first, last) = (places[0], places[places.len() - 1]);
        assert!(near(ruler.place(at(-9)), first) && near(ruler.place(at(99_999)), last));
    }

    #[test]
    fn one_moment_is_in_the_middle_and_none_has_no_ruler() {
        assert!(near(TimeRuler::of(vec![at(5), at(5)]).unwrap().place(at(5)), 0.5));
        assert_eq!(TimeRuler::of(Vec::new()), None);
    }
}
