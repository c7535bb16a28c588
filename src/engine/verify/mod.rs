//! Verifies the consistency of a store: records, rows, objects, digests, and every derived row.

mod content;
mod history;
mod rows;

pub(crate) use content::keyframe;

use super::commit::Engine;
use super::read_snapshot::ReadSnapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Record;
use content::{digests, heads, keyframes, objects, segments};
use history::{history, reads_together, sessions};
use rows::{derived_rows, prewritten_rows, totals};
use serde::Serialize;

/// How thorough a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Checks the journal and the rows of revisions and checkpoints, and that their numbers have no
    /// gap.
    Quick,
    /// Checks every object, every digest and every derived row as well.
    ReadData,
}

/// A problem at one place of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyFinding {
    /// The place, for example a revision or a table.
    pub place: String,
    /// The problem found there.
    pub problem: String,
    /// Whether everything that is wrong can be rebuilt from intact data.
    pub derived: bool,
}

/// Counts of what was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCounts {
    /// Number of journal records.
    pub records: u64,
    /// Number of revisions.
    pub revisions: u64,
    /// Number of objects that were opened.
    pub objects: u64,
    /// Number of derived rows that were compared.
    pub rows: u64,
}

/// The result of a check.
#[derive(Default)]
pub(crate) struct VerifyFindings {
    pub(crate) found: Vec<VerifyFinding>,
    pub(crate) checked: VerifyCounts,
    /// Number of revisions that were lost before an earlier repair.
    pub(crate) lost_before: u64,
    /// Places whose data was not written by the holder of the key.
    pub(crate) forged: Vec<String>,
}

/// The name of the index as a place in findings.
pub(crate) const INDEX: &str = "the index";

impl VerifyFindings {
    /// Adds the findings of another check.
    fn add_all(&mut self, other: Self) {
        self.found.extend(other.found);
        self.forged.extend(other.forged);
        self.lost_before += other.lost_before;
        self.checked.records += other.checked.records;
        self.checked.revisions += other.checked.revisions;
        self.checked.objects += other.checked.objects;
        self.checked.rows += other.checked.rows;
    }

    /// Adds a finding for something that cannot be read.
    pub(crate) fn add_unreadable(&mut self, place: impl Into<String>, error: &Error) {
        let place = place.into();
        if error.kind() == ErrorKind::Forged {
            self.forged.push(place.clone());
        }
        self.add_primary(place, &chain(error));
    }

    pub(crate) fn add_primary(
        &mut self,
        place: impl Into<String>,
        problem: &dyn std::fmt::Display,
    ) {
        let (place, problem) = (place.into(), problem.to_string());
        self.found.push(VerifyFinding { place, problem, derived: false });
    }

    pub(crate) fn add_derived(
        &mut self,
        place: impl Into<String>,
        problem: &dyn std::fmt::Display,
    ) {
        let (place, problem) = (place.into(), problem.to_string());
        self.found.push(VerifyFinding { place, problem, derived: true });
    }
}

/// Formats an error with its causes, in one line.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl Engine {
    /// Checks everything in the open store.
    pub(crate) fn verify(&self, depth: VerifyDepth, findings: &mut VerifyFindings) {
        if let Err(error) = self.verify_journal(findings) {
            findings.add_unreadable("the journal", &error);
        }
        let written = self.follower.written_view();
        let counts = written.as_ref().ok().and_then(quick_counts_if_sound);
        let is_sound = counts.is_some();
        findings.add_all(counts.unwrap_or_default());
        let view = written.and_then(|view| {
            if !is_sound {
                view.check_density()?;
            }
            view.with_session_rows()
        });
        match view {
            Err(error) => {
                // If the journal cannot be read, this is the same error, which is already reported.
                let problem = chain(&error);
                if findings.found.iter().all(|known| known.problem != problem) {
                    findings.add_unreadable(INDEX, &error);
                }
            }
            Ok(view) => {
                let quick = QUICK.iter().filter(|_| !is_sound);
                let deep: [(&str, StoreCheck); 8] = [
                    ("totals", totals),
                    ("pre-written objects", prewritten_rows),
                    ("objects", objects),
                    ("digests", digests),
                    ("keyframes", keyframes),
                    ("growing blobs", segments),
                    ("derived tables", derived_rows),
                    ("heads", heads),
                ];
                let deep = deep.iter().filter(|_| depth == VerifyDepth::ReadData);
                for (what, check) in quick.chain(deep) {
                    // An error ends this check; the next ones still run.
                    if let Err(error) = check(&view, findings) {
                        findings.add_primary(format!("the index, at its {what}"), &chain(&error));
                    }
                }
            }
        }
    }

    fn verify_journal(&self, findings: &mut VerifyFindings) -> Result<()> {
        let log = &self.follower.log;
        let mut from = log.start()?;
        let position = self.follower.index.position()?;
        if from > position {
            let problem = format!("it begins at {from}, the index ends at {position}");
            findings.add_primary("the journal", &problem);
        }
        loop {
            let tail = log.read(from, 4 << 20)?;
            if tail.frames.is_empty() {
                return Ok(());
            }
            for frame in &tail.frames {
                findings.checked.records += 1;
                if let Err(error) = Record::decode(&frame.payload) {
                    findings.add_primary(format!("the record at {}", frame.position), &error);
                }
            }
            from = tail.end;
        }
    }
}

type StoreCheck = fn(&ReadSnapshot, &mut VerifyFindings) -> Result<()>;

/// The checks of every depth.
static QUICK: [(&str, StoreCheck); 2] =
    [("sessions", sessions), ("revisions and checkpoints", history)];

/// Makes the quick checks, and returns their counts; `None` if they failed or found anything, or if
/// the index cannot read several tables at once. After a finding, the caller must look for missing
/// rows first, because they explain the rest.
fn quick_counts_if_sound(view: &ReadSnapshot) -> Option<VerifyFindings> {
    // An index that cannot read several tables at once would read each of them twice.
    reads_together(view).ok().filter(|together| *together)?;
    let view = view.clone().with_session_rows().ok()?;
    let mut findings = VerifyFindings::default();
    let is_done = QUICK.iter().all(|(_, check)| check(&view, &mut findings).is_ok());
    (is_done && findings.found.is_empty() && findings.forged.is_empty()).then_some(findings)
}
