//! Chooses the times that label a ruler.

use crate::page_clock::PageZone;
use forge_store::model::Timestamp;
use forge_store::story::TimeRuler;

/// The possible distances between two round times, in seconds.
const STEPS: [i64; 10] = [60, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
/// The minimum distance between two labels without a day, as a fraction of the width.
const STEP_ROOM: f64 = 0.07;
/// The last place at which a label fits, as a fraction of the width.
const LAST_PLACE: f64 = 0.955;

/// A time along a ruler.
pub(super) struct RulerTick {
    pub(super) place: f64,
    pub(super) label: String,
    /// Whether a narrow screen has room for it.
    pub(super) fits_narrow: bool,
}

/// Returns the times that fit along a ruler.
pub(super) fn ticks(ruler: &TimeRuler, zone: PageZone) -> Vec<RulerTick> {
    let mut ticks = Vec::new();
    let (mut free, mut narrow_free) = (-1.0, -1.0);
    let mut day = String::new();
    for (place, at) in candidates(ruler, zone) {
        if place < free || place > LAST_PLACE {
            continue;
        }
        // The first label of a day has the day.
        let (this_day, clock) = (zone.short_day(at), zone.clock(at));
        let has_day = this_day != day;
        let label = if has_day { format!("{this_day} {clock}") } else { clock };
        day = this_day;
        free = place + if has_day { 0.14 } else { STEP_ROOM };
        let fits_narrow = place >= narrow_free && place < 0.86;
        if fits_narrow {
            narrow_free = place + if has_day { 0.4 } else { 0.2 };
        }
        ticks.push(RulerTick { place, label, fits_narrow });
    }
    ticks
}

/// Returns the beginning of each stretch, and round times inside, with their places.
fn candidates(ruler: &TimeRuler, zone: PageZone) -> Vec<(f64, Timestamp)> {
    let mut found = Vec::new();
    for period in ruler.periods() {
        found.push((period.start, period.from));
        #[expect(clippy::cast_precision_loss, reason = "a place needs no microseconds")]
        let length = period.to.micros_since(period.from) as f64 / 1e6;
        #[expect(clippy::cast_precision_loss, reason = "at most a day")]
        let step = STEPS.iter().find(|step| period.width * **step as f64 / length > STEP_ROOM);
        let Some(step) = step.filter(|_| length > 0.0) else { continue };
        let mut at = zone.next_step(period.from, *step);
        while at < period.to {
            found.push((ruler.place(at), at));
            at = zone.next_step(at, *step);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: if the first label of a day had no room, no label had this day.
    #[test]
    fn the_first_label_of_a_day_has_the_day() {
        let ten_minutes = |from: &str, count: i64| -> Vec<Timestamp> {
            let from = Timestamp::parse_rfc3339(from).unwrap();
            (0..count).map(|number| from.plus_micros(number * 600_000_000)).collect()
        };
        let times = [
            ten_minutes("2026-02-01T20:00:00Z", 15),
            ten_minutes("2026-02-02T00:10:00Z", 1),
            ten_minutes("2026-02-02T08:00:00Z", 25),
        ];
        let ruler = TimeRuler::of(times.concat()).unwrap();
        let labels: Vec<String> =
            ticks(&ruler, PageZone::Utc).into_iter().map(|tick| tick.label).collect();
        assert!(labels.iter().any(|label| label.starts_with("2 Feb ")), "{labels:?}");
    }
}
