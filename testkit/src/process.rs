//! The processor time of processes, from `/proc`.

use std::fs;

/// Returns the processor time that a process has used, in milliseconds; 0 if there is no
/// process with this id. `self` is the calling process.
#[must_use]
pub fn processor_time(process: &str) -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = text.rsplit(") ").next().unwrap_or_default();
    // The times in user and in kernel mode are the fields 14 and 15; the name is field 2.
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    ticks.sum::<f64>() * 1000.0 / TICKS_A_SECOND
}
