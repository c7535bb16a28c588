//! Tests of the whole grammar at a fixed clock: tables, laws and the examples of the documentation.

mod laws;
mod messages;
mod moments;
mod page;
mod points;
mod printed;
mod zones;

use super::*;
use crate::model::Timestamp;
use chrono::TimeZone;
use chrono_tz::Tz;

const BERLIN: Tz = Tz::Europe__Berlin;

fn time(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

/// Returns the fixed time of the tests: Wed 2025-06-18 16:45:30 in Berlin.
fn now() -> Timestamp {
    time("2025-06-18T16:45:30+02:00")
}

/// Returns the meaning of a text as a time: the local time with notes, or the reason of the
/// refusal.
fn outcome<Z: TimeZone>(text: &str, now: Timestamp, zone: &Z) -> String {
    match parse_time(text, now, zone) {
        Ok(resolved) => describe(resolved, zone),
        Err(error) => format!("refused: {}", reason(&error)),
    }
}

fn describe<Z: TimeZone>(resolved: ResolvedTime, zone: &Z) -> String {
    let note = match resolved.note {
        None => "",
        Some(ZoneNote::Gap { .. }) => " (gap)",
        Some(ZoneNote::Fold { taken, other, .. })
            if taken.local_minus_utc() > other.local_minus_utc() =>
        {
            " (first of two)"
        }
        Some(ZoneNote::Fold { .. }) => " (second of two)",
    };
    civil_time(resolved.time, zone) + note
}

fn reason(error: &TimeError) -> &'static str {
    match error {
        TimeError::Empty => "empty",
        TimeError::TooLong { .. } => "too long",
        TimeError::Unreadable { .. } => "unreadable",
        TimeError::Number { .. } => "number",
        TimeError::SmallUnit { .. } => "small unit",
        TimeError::Impossible { .. } => "impossible",
        TimeError::Zone { .. } => "zone",
        TimeError::Vague { .. } => "stretch",
        TimeError::Future { .. } => "future",
        TimeError::OutOfRange { .. } => "out of range",
    }
}

/// Returns the meaning of a text as a moment.
fn moment_outcome(text: &str) -> String {
    let moment = match parse_moment(text, now(), &BERLIN) {
        Ok(moment) => moment,
        Err(MomentError::Time(error)) => return format!("refused: {}", reason(&error)),
        Err(MomentError::Empty) => return "refused: empty".to_owned(),
        Err(MomentError::Unreadable { .. }) => return "refused: unreadable".to_owned(),
        Err(MomentError::Impossible { .. }) => return "refused: impossible".to_owned(),
    };
    let base = match moment.base {
        MomentBase::Head => "head".to_owned(),
        MomentBase::Sequence(number) => format!("sequence {number}"),
        MomentBase::Time(time) => format!("time {}", describe(time, &BERLIN)),
        MomentBase::BranchAt { branch: None, time } => {
            format!("current branch at {}", describe(time, &BERLIN))
        }
        MomentBase::BranchAt { branch: Some(branch), time } => {
            format!("branch {branch} at {}", describe(time, &BERLIN))
        }
        MomentBase::Name(AmbiguousName { name, id, time, .. }) => {
            let else_time = time.map(|time| format!(", else time {}", describe(time, &BERLIN)));
            assert!(id.as_ref().is_none_or(|id| name.to_ascii_lowercase() == id.as_str()));
            let named = match id {
                None => format!("tag or branch {name}"),
                Some(id) => format!("tag, branch or id {id}"),
            };
            named + &else_time.unwrap_or_default()
        }
        MomentBase::Tag(name) => format!("tag {name}"),
        MomentBase::Branch(name) => format!("branch {name}"),
        MomentBase::Id(id) => format!("id {id}"),
        MomentBase::Start => "start".to_owned(),
        MomentBase::LastCompaction => "last compaction".to_owned(),
        MomentBase::BeforeLastCompaction => "before last compaction".to_owned(),
        MomentBase::ClaimBecame { id, status, .. } => format!("{id} became {status}"),
        MomentBase::Commit(sha) => format!("commit {sha}"),
        MomentBase::BeforeCommit(sha) => format!("before commit {sha}"),
    };
    if moment.back == 0 { base } else { format!("{base}, {} back", moment.back) }
}

/// Checks every row and reports all failures.
#[track_caller]
fn check<'a>(rows: impl IntoIterator<Item = (&'a str, String, String)>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter(|(_, found, expected)| found != expected)
        .map(|(text, found, expected)| format!("{text:?}: {found}, expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn check_times<Z: TimeZone>(now: Timestamp, zone: &Z, rows: &[(&str, &str)]) {
    check(
        rows.iter()
            .map(|(text, expected)| (*text, outcome(text, now, zone), (*expected).to_owned())),
    );
}
