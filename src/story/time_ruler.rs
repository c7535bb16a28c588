//! A ruler of time on which long pauses are folded, so that what happened has room.

use crate::model::Timestamp;

/// A pause is folded if it is longer than this.
const MIN_PAUSE_MICROS: i64 = 20 * 60 * 1_000_000;
/// A pause is folded if it is longer than this part of the whole time.
const MIN_PAUSE_SHARE: f64 = 0.004;
/// The most pauses that are folded: the longest ones.
const MAX_FOLDS: usize = 16;
/// The least width of the time between two folded pauses.
const MIN_STRETCH: f64 = 0.012;

/// A stretch of time without long pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStretch {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
}

/// The shape of a ruler. Widths are parts of the whole width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerShape {
    /// The free room at each end.
    pub margin: f64,
    /// The width of a folded pause. All folds together have at most half of the width.
    pub fold: f64,
    /// Where in its stretch a moment is that is alone there, from 0 to 1.
    pub lone: f64,
}

impl RulerFold {
    /// Returns the place where it ends.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.start + self.width
    }

    /// Returns the place of its middle.
    #[must_use]
    pub fn middle(&self) -> f64 {
        self.start + self.width / 2.0
    }
}

impl RulerShape {
    /// The shape of the ruler of a page.
    pub const PAGE: Self = Self { margin: 0.012, fold: 0.017, lone: 0.5 };
}

/// Maps moments to places from 0 to 1, with long pauses folded.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeRuler {
    stretches: Vec<RulerStretch>,
    lone: f64,
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

/// Returns the stretches between the long pauses of these times, which are sorted.
#[must_use]
pub fn stretches_of(times: &[Timestamp]) -> Vec<TimeStretch> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let span = seconds(last.micros_since(*first));
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
    let mut stretches = Vec::with_capacity(pauses.len() + 1);
    let mut from = *first;
    for (_, end, next) in pauses {
        stretches.push(TimeStretch { from, to: end });
        from = next;
    }
    stretches.push(TimeStretch { from, to: *last });
    stretches
}

impl TimeRuler {
    /// Returns the ruler of a page for these moments, in any order; `None` if there are none.
    #[must_use]
    pub fn of(mut times: Vec<Timestamp>) -> Option<Self> {
        times.sort_unstable();
        let stretches = stretches_of(&times);
        (!stretches.is_empty()).then(|| Self::new(&stretches, RulerShape::PAGE))
    }

    /// Returns the ruler of these stretches. Each has a width in proportion to its length, but at
    /// least the least one.
    #[must_use]
    pub fn new(stretches: &[TimeStretch], shape: RulerShape) -> Self {
        let RulerShape { margin, fold, lone } = shape;
        #[expect(clippy::cast_precision_loss, reason = "there are at most 17 stretches")]
        let count = stretches.len().max(1) as f64;
        let fold = fold.clamp(0.0, 0.5 / count);
        let length = |stretch: &TimeStretch| seconds(stretch.to.micros_since(stretch.from));
        let all: f64 = stretches.iter().map(length).sum();
        let room = 1.0 - 2.0 * margin - fold * (count - 1.0);
        let least = MIN_STRETCH.min(room / count);
        let free = room - least * count;
        let mut start = margin;
        let placed = stretches.iter().map(|stretch| {
            let share = if all > 0.0 { length(stretch) / all } else { 1.0 / count };
            let TimeStretch { from, to } = *stretch;
            let placed = RulerStretch { from, to, start, width: least + free * share };
            start += placed.width + fold;
            placed
        });
        Self { stretches: placed.collect(), lone }
    }

    /// Returns the place of a moment, from 0 to 1. A moment in a folded pause is at its end.
    #[must_use]
    pub fn place(&self, at: Timestamp) -> f64 {
        let Some(stretch) = self.stretches.iter().find(|stretch| at <= stretch.to) else {
            return self.stretches.last().map_or(0.0, |last| last.start + last.width);
        };
        let length = seconds(stretch.to.micros_since(stretch.from));
        if length <= 0.0 {
            return stretch.start + stretch.width * self.lone;
        }
        let passed = seconds(at.micros_since(stretch.from)).max(0.0);
        stretch.start + stretch.width * passed / length
    }

    /// Returns the moment at a place, from 0 to 1; `None` if the ruler has no moments.
    #[must_use]
    pub fn time(&self, place: f64) -> Option<Timestamp> {
        let at = self.stretches.iter().find(|at| place <= at.start + at.width);
        let stretch = at.or(self.stretches.last())?;
        let share = (place - stretch.start) / stretch.width.max(f64::EPSILON);
        let micros = stretch.to.micros_since(stretch.from);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "within the stretch"
        )]
        let passed = (micros as f64 * share.clamp(0.0, 1.0)) as i64;
        Some(stretch.from.plus_micros(passed))
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
        assert!(near(folds[0].width, RulerShape::PAGE.fold));
        assert!(near(ruler.place(at(0)), RulerShape::PAGE.margin));
        assert!(near(ruler.place(at(630)), 1.0 - RulerShape::PAGE.margin));
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

    /// A shape as the browser has it: from end to end, a lone moment where its stretch begins.
    fn wide(fold: f64) -> RulerShape {
        RulerShape { margin: 0.0, fold, lone: 0.0 }
    }

    fn times(minutes: &[i64]) -> Vec<Timestamp> {
        minutes.iter().map(|minute| at(*minute)).collect()
    }

    #[test]
    fn a_night_is_folded_and_a_coffee_is_not() {
        let all = times(&[0, 5, 20, 30, 1000, 1010]);
        let found = stretches_of(&all);
        assert_eq!(found.len(), 2);
        let ruler = TimeRuler::new(&found, wide(0.02));
        let folds: Vec<RulerFold> = ruler.folds().collect();
        let [fold] = folds.as_slice() else { panic!("{folds:?}") };
        assert_eq!(fold.micros, 970 * 60_000_000);
        assert!(near(fold.width, 0.02));
        assert!(
            ruler.place(all[3]) <= fold.start + 1e-9 && ruler.place(all[4]) >= fold.end() - 1e-9
        );
        assert!(near(ruler.place(all[5]), 1.0) && near(ruler.place(all[0]), 0.0));
    }

    #[test]
    fn a_place_and_its_time_belong_together() {
        let all = times(&[0, 10, 400, 410, 415]);
        let ruler = TimeRuler::new(&stretches_of(&all), wide(0.05));
        for time in [0, 5, 9, 401, 407, 415].map(at) {
            let back = ruler.time(ruler.place(time)).unwrap();
            assert!(back.micros_since(time).abs() < 1_000_000, "{time} {back}");
        }
        assert_eq!(TimeRuler::new(&[], wide(0.05)).time(0.5), None);
        let same = TimeRuler::new(&stretches_of(&times(&[7, 7])), wide(0.1));
        assert!(same.place(at(7)) <= 1.0);
    }
}
