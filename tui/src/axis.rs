//! The axis of time: long pauses are folded, so that what happened has room.

use forge_store::model::Timestamp;

/// Only a longer pause is folded, in microseconds.
const FOLD_MICROS: i64 = 20 * 60 * 1_000_000;
/// Only a longer pause is folded, in thousandths of the whole time.
const FOLD_THOUSANDTHS: i64 = 4;
/// The most pauses that are folded; the longest are chosen.
const MAX_FOLDS: usize = 16;
/// The part of the width that each stretch keeps.
const MIN_STRETCH: f64 = 0.012;

/// A stretch of time without long pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStretch {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
}

/// A pause that is drawn shorter than it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisFold {
    /// Where it begins, from 0 to 1.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How long it was, in microseconds.
    pub micros: i64,
}

/// Returns the stretches between the long pauses of these times, which are sorted.
#[must_use]
pub fn stretches(times: &[Timestamp]) -> Vec<TimeStretch> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let span = last.micros_since(*first);
    let mut gaps: Vec<(i64, Timestamp, Timestamp)> = times
        .windows(2)
        .filter_map(|pair| {
            let [from, to] = pair else { return None };
            Some((to.micros_since(*from), *from, *to))
        })
        .filter(|(gap, _, _)| *gap > FOLD_MICROS && *gap > span / 1000 * FOLD_THOUSANDTHS)
        .collect();
    gaps.sort_by_key(|(gap, from, _)| (std::cmp::Reverse(*gap), *from));
    gaps.truncate(MAX_FOLDS);
    gaps.sort_by_key(|(_, from, _)| *from);
    let mut found = Vec::new();
    let mut from = *first;
    for (_, end, next) in gaps {
        found.push(TimeStretch { from, to: end });
        from = next;
    }
    found.push(TimeStretch { from, to: *last });
    found
}

/// Returns the longest pause between these times, which are sorted, in microseconds.
#[must_use]
pub fn longest_pause(times: &[Timestamp]) -> i64 {
    let gaps = times.windows(2).filter_map(|pair| match pair {
        [from, to] => Some(to.micros_since(*from)),
        _ => None,
    });
    gaps.max().unwrap_or(0)
}

/// An axis of time from 0 to 1.
#[derive(Clone, Debug, Default)]
pub struct TimeAxis {
    parts: Vec<(TimeStretch, f64, f64)>,
    /// The folded pauses.
    pub folds: Vec<AxisFold>,
}

impl TimeAxis {
    /// Creates the axis of these stretches. Each pause between them takes this part of the width.
    #[must_use]
    pub fn new(stretches: &[TimeStretch], fold: f64) -> Self {
        let count = stretches.len() as f64;
        let fold = fold.clamp(0.0, 0.5 / count.max(1.0));
        let room = (1.0 - fold * (count - 1.0).max(0.0)).max(0.0);
        let length = |stretch: &TimeStretch| stretch.to.micros_since(stretch.from).max(0) as f64;
        let total: f64 = stretches.iter().map(length).sum();
        let least = MIN_STRETCH.min(room / count.max(1.0));
        let free = (room - least * count).max(0.0);
        let mut axis = Self::default();
        let mut at = 0.0;
        let mut before: Option<Timestamp> = None;
        for stretch in stretches {
            if let Some(before) = before {
                let micros = stretch.from.micros_since(before);
                axis.folds.push(AxisFold { from: at, to: at + fold, micros });
                at += fold;
            }
            let share = if total > 0.0 { length(stretch) / total } else { 1.0 / count };
            let end = (at + least + free * share).min(1.0);
            axis.parts.push((*stretch, at, end));
            at = end;
            before = Some(stretch.to);
        }
        axis
    }

    /// Returns the place of a time, from 0 to 1.
    #[must_use]
    pub fn place(&self, time: Timestamp) -> f64 {
        let after = self.parts.iter().position(|(stretch, _, _)| time <= stretch.to);
        let Some((stretch, from, to)) = after.and_then(|place| self.parts.get(place)) else {
            return self.parts.last().map_or(0.0, |(_, _, to)| *to);
        };
        let length = stretch.to.micros_since(stretch.from).max(1) as f64;
        let offset = time.micros_since(stretch.from).max(0) as f64;
        from + (to - from) * (offset / length).min(1.0)
    }

    /// Returns the time at a place.
    #[must_use]
    pub fn time(&self, place: f64) -> Option<Timestamp> {
        let (stretch, from, to) =
            self.parts.iter().find(|(_, _, to)| place <= *to).or(self.parts.last())?;
        let share = ((place - from) / (to - from).max(f64::EPSILON)).clamp(0.0, 1.0);
        let length = stretch.to.micros_since(stretch.from) as f64;
        #[expect(clippy::cast_possible_truncation, reason = "within the stretch")]
        let micros = (length * share) as i64;
        Some(stretch.from.plus_micros(micros))
    }

    /// Returns where the stretches begin, with their first times.
    pub fn starts(&self) -> impl Iterator<Item = (f64, Timestamp)> {
        self.parts.iter().map(|(stretch, from, _)| (*from, stretch.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(minutes: &[i64]) -> Vec<Timestamp> {
        minutes.iter().map(|minute| Timestamp::from_micros(minute * 60_000_000)).collect()
    }

    #[test]
    fn a_night_is_folded_and_a_coffee_is_not() {
        let all = times(&[0, 5, 20, 30, 1000, 1010]);
        let found = stretches(&all);
        assert_eq!(found.len(), 2);
        let axis = TimeAxis::new(&found, 0.02);
        let [fold] = axis.folds.as_slice() else { panic!("{:?}", axis.folds) };
        assert_eq!(fold.micros, 970 * 60_000_000);
        assert!((fold.to - fold.from - 0.02).abs() < 1e-9);
        assert!(axis.place(all[3]) <= fold.from + 1e-9 && axis.place(all[4]) >= fold.to - 1e-9);
        assert!((axis.place(all[5]) - 1.0).abs() < 1e-9 && axis.place(all[0]).abs() < 1e-9);
        assert_eq!(longest_pause(&all), 970 * 60_000_000);
    }

    #[test]
    fn a_place_and_its_time_belong_together() {
        let all = times(&[0, 10, 400, 410, 415]);
        let axis = TimeAxis::new(&stretches(&all), 0.05);
        for time in [0, 5, 9, 401, 407, 415].map(|m| Timestamp::from_micros(m * 60_000_000)) {
            let back = axis.time(axis.place(time)).unwrap();
            assert!(back.micros_since(time).abs() < 1_000_000, "{time} {back}");
        }
        assert_eq!(TimeAxis::default().time(0.5), None);
        let same = TimeAxis::new(&stretches(&times(&[7, 7])), 0.1);
        assert!(same.place(times(&[7])[0]) <= 1.0);
    }
}
