//! The graph of branches next to the timeline. Each branch has a lane; lanes of ended branches are
//! reused.

use crate::answer::TimelineRow;
use crate::effect::MomentTarget;
use crate::theme::Theme;
use forge_store::store::{BranchTimeline, HistoryPosition, HistoryRank};

/// The maximum number of lanes. More branches share the last one.
const MAX_LANES: usize = 8;

struct BranchLane<'a> {
    line: &'a BranchTimeline,
    column: usize,
    /// The position after which the lane begins.
    from: Option<HistoryPosition>,
    /// The position at which the lane ends.
    top: Option<HistoryPosition>,
}

/// The lanes of all branches.
pub(super) struct BranchGraph<'a> {
    lanes: Vec<BranchLane<'a>>,
    /// The number of lanes side by side.
    pub(super) columns: usize,
}

impl<'a> BranchGraph<'a> {
    pub(super) fn from_branches(lines: &'a [BranchTimeline], current: &str) -> Self {
        let mut lanes: Vec<BranchLane<'a>> = Vec::new();
        let always = HistoryPosition {
            time: forge_store::model::Timestamp::MAX,
            rank: HistoryRank::Sequence(u64::MAX),
        };
        for line in lines {
            let made = HistoryPosition { time: line.created_at, rank: HistoryRank::Sequence(0) };
            let from = line.base.as_ref().map(|(_, place)| place.unwrap_or(made));
            // A branch that has no own revision yet ends where it was created.
            let top = if line.name == current { Some(always) } else { line.head.max(Some(made)) };
            let taken = |column: usize| {
                lanes
                    .iter()
                    .any(|lane| lane.column == column && lane.top >= from && top >= lane.from)
            };
            let column = (0..).find(|column| !taken(*column)).unwrap_or(0).min(MAX_LANES - 1);
            lanes.push(BranchLane { line, column, from, top });
        }
        let columns = lanes.iter().map(|lane| lane.column + 1).max().unwrap_or(1);
        Self { lanes, columns }
    }

    fn lane(&self, name: &str) -> Option<&BranchLane<'a>> {
        self.lanes.iter().find(|lane| lane.line.name == name)
    }

    /// Returns the graph's part of a row, two characters per lane; `newer` is the row that follows
    /// in time, which is above it if the timeline is turned.
    pub(super) fn cells(
        &self,
        row: &TimelineRow,
        newer: Option<&TimelineRow>,
        sign: &str,
        theme: Theme,
        turned: bool,
    ) -> String {
        let mut cells = vec![[" ", " "]; self.columns];
        let place = if row.target == MomentTarget::Head {
            HistoryPosition { rank: HistoryRank::Sequence(u64::MAX), ..row.place }
        } else {
            row.place
        };
        for lane in &self.lanes {
            if lane.from.is_none_or(|from| from < place)
                && lane.top.is_some_and(|top| place <= top)
                && let Some(cell) = cells.get_mut(lane.column)
            {
                cell[0] = theme.glyph("│", "|");
            }
        }
        let own = self.lane(&row.branch).map_or(0, |lane| lane.column);
        // The corners of a line to the right and to the left.
        let (lower, upper) = ([["╯", "'"], ["╰", "`"]], [["╮", "."], ["╭", "."]]);
        let (begin, end) = if turned { (lower, upper) } else { (upper, lower) };
        for lane in &self.lanes {
            let Some(from) = lane.from else { continue };
            let starts = place <= from && newer.is_some_and(|newer| newer.place > from);
            if starts {
                let parent = lane.line.base.as_ref().and_then(|(name, _)| self.lane(name));
                let parent = parent.map_or(0, |parent| parent.column);
                join(&mut cells, parent, lane.column, begin, theme);
            }
        }
        if let Some(merged) = row.merged {
            let ended = |lane: &&BranchLane<'_>| {
                lane.line.head.is_some_and(|head| head.rank == HistoryRank::Sequence(merged))
            };
            if let Some(lane) = self.lanes.iter().find(ended) {
                join(&mut cells, own, lane.column, end, theme);
            }
        }
        let line = cells.concat().concat();
        let replaced = line.chars().enumerate().map(|(place, letter)| {
            if place == own * 2 { sign.to_owned() } else { letter.to_string() }
        });
        replaced.collect()
    }
}

/// Draws a line from one lane to another, which begins or ends there.
fn join(
    cells: &mut [[&'static str; 2]],
    from: usize,
    to: usize,
    [right, left]: [[&'static str; 2]; 2],
    theme: Theme,
) {
    let dash = theme.glyph("─", "-");
    let end = if to > from { right } else { left };
    let (low, high) = (from.min(to), from.max(to));
    if low == high {
        return;
    }
    for (column, cell) in cells.iter_mut().enumerate() {
        if column >= low && column < high {
            cell[1] = dash;
        }
        if column > low && column < high {
            cell[0] = dash;
        }
        if column == to {
            cell[0] = theme.glyph(end[0], end[1]);
        }
    }
}
