//! The timeline: a row for each revision or checkpoint, newest first, and a lane for each branch.

use crate::output::{Report, Screen, Tone};
use crate::text::count_text;
use forge_store::model::{BranchStatus, CheckpointTrigger, Timestamp};
use serde::Serialize;

/// Branches, revisions and checkpoints, newest first.
#[derive(Debug, Serialize)]
pub struct TimelineReport {
    pub session: String,
    /// The branches, `main` first.
    pub branches: Vec<TimelineLane>,
    /// The entries, newest first.
    pub entries: Vec<TimelineEntry>,
    /// How many older rows were omitted.
    pub omitted: usize,
    /// Whether only a part of the timeline was asked for.
    #[serde(skip)]
    pub is_narrowed: bool,
}

/// A branch, as a lane.
#[derive(Debug, Serialize)]
pub struct TimelineLane {
    pub name: String,
    pub status: BranchStatus,
    /// Whether it is checked out.
    pub current: bool,
    /// The branch that it was forked from; null for `main`.
    pub base: Option<String>,
    /// The number of the revision that it was forked from; null before the first.
    pub base_revision: Option<u64>,
    /// The number of its newest revision; null before the first.
    pub head: Option<u64>,
}

/// A revision or a checkpoint.
#[derive(Debug, Serialize)]
pub struct TimelineEntry {
    /// `revision` or `checkpoint`.
    #[serde(rename = "type")]
    pub sort: TimelineEntryKind,
    pub sequence: u64,
    pub id: String,
    pub time: Timestamp,
    pub branch: String,
    /// The message of a checkpoint, or the verb of a revision.
    pub message: String,
    /// What a revision changed, in the words of the story.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub tags: Vec<String>,
    /// Why a checkpoint was made; null for a revision.
    pub trigger: Option<CheckpointTrigger>,
    /// The number of the revision that this one merged; absent if it is not a merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    /// How many revisions are omitted between this entry and the next older one.
    pub revisions_below: usize,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineEntryKind {
    Revision,
    Checkpoint,
}

/// The assignment of branches to lanes while rows are drawn from newest to oldest.
struct LaneAssignment<'a> {
    timeline: &'a TimelineReport,
    /// The branch in each lane.
    used: Vec<Option<usize>>,
}

impl LaneAssignment<'_> {
    fn lane_of(&mut self, branch: usize) -> usize {
        if let Some(lane) = self.used.iter().position(|used| *used == Some(branch)) {
            return lane;
        }
        // The first lane is reserved for main.
        let from = usize::from(branch != 0);
        while self.used.len() <= from {
            self.used.push(None);
        }
        let free = (from..self.used.len()).find(|lane| self.used[*lane].is_none());
        let lane = free.unwrap_or_else(|| {
            self.used.push(None);
            self.used.len() - 1
        });
        self.used[lane] = Some(branch);
        lane
    }

    /// Returns the branches with a lane that were forked from the revision of this entry.
    fn branches_leaving(&self, entry: &TimelineEntry) -> Vec<usize> {
        let leaves = |branch: &&usize| {
            let lane = &self.timeline.branches[**branch];
            entry.sort == TimelineEntryKind::Revision && lane.base_revision == Some(entry.sequence)
        };
        self.used.iter().flatten().filter(leaves).copied().collect()
    }

    /// Returns the lane of the branch of a row. A branch without a lane takes the lane of a branch
    /// that was forked from this row, which is then removed from `leaving`.
    fn take_over_lane(&mut self, branch: usize, leaving: &mut Vec<usize>) -> usize {
        if branch != 0 && !self.used.contains(&Some(branch)) {
            let lane = self.used.iter().position(|used| used.is_some_and(|b| leaving.contains(&b)));
            if let Some(lane) = lane {
                leaving.retain(|left| self.used[lane] != Some(*left));
                self.used[lane] = Some(branch);
                return lane;
            }
        }
        self.lane_of(branch)
    }

    /// Returns the line that joins the lanes of these branches to this lane, and frees their lanes.
    fn join_lanes(&mut self, lane: usize, branches: &[usize]) -> String {
        let joins: Vec<usize> = (0..self.used.len())
            .filter(|place| self.used[*place].is_some_and(|branch| branches.contains(&branch)))
            .collect();
        let first = joins.iter().copied().min().unwrap_or(lane).min(lane);
        let last = joins.iter().copied().max().unwrap_or(lane).max(lane);
        let mut line = String::new();
        for place in 0..self.used.len() {
            let inside = place > first && place < last;
            line.push(match self.used[place] {
                _ if place == lane && inside => '┼',
                _ if place == lane && last > lane => '├',
                _ if place == lane => '┤',
                _ if joins.contains(&place) && place == first => '╰',
                _ if joins.contains(&place) && place == last => '╯',
                _ if joins.contains(&place) => '┴',
                Some(_) if inside => '┼',
                Some(_) => '│',
                None if inside => '─',
                None => ' ',
            });
            line.push(if place >= first && place < last { '─' } else { ' ' });
        }
        for place in joins {
            self.used[place] = None;
        }
        line
    }

    fn row(&self, at: Option<usize>, mark: char) -> String {
        let mut line = String::new();
        for (place, used) in self.used.iter().enumerate() {
            line.push(match used {
                _ if at == Some(place) => mark,
                Some(_) => '│',
                None => ' ',
            });
            line.push(' ');
        }
        line
    }
}

impl TimelineEntry {
    /// The tags that a person chose. The tags of an automatic checkpoint only repeat its message.
    fn chosen_tags(&self) -> &[String] {
        let is_automatic = self.tags.iter().any(|tag| tag == "auto");
        if is_automatic { &[] } else { &self.tags }
    }
}

impl TimelineReport {
    fn branch_index(&self, branch: &str) -> usize {
        self.branches.iter().position(|lane| lane.name == branch).unwrap_or(0)
    }

    /// Returns the rows: the drawn lanes of each, and its entry; `None` for a row that only joins
    /// lanes.
    fn rows(&self) -> Vec<(String, Option<&TimelineEntry>)> {
        let mut rows = Vec::new();
        let mut lanes = LaneAssignment { timeline: self, used: Vec::new() };
        for (number, entry) in self.entries.iter().enumerate() {
            let branch = self.branch_index(&entry.branch);
            let mut leaving = lanes.branches_leaving(entry);
            let lane = lanes.take_over_lane(branch, &mut leaving);
            if !leaving.is_empty() {
                rows.push((lanes.join_lanes(lane, &leaving), None));
            }
            let mark = if entry.sort == TimelineEntryKind::Checkpoint { '◆' } else { '●' };
            rows.push((lanes.row(Some(lane), mark), Some(entry)));
            // A branch has no line below its oldest entry if the revision that it was forked from
            // is not drawn.
            let older = &self.entries[number + 1..];
            let has_more = older.iter().any(|older| older.branch == entry.branch);
            let base = self.branches.get(branch).and_then(|lane| lane.base_revision);
            let joins = older.iter().any(|older| {
                older.sort == TimelineEntryKind::Revision && Some(older.sequence) == base
            });
            if !has_more && !joins {
                lanes.used[lane] = None;
            }
            while lanes.used.last() == Some(&None) {
                lanes.used.pop();
            }
            if entry.revisions_below > 0 {
                rows.push((lanes.row(None, ' '), Some(entry)));
            }
        }
        rows
    }

    /// Returns the names of the branches whose newest entry this is, and of the branches without an
    /// entry that were forked from it.
    fn heads(&self, entry: &TimelineEntry) -> String {
        let newest = |branch: &str| self.entries.iter().find(|entry| entry.branch == branch);
        let mut names = Vec::new();
        for lane in &self.branches {
            let here = match newest(&lane.name) {
                Some(first) => first.sequence == entry.sequence,
                None => {
                    entry.sort == TimelineEntryKind::Revision
                        && lane.base_revision.or(lane.head) == Some(entry.sequence)
                }
            };
            if here {
                let star = if lane.current { "*" } else { "" };
                let status = match lane.status {
                    BranchStatus::Active => "",
                    BranchStatus::Merged => ", merged",
                    BranchStatus::Abandoned => ", abandoned",
                    BranchStatus::Archived => ", archived",
                };
                names.push(format!("({}{star}{status})", lane.name));
            }
        }
        if names.is_empty() { String::new() } else { format!("{} ", names.join(" ")) }
    }
}

impl Report for TimelineReport {
    fn human(&self, screen: &mut Screen) {
        if self.entries.is_empty() {
            let session = &self.session;
            let text = match self.is_narrowed {
                true => format!(
                    "No head, fork, merge or checkpoint of the session '{session}' is in this part \
                     of the timeline."
                ),
                false => format!(
                    "The session '{session}' has no revision and no checkpoint yet. '{} story' \
                     shows what happened.",
                    screen.forge()
                ),
            };
            return screen.plain(&text);
        }
        let (mut drawn, mut day) = (None, String::new());
        for (lanes, entry) in self.rows() {
            let Some(entry) = entry else {
                screen.short_line(&[(Tone::Dim, lanes.trim_end())]);
                continue;
            };
            if drawn == Some(entry.sequence) {
                let revisions = count_text(entry.revisions_below as u64, "revision");
                screen.short_line(&[(Tone::Dim, &format!("{lanes} … {revisions}"))]);
                continue;
            }
            drawn = Some(entry.sequence);
            // A date only where it changes.
            let date = screen.day(entry.time);
            if date != day {
                screen.short_line(&[(Tone::Dim, &format!("── {date} ──"))]);
                day = date;
            }
            let when = screen.clock(entry.time);
            let tags = entry.chosen_tags().join(",");
            let tags = if tags.is_empty() { tags } else { format!(" [{tags}]") };
            // The summary of a merge already names the merged revision.
            let merged = entry.merged.filter(|_| entry.summary.is_none());
            let merged = merged.map(|merged| format!(" of #{merged}")).unwrap_or_default();
            let tone =
                if entry.sort == TimelineEntryKind::Checkpoint { Tone::Plain } else { Tone::Dim };
            screen.short_line(&[
                (Tone::Plain, &format!("{lanes} ")),
                (Tone::Id, &format!("#{} ", entry.sequence)),
                (Tone::Dim, &format!("{when} ")),
                (Tone::Good, &self.heads(entry)),
                (tone, entry.summary.as_ref().unwrap_or(&entry.message)),
                (Tone::Id, &merged),
                (Tone::Warning, &tags),
            ]);
        }
        if self.omitted > 0 {
            screen.dim(&format!("and {} older rows", self.omitted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str, base: Option<(&str, u64)>) -> TimelineLane {
        TimelineLane {
            name: name.to_owned(),
            status: BranchStatus::Active,
            current: name == "main",
            base: base.map(|(branch, _)| branch.to_owned()),
            base_revision: base.map(|(_, revision)| revision),
            head: None,
        }
    }

    fn entry(sequence: u64, branch: &str) -> TimelineEntry {
        TimelineEntry {
            sort: TimelineEntryKind::Revision,
            sequence,
            id: String::new(),
            time: Timestamp::from_micros(0),
            branch: branch.to_owned(),
            message: String::new(),
            summary: None,
            tags: Vec::new(),
            trigger: None,
            merged: None,
            revisions_below: 0,
        }
    }

    fn drawn(branches: Vec<TimelineLane>, entries: Vec<TimelineEntry>) -> Vec<String> {
        let session = "s".to_owned();
        let timeline =
            TimelineReport { session, branches, entries, omitted: 0, is_narrowed: false };
        let rows = timeline.rows();
        rows.into_iter().map(|(lanes, _)| lanes.trim_end().to_owned()).collect()
    }

    #[test]
    fn a_branch_is_drawn_down_to_the_revision_that_it_begins_at() {
        let branches =
            vec![lane("main", None), lane("a", Some(("main", 2))), lane("b", Some(("a", 4)))];
        let entries = vec![
            entry(6, "b"),
            entry(5, "main"),
            entry(4, "a"),
            entry(3, "main"),
            entry(2, "main"),
            entry(1, "main"),
        ];
        assert_eq!(drawn(branches, entries), ["  ●", "● │", "│ ●", "● │", "├─╯", "●", "●"]);
    }

    #[test]
    fn two_branches_that_begin_at_one_revision_are_drawn_to_it() {
        let branches =
            vec![lane("main", None), lane("a", Some(("main", 1))), lane("b", Some(("main", 1)))];
        let entries = vec![entry(4, "b"), entry(3, "a"), entry(2, "main"), entry(1, "main")];
        assert_eq!(drawn(branches, entries), ["  ●", "  │ ●", "● │ │", "├─┴─╯", "●"]);
    }

    #[test]
    fn a_branch_that_begins_outside_the_list_is_drawn_without_a_join() {
        let branches = vec![lane("main", None), lane("a", Some(("main", 1)))];
        assert_eq!(drawn(branches, vec![entry(3, "a"), entry(2, "main")]), ["  ●", "●"]);
    }
}
