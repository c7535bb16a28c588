//! A ruler of time on which long pauses are shortened, so that the time between them has room.

use super::line::long_pause;
use crate::model::Timestamp;

/// A long pause is shortened only if it is longer than this share of the whole time.
const MIN_PAUSE_SHARE: f64 = 0.004;
/// The maximum number of pauses that are shortened: the longest ones.
const MAX_PAUSES: usize = 16;
/// The minimum width of the time between two shortened pauses, if there is room.
const MIN_PERIOD_WIDTH: f64 = 0.012;

/// A period without long pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivePeriod {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
}

/// The shape of a ruler. Widths are shares of the whole width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerShape {
    /// The free room at each end.
    pub margin: f64,
    /// The width of a shortened pause. All pauses together have at most half of the width.
    pub pause: f64,
    /// The place of the moment in a period of length zero, from 0 (its left end) to 1.
    pub lone: f64,
}

impl RulerShape {
    /// The shape of the ruler of a page.
    pub const PAGE: Self = Self { margin: 0.012, pause: 0.017, lone: 0.5 };
}

/// Maps moments to places from 0 to 1, with long pauses shortened.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeRuler {
    periods: Vec<RulerPeriod>,
    lone: f64,
}

/// A part of a ruler without pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerPeriod {
    /// The first moment.
    pub from: Timestamp,
    /// The last moment.
    pub to: Timestamp,
    /// The place of the first moment.
    pub start: f64,
    /// The width.
    pub width: f64,
}

/// A shortened pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerPause {
    /// How long the pause was, in microseconds.
    pub micros: i64,
    /// The place where it begins.
    pub start: f64,
    /// The width.
    pub width: f64,
}

impl RulerPause {
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

/// Returns the periods between the long pauses of these times, which must be sorted.
#[must_use]
pub fn active_periods(times: &[Timestamp]) -> Vec<ActivePeriod> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let span = seconds(last.micros_since(*first));
    let mut pauses: Vec<(i64, Timestamp, Timestamp)> = times
        .iter()
        .zip(times.iter().skip(1))
        .filter_map(|(from, to)| Some((long_pause(*from, *to)?, *from, *to)))
        .filter(|(micros, ..)| seconds(*micros) > span * MIN_PAUSE_SHARE)
        .collect();
    pauses.sort_unstable_by_key(|(micros, from, _)| (std::cmp::Reverse(*micros), *from));
    pauses.truncate(MAX_PAUSES);
    pauses.sort_unstable_by_key(|(_, from, _)| *from);
    let mut periods = Vec::with_capacity(pauses.len() + 1);
    let mut from = *first;
    for (_, end, next) in pauses {
        periods.push(ActivePeriod { from, to: end });
        from = next;
    }
    periods.push(ActivePeriod { from, to: *last });
    periods
}

impl TimeRuler {
    /// Returns the ruler of a page for these moments, in any order; `None` if there are none.
    #[must_use]
    pub fn of(mut times: Vec<Timestamp>) -> Option<Self> {
        times.sort_unstable();
        let periods = active_periods(&times);
        (!periods.is_empty()).then(|| Self::new(&periods, RulerShape::PAGE))
    }

    /// Returns the ruler of these periods. Each has a minimum width; the rest of the width is
    /// divided in proportion to their lengths.
    #[must_use]
    pub fn new(periods: &[ActivePeriod], shape: RulerShape) -> Self {
        let RulerShape { margin, pause, lone } = shape;
        #[expect(clippy::cast_precision_loss, reason = "there are at most 17 periods")]
        let count = periods.len().max(1) as f64;
        let pause = pause.clamp(0.0, 0.5 / count);
        let length = |period: &ActivePeriod| seconds(period.to.micros_since(period.from));
        let all: f64 = periods.iter().map(length).sum();
        let room = 1.0 - 2.0 * margin - pause * (count - 1.0);
        let least = MIN_PERIOD_WIDTH.min(room / count);
        let free = room - least * count;
        let mut start = margin;
        let placed = periods.iter().map(|period| {
            let share = if all > 0.0 { length(period) / all } else { 1.0 / count };
            let ActivePeriod { from, to } = *period;
            let placed = RulerPeriod { from, to, start, width: least + free * share };
            start += placed.width + pause;
            placed
        });
        Self { periods: placed.collect(), lone }
    }

    /// Returns the place of a moment, from 0 to 1. A moment in a shortened pause has the place of
    /// the first moment after the pause.
    #[must_use]
    pub fn place(&self, at: Timestamp) -> f64 {
        let Some(period) = self.periods.iter().find(|period| at <= period.to) else {
            return self.periods.last().map_or(0.0, |last| last.start + last.width);
        };
        let length = seconds(period.to.micros_since(period.from));
        if length <= 0.0 {
            return period.start + period.width * self.lone;
        }
        let passed = seconds(at.micros_since(period.from)).max(0.0);
        period.start + period.width * passed / length
    }

    /// Returns the moment at a place, from 0 to 1; in a shortened pause, the first moment after it.
    /// `None` if the ruler has no moments.
    #[must_use]
    pub fn time(&self, place: f64) -> Option<Timestamp> {
        let at = self.periods.iter().find(|at| place <= at.start + at.width);
        let period = at.or(self.periods.last())?;
        let share = (place - period.start) / period.width.max(f64::EPSILON);
        let micros = period.to.micros_since(period.from);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "within the period"
        )]
        let passed = (micros as f64 * share.clamp(0.0, 1.0)) as i64;
        Some(period.from.plus_micros(passed))
    }

    /// Returns the parts between the shortened pauses.
    #[must_use]
    pub fn periods(&self) -> &[RulerPeriod] {
        &self.periods
    }

    /// Returns the shortened pauses.
    pub fn pauses(&self) -> impl Iterator<Item = RulerPause> {
        let pairs = self.periods.iter().zip(self.periods.iter().skip(1));
        pairs.map(|(before, after)| {
            let start = before.start + before.width;
            let micros = after.from.micros_since(before.to);
            RulerPause { micros, start, width: after.start - start }
        })
    }

    /// Returns the first and the last moment. Without moments, both are the default time.
    #[must_use]
    pub fn span(&self) -> (Timestamp, Timestamp) {
        let first = self.periods.first().map(|period| period.from).unwrap_or_default();
        (first, self.periods.last().map_or(first, |period| period.to))
    }

    /// Returns the time without the shortened pauses, in microseconds.
    #[must_use]
    pub fn active_micros(&self) -> i64 {
        self.periods.iter().map(|period| period.to.micros_since(period.from)).sum()
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
    fn a_long_pause_is_shortened_and_the_rest_is_in_proportion() {
        let ruler = TimeRuler::of(vec![at(10), at(0), at(610), at(630)]).unwrap();
        let pauses: Vec<_> = ruler.pauses().collect();
        assert_eq!(pauses.len(), 1, "{ruler:?}");
        assert_eq!(pauses[0].micros, 600 * 60_000_000);
        assert!(near(pauses[0].width, RulerShape::PAGE.pause));
        assert!(near(ruler.place(at(0)), RulerShape::PAGE.margin));
        assert!(near(ruler.place(at(630)), 1.0 - RulerShape::PAGE.margin));
        assert!(near(ruler.place(at(300)), ruler.place(at(610))), "inside of the pause");
        let [first, second] = ruler.periods() else { panic!("{ruler:?}") };
        assert!(second.width > first.width);
        assert_eq!(ruler.active_micros(), 30 * 60_000_000);
        assert_eq!(ruler.span(), (at(0), at(630)));
    }

    #[test]
    fn the_longest_pauses_are_shortened_and_every_place_is_on_the_ruler() {
        let times: Vec<_> = (0..40).flat_map(|n| [at(n * 100), at(n * 100 + n)]).collect();
        let ruler = TimeRuler::of(times.clone()).unwrap();
        assert_eq!(ruler.pauses().count(), MAX_PAUSES);
        let places: Vec<f64> = times.iter().map(|time| ruler.place(*time)).collect();
        assert!(places.is_sorted());
        assert!(places.iter().all(|place| (0.0..=1.0).contains(place)), "{places:?}");
        let (first, last) = (places[0], places[places.len() - 1]);
        assert!(near(ruler.place(at(-9)), first) && near(ruler.place(at(99_999)), last));
    }

    #[test]
    fn a_ruler_with_one_moment_shows_it_in_the_middle_and_without_moments_there_is_none() {
        assert!(near(TimeRuler::of(vec![at(5), at(5)]).unwrap().place(at(5)), 0.5));
        assert_eq!(TimeRuler::of(Vec::new()), None);
    }

    /// The shape of the browser's ruler: without margins, and with a lone moment where its period
    /// begins.
    fn wide(pause: f64) -> RulerShape {
        RulerShape { margin: 0.0, pause, lone: 0.0 }
    }

    fn times(minutes: &[i64]) -> Vec<Timestamp> {
        minutes.iter().map(|minute| at(*minute)).collect()
    }

    #[test]
    fn a_pause_of_hours_is_shortened_and_a_pause_of_minutes_is_not() {
        let all = times(&[0, 5, 20, 30, 1000, 1010]);
        let found = active_periods(&all);
        assert_eq!(found.len(), 2);
        let ruler = TimeRuler::new(&found, wide(0.02));
        let pauses: Vec<RulerPause> = ruler.pauses().collect();
        let [pause] = pauses.as_slice() else { panic!("{pauses:?}") };
        assert_eq!(pause.micros, 970 * 60_000_000);
        assert!(near(pause.width, 0.02));
        assert!(
            ruler.place(all[3]) <= pause.start + 1e-9 && ruler.place(all[4]) >= pause.end() - 1e-9
        );
        assert!(near(ruler.place(all[5]), 1.0) && near(ruler.place(all[0]), 0.0));
    }

    #[test]
    fn the_time_of_the_place_of_a_moment_is_that_moment() {
        let all = times(&[0, 10, 400, 410, 415]);
        let ruler = TimeRuler::new(&active_periods(&all), wide(0.05));
        for time in [0, 5, 9, 401, 407, 415].map(at) {
            let back = ruler.time(ruler.place(time)).unwrap();
            assert!(back.micros_since(time).abs() < 1_000_000, "{time} {back}");
        }
        assert_eq!(TimeRuler::new(&[], wide(0.05)).time(0.5), None);
        let same = TimeRuler::new(&active_periods(&times(&[7, 7])), wide(0.1));
        assert!(same.place(at(7)) <= 1.0);
    }
}
