//! Checks whether the time zone in the environment variable `TZ` is known. chrono ignores an
//! unknown one without an error.

use crate::context::Context;
use forge_store::model::Timestamp;
use std::path::Path;

/// The directories in which chrono looks for zone files.
const DIRECTORIES: [&str; 4] =
    ["/usr/share/zoneinfo", "/share/zoneinfo", "/etc/zoneinfo", "/usr/share/lib/zoneinfo"];

/// Warns on stderr if the zone in `TZ` is unknown, and names the zone that is used instead.
pub fn warn_if_unknown(context: &Context) {
    let Some(name) = context.environment.text("TZ").filter(|_| cfg!(unix)) else { return };
    if is_known(name, &DIRECTORIES) {
        return;
    }
    let used = zone_in_use(context.now, context);
    // Without zone files, `UTC` is unknown too, but it is the zone in use: no warning is needed.
    if used == "+00:00" && ["UTC", "GMT", "Z"].contains(&name) {
        return;
    }
    context.out.warn(&format!(
        "the time zone '{name}' is not known (variable TZ): times are read and shown in the zone \
         of the system instead, which is {used} now"
    ));
}

fn zone_in_use(now: Timestamp, context: &Context) -> String {
    now.to_datetime().with_timezone(&context.zone).offset().to_string()
}

/// Returns whether chrono accepts this value of `TZ`: the name or path of a zone file, or a POSIX
/// rule.
fn is_known(name: &str, directories: &[&str]) -> bool {
    if name == "localtime" {
        return true;
    }
    let path = name.strip_prefix(':').unwrap_or(name);
    // An absolute path replaces the directory that it is joined to.
    let is_file = directories.iter().any(|directory| Path::new(directory).join(path).is_file());
    is_file || is_posix_rule(name.trim_ascii())
}

/// Returns whether this is a POSIX rule, such as `CET-1CEST,M3.5.0,M10.5.0/3`. Does not check
/// whether its days exist.
fn is_posix_rule(rule: &str) -> bool {
    let Some(rest) = after_offset(after_name(rule).unwrap_or_default()) else { return false };
    if rest.is_empty() {
        return true;
    }
    let Some(rest) = after_name(rest) else { return false };
    let days = after_offset(rest).unwrap_or(rest).strip_prefix(',');
    days.and_then(|days| days.split_once(',')).is_some_and(|(from, to)| {
        [from, to].into_iter().all(|day| {
            let (day, clock) = day.split_once('/').unwrap_or((day, "0"));
            day.starts_with(|first: char| first == 'J' || first == 'M' || first.is_ascii_digit())
                && day.chars().all(|next| next.is_ascii_digit() || "JM.".contains(next))
                && is_clock_time(clock)
        })
    })
}

/// Returns the text after the abbreviation of a zone at the beginning of `text`; `None` if there is
/// none. An abbreviation is at least 3 letters, or at least 3 letters, digits, `+` and `-` in `<>`.
fn after_name(text: &str) -> Option<&str> {
    if let Some((name, rest)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) {
        let is_name = |next: char| next.is_ascii_alphanumeric() || next == '+' || next == '-';
        return (name.len() >= 3 && name.chars().all(is_name)).then_some(rest);
    }
    let rest = text.trim_start_matches(|next: char| next.is_ascii_alphabetic());
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// Returns the text after an offset, such as `-1`, `5` or `+05:30`, at the beginning of `text`;
/// `None` if there is none.
fn after_offset(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = digits.trim_start_matches(|next: char| next.is_ascii_digit() || next == ':');
    let clock = digits.strip_suffix(rest)?;
    is_clock_time(clock).then_some(rest)
}

/// Returns whether this is a clock time up to 24 hours, such as `2`, `02:30` or `24`. In other
/// programs it may have a sign or be greater, as in the rule of Israel; chrono ignores such rules.
fn is_clock_time(text: &str) -> bool {
    const MOST: [u32; 3] = [24, 59, 59];
    let mut parts = text.split(':').enumerate();
    let is_part = |(place, part): (usize, &str)| {
        MOST.get(place).is_some_and(|most| part.parse::<u32>().is_ok_and(|number| number <= *most))
    };
    !text.contains('+') && parts.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_time_zone_rules_are_known_without_a_file() {
        for rule in [
            "UTC0", "EST5", "CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30", "EST5EDT4,J60,J300",
            "IST-05:30:00",
        ] {
            assert!(is_known(rule, &[]), "{rule}");
        }
        for name in
            ["Mars/Olympus", "CEST", "EST5EDT", "5", "UT0", "<x>1", "CET-1CEST,nonsense", "", "+2"]
        {
            assert!(!is_known(name, &[]), "{name}");
        }
    }

    /// Regression: they were taken as known, so times were shown in another zone without a warning.
    #[test]
    fn rules_that_chrono_ignores_are_not_known() {
        for rule in [
            "IST-2IDT,M3.4.4/26,M10.5.0",
            "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
            "CET-1CEST,M3.5.0/+2,M10.5.0/3",
            "ABC25",
            "ABC5:60",
            "ABC5:30:00:00",
        ] {
            assert!(!is_known(rule, &[]), "{rule}");
        }
    }

    #[test]
    fn a_time_zone_is_known_by_the_name_or_the_path_of_its_file() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("Europe")).unwrap();
        std::fs::write(place.path().join("Europe/Berlin"), "TZif").unwrap();
        let directory = place.path().to_str().unwrap();
        let path = format!("{directory}/Europe/Berlin");
        for name in ["Europe/Berlin", ":Europe/Berlin", &path] {
            assert!(is_known(name, &[directory]), "{name}");
        }
        for name in ["Europe", ":Europe", "Europe/Paris"] {
            assert!(!is_known(name, &[directory]), "{name}");
        }
    }
}
