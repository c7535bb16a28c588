//! Reports of `forge verify`, `forge rebuild` and `forge repair`.

use super::store::UnfinishedStream;
use crate::error::{EXIT_FORGED, EXIT_OK};
use crate::output::{Report, Screen};
use crate::text::count_text;
use forge_store::store::{self, RepairLosses, SealStatus, VerifyOutcome};
use serde::Serialize;
use std::path::Path;

/// The result of `forge verify`.
#[derive(Debug, Serialize)]
pub struct StoreVerifyReport {
    pub path: String,
    /// `clean`, `repairable`, `loss` or `forged`.
    pub outcome: VerifyOutcome,
    /// The state of its seals: `sealed` (all seals that were checked are valid, unless a finding
    /// says otherwise), `unsealed`, `no_key` or `no_witness`.
    pub seals: SealStatus,
    pub encrypted: bool,
    /// Whether every object was read and every derived row compared.
    pub read_data: bool,
    /// The number of journal records that were checked.
    pub records: u64,
    /// The number of revisions that were checked.
    pub revisions: u64,
    /// The number of objects that were opened.
    pub objects: u64,
    /// The number of derived rows that were compared.
    pub rows: u64,
    /// The number of spooled writes.
    pub waiting: u64,
    /// The number of revisions, deltas and spooled writes that an earlier repair listed as lost.
    pub lost_before: u64,
    /// How many losses an earlier repair listed; absent if there are none, or if they were
    /// acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_in_repair: Option<u64>,
    /// The damage that was found.
    pub findings: Vec<store::VerifyFinding>,
    /// What a repair could not save.
    pub lost: Vec<String>,
    /// The imports that have begun and not ended; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedStream>,
}

impl StoreVerifyReport {
    pub fn new(path: &Path, read_data: bool, found: store::VerifyReport) -> Self {
        Self {
            path: path.display().to_string(),
            outcome: found.outcome,
            seals: found.seal_status,
            encrypted: found.encrypted,
            read_data,
            records: found.checked.records,
            revisions: found.checked.revisions,
            objects: found.checked.objects,
            rows: found.checked.rows,
            waiting: found.waiting.writes,
            lost_before: found.lost_before,
            lost_in_repair: found.lost_in_repair,
            findings: found.findings,
            lost: found.lost,
            unfinished: Vec::new(),
        }
    }
}

fn print_list(screen: &mut Screen, head: &str, lines: &[String]) {
    if !lines.is_empty() {
        screen.plain(head);
        lines.iter().for_each(|line| screen.plain(&format!("  {line}")));
    }
}

impl Report for StoreVerifyReport {
    fn exit_code(&self) -> u8 {
        match self.outcome {
            VerifyOutcome::Clean => EXIT_OK,
            VerifyOutcome::Repairable => 1,
            VerifyOutcome::Loss => 2,
            VerifyOutcome::Forged => EXIT_FORGED,
        }
    }

    fn human(&self, screen: &mut Screen) {
        let (records, revisions) =
            (count_text(self.records, "record"), count_text(self.revisions, "revision"));
        let read = format!("{records} and {revisions}");
        let deep = match self.read_data {
            true => format!(
                ", {}, {}",
                count_text(self.objects, "object"),
                count_text(self.rows, "derived row")
            ),
            false => String::new(),
        };
        let hidden = if self.encrypted { ", which is encrypted" } else { "" };
        screen.plain(&format!("Checked {read}{deep} in {}{hidden}", self.path));
        for one in &self.findings {
            screen.plain(&format!("  {}: {}", one.place, one.problem));
        }
        if self.waiting > 0 {
            let verb = if self.waiting == 1 { "waits" } else { "wait" };
            let waiting = count_text(self.waiting, "write");
            screen.plain(&format!("{waiting} {verb} in the spool."));
        }
        self.unfinished.iter().for_each(|one| one.print(screen));
        // A repair lists more than what it marks as lost, such as bytes of the journal.
        let lost = match self.lost_before.max(self.lost_in_repair.unwrap_or(0)) {
            0 => None,
            1 => Some("1 loss was".to_owned()),
            many => Some(format!("{many} losses were")),
        };
        if let Some(lost) = lost {
            screen.plain(&format!("{lost} named by an earlier repair."));
        }
        match self.seals {
            SealStatus::NoKey => screen.warning("Its key is not here: no seal was checked."),
            SealStatus::NoWitness => {
                screen.warning("Its witness is not here: its end may be missing.");
            }
            _ => {}
        }
        print_list(screen, "A repair could not save:", &self.lost);
        let derived = self.findings.iter().all(|one| one.derived);
        screen.plain(match self.outcome {
            VerifyOutcome::Clean => "Clean.",
            VerifyOutcome::Repairable if derived => {
                "Damaged, and nothing is lost: 'forge rebuild' computes the derived data again."
            }
            VerifyOutcome::Repairable => {
                "Damaged, and nothing is lost: 'forge repair TO' writes a repaired store to a new \
                 folder."
            }
            VerifyOutcome::Forged => {
                "Something is not what was written with the store's key: go back to a backup, save \
                 the valid data in a new folder with 'forge repair TO', or keep the store as it is \
                 with 'forge adopt'."
            }
            VerifyOutcome::Loss => {
                "Something is lost: 'forge repair TO' saves the rest in a new folder."
            }
        });
    }
}

impl Report for store::RebuildCounts {
    fn human(&self, screen: &mut Screen) {
        if self.revisions == 0 && self.rows == 0 {
            return screen.plain("The index has no revision yet: nothing had to be rebuilt.");
        }
        let (rows, states) =
            (count_text(self.rows, "row"), count_text(self.keyframes, "full state"));
        let revisions = count_text(self.revisions, "revision");
        screen.plain(&format!("Rebuilt {rows}; the index has {revisions} and {states}."));
    }
}

/// The result of a repair.
#[derive(Debug, Serialize)]
pub struct StoreRepairReport {
    /// The damaged store, which is unchanged.
    pub from: String,
    /// The new store.
    pub to: String,
    #[serde(flatten)]
    pub done: store::RepairReport,
}

impl StoreRepairReport {
    /// Creates the report for these two stores.
    pub fn new(from: &Path, to: &Path, done: store::RepairReport) -> Self {
        Self { from: from.display().to_string(), to: to.display().to_string(), done }
    }
}

impl Report for StoreRepairReport {
    fn exit_code(&self) -> u8 {
        if self.done.lost.is_empty() { EXIT_OK } else { 2 }
    }

    fn human(&self, screen: &mut Screen) {
        let saved = count_text(self.done.revisions, "revision");
        screen.plain(&format!("Saved {saved} into {}", self.to));
        if self.done.mended > 0 {
            let verb = if self.done.mended == 1 { "was" } else { "were" };
            let mended = count_text(self.done.mended, "wrong bit");
            screen.plain(&format!("{mended} {verb} corrected."));
        }
        print_list(screen, "Lost:", &self.done.lost);
        if self.done.lost.is_empty() {
            screen.plain("Nothing was lost.");
        }
        let next = "rename it, and move the new store to its path";
        screen.plain(&format!("{} is unchanged; {next}.", self.from));
    }
}

/// The result of acknowledging the losses of an earlier repair.
#[derive(Debug, Serialize)]
pub struct LossAcknowledgement {
    /// How many losses the repair had listed.
    pub acknowledged: u64,
}

impl From<Option<RepairLosses>> for LossAcknowledgement {
    fn from(losses: Option<RepairLosses>) -> Self {
        Self { acknowledged: losses.map_or(0, |losses| losses.count) }
    }
}

impl Report for LossAcknowledgement {
    const SCHEMA: Option<&'static str> = Some("forge.repair.acknowledge/1");

    fn human(&self, screen: &mut Screen) {
        let text = match self.acknowledged {
            0 => "There is no loss to acknowledge.".to_owned(),
            1 => "Acknowledged: 1 loss of an earlier repair.".to_owned(),
            count => format!("Acknowledged: {count} losses of an earlier repair."),
        };
        screen.plain(&text);
    }
}
