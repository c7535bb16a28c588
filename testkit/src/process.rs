//! What the system says of a process.

use std::fs;

/// Returns the processor time of a process so far, in milliseconds; of one that has ended, none.
/// `self` names this one.
#[must_use]
pub fn processor_time(process: &str) -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = text.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    ticks.sum::<f64>() * 1000.0 / TICKS_A_SECOND
}
