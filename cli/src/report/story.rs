//! The story of a session: as lines for people, and as a document.

use crate::output::{OutputSink, Report, Screen, Tone};
use crate::text::count_text;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use forge_store::store::LastCheckResult;
use forge_store::story::{
    BranchWalk, DeliveredCommit, FOLDED_SIGN, PatchLineKind, Story, StoryFindings, StoryItem,
    StoryRow, UncommittedFile, folded_words, long_pause, patch_lines,
};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The number of columns before the text of a line, in which the time and the sign are.
const TEXT_COLUMN: usize = 11;
/// The maximum length of a separator, in columns.
const RULE_COLUMNS: usize = 72;
/// The maximum number of uncommitted files that are named.
const FILES_NAMED: usize = 6;

#[derive(Debug)]
pub struct StoryReport {
    /// The story, without the lines that are not shown.
    pub story: Story,
    /// The number of earlier lines, which are not shown.
    pub earlier: usize,
    /// The patches of edits to show, by the id of the edit.
    pub patches: BTreeMap<String, String>,
    /// Whether to write one line with its date for each item, without headings and findings.
    pub oneline: bool,
}

impl Serialize for StoryReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct StoryJson<'s> {
            session: &'s str,
            /// The folder to which paths are relative; null if no recorded data names one.
            root: Option<&'s str>,
            /// The number of earlier lines, which are left out.
            earlier: usize,
            turns: Vec<TurnJson<'s>>,
            findings: FindingsJson<'s>,
        }
        #[derive(Serialize)]
        struct TurnJson<'s> {
            /// The prompt that begins the turn; null for the turn before the first prompt.
            prompt: Option<&'s StoryItem>,
            items: Vec<StoryRow<'s>>,
        }
        let turns = self.story.turns.iter().map(|turn| {
            let items =
                self.story.rows_of(turn).into_iter().skip(usize::from(turn.prompt.is_some()));
            TurnJson { prompt: turn.prompt.as_ref(), items: items.collect() }
        });
        let story = StoryJson {
            session: &self.story.session,
            root: self.story.root.as_ref().map(|root| root.as_str()),
            earlier: self.earlier,
            turns: turns.collect(),
            findings: FindingsJson::of(&self.story.findings),
        };
        story.serialize(serializer)
    }
}

#[derive(Serialize)]
struct FindingsJson<'s> {
    /// The title of the last pull request, or else the beginning of the first prompt that is long
    /// enough and is not a slash command.
    title: Option<&'s str>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    prompts: usize,
    /// The number of all items.
    items: usize,
    /// The number of items that are shown without `--all`.
    told: usize,
    compactions: usize,
    commits: &'s [DeliveredCommit],
    /// The files with an edit that no recorded commit contains.
    uncommitted: &'s [UncommittedFile],
    /// The checks whose last result is a failure.
    failing: Vec<CheckJson<'s>>,
    /// The checks whose last result is a pass.
    passing: Vec<CheckJson<'s>>,
}

#[derive(Serialize)]
struct CheckJson<'s> {
    id: &'s str,
    name: &'s str,
    at: Timestamp,
    exit_code: Option<i64>,
}

impl<'s> FindingsJson<'s> {
    fn of(findings: &'s StoryFindings) -> Self {
        let check = |check: &'s LastCheckResult| CheckJson {
            id: &check.id,
            name: &check.text,
            at: check.at,
            exit_code: check.exit_code,
        };
        Self {
            title: findings.title.as_deref(),
            from: findings.span.map(|(from, _)| from),
            to: findings.span.map(|(_, to)| to),
            prompts: findings.prompts,
            items: findings.items,
            told: findings.loud,
            compactions: findings.compactions,
            commits: &findings.commits,
            uncommitted: &findings.uncommitted,
            failing: findings.failing.iter().map(check).collect(),
            passing: findings.passing.iter().map(check).collect(),
        }
    }
}

impl Report for StoryReport {
    const SCHEMA: Option<&'static str> = Some("forge.story/1");

    fn human(&self, screen: &mut Screen) {
        let findings = &self.story.findings;
        if findings.items == 0 {
            let session = &self.story.session;
            let text = format!("Nothing has happened in the session '{session}' yet.");
            return screen.plain(&text);
        }
        let rows = self.story.rows();
        let shown = rows.iter().filter(|row| matches!(row, StoryRow::Item(_))).count();
        let says_how = shown == 0 && !rows.is_empty() && !self.oneline;
        if !self.oneline {
            print_header(&self.story, shown, screen);
            if self.earlier > 0 {
                screen.dim(&format!("… {}", count_text(self.earlier as u64, "earlier line")));
            }
        }
        let mut lines = StoryLines::default();
        for row in rows {
            if self.oneline {
                print_item_with_date(&row, screen);
            } else {
                lines.print(&row, screen);
            }
            if let StoryRow::Item(item) = row {
                let patches = item.edit_ids().filter_map(|id| self.patches.get(id));
                patches.for_each(|patch| print_patch(patch, screen));
            }
        }
        if says_how {
            screen.dim(&format!("'{} story --all' shows each item.", screen.forge()));
        }
        if !self.oneline {
            print_findings(findings, screen);
        }
    }
}

/// Returns the items of a story as lines, each with its date and a line break at its end.
pub fn story_lines(story: &Story, out: &OutputSink) -> Vec<String> {
    let line = |row: StoryRow<'_>| {
        let mut screen = out.line_screen();
        print_item_with_date(&row, &mut screen);
        screen.into_text()
    };
    story.rows().into_iter().map(line).filter(|line| !line.is_empty()).collect()
}

/// Writes an item on a line with its date. Writes nothing for folded items.
fn print_item_with_date(row: &StoryRow<'_>, screen: &mut Screen) {
    if let StoryRow::Item(item) = row {
        let time = screen.local_time(item.at);
        let time = time.get(..16).unwrap_or(&time);
        let (sign, tone) = sign(item);
        let detail = match (item.reason(), item.question()) {
            (Some(reason), _) => format!("  {reason}"),
            (None, Some(question)) => format!("  (to: {question})"),
            (None, None) => String::new(),
        };
        screen.short_line(&[
            (Tone::Dim, &format!("{time} ")),
            (tone, &format!("{} ", sign.trim())),
            (item.text_tone(), &item.text),
            (Tone::Dim, &detail),
        ]);
    }
}

/// Writes the lines of a patch below its edit, without the names of the files.
fn print_patch(patch: &str, screen: &mut Screen) {
    let indent = " ".repeat(TEXT_COLUMN);
    for (kind, line) in patch_lines(patch) {
        let tone = match kind {
            PatchLineKind::Header => continue,
            PatchLineKind::Hunk => Tone::Id,
            PatchLineKind::Added => Tone::Added,
            PatchLineKind::Removed => Tone::Removed,
            PatchLineKind::Context => Tone::Plain,
        };
        screen.short_line(&[(Tone::Plain, &indent), (tone, line)]);
    }
}

/// Writes the title, the length and the counts of a session, of whose items `shown` are shown.
fn print_header(story: &Story, shown: usize, screen: &mut Screen) {
    let findings = &story.findings;
    if let Some(title) = findings.title.as_ref().filter(|title| **title != story.session) {
        screen.short_line(&[(Tone::Heading, title)]);
    }
    let mut figures = Vec::new();
    for (count, one) in [
        (findings.prompts, "prompt"),
        (findings.commits.len(), "commit"),
        (findings.compactions, "compaction"),
    ] {
        if count > 0 {
            figures.push(count_text(count as u64, one));
        }
    }
    let items = count_text(findings.items as u64, "item");
    let shown = if shown == findings.items { items } else { format!("{shown} of {items} shown") };
    let figures = match figures.as_slice() {
        [] => format!(": {shown}"),
        figures => format!(": {}; {shown}", figures.join(", ")),
    };
    let length = findings.span.map(|(from, to)| to.micros_since(from)).filter(|it| *it > 0);
    let length = length.map(|micros| format!(", {}", describe_distance(micros)));
    screen.short_line(&[
        (Tone::Id, &story.session),
        (Tone::Plain, &length.unwrap_or_default()),
        (Tone::Plain, &figures),
    ]);
}

/// Writes which checks fail, or that none does, and which files are edited but not committed.
fn print_findings(findings: &StoryFindings, screen: &mut Screen) {
    if findings.failing.is_empty() && findings.passing.is_empty() && findings.uncommitted.is_empty()
    {
        return;
    }
    screen.gap();
    let last_day = findings.span.map(|(_, to)| screen.day(to));
    for check in &findings.failing {
        let (day, clock) = (screen.day(check.at), screen.clock(check.at));
        let at = if last_day.as_ref() == Some(&day) { clock } else { format!("{clock} on {day}") };
        screen.short_line(&[
            (Tone::Bad, "✗ failing  "),
            (Tone::Plain, &check.text),
            (Tone::Dim, &format!("  at {at}")),
        ]);
    }
    if findings.failing.is_empty() && !findings.passing.is_empty() {
        // A later run without a known result does not change what is known of a check.
        screen.good(&format!("✓ no check fails, {} passed", findings.passing.len()));
    }
    if !findings.uncommitted.is_empty() {
        let named = findings.uncommitted.iter().take(FILES_NAMED).map(|file| file.path.as_str());
        let more = findings.uncommitted.len().saturating_sub(FILES_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        screen.short_line(&[
            (Tone::Warning, "! not committed  "),
            (Tone::Plain, &named.collect::<Vec<_>>().join(", ")),
            (Tone::Plain, &more),
        ]);
    }
}

/// Writes the rows of a story as lines, and remembers the day, time and branch of the line before.
#[derive(Debug, Default)]
pub struct StoryLines {
    day: String,
    clock: String,
    branch: BranchWalk,
    last: Option<Timestamp>,
}

impl StoryLines {
    /// Writes a row. A separator precedes it if its day is another one than that of the row before,
    /// or if it follows a long pause.
    pub fn print(&mut self, row: &StoryRow<'_>, screen: &mut Screen) {
        match row {
            StoryRow::Item(item) => self.print_item(item, screen),
            StoryRow::Folded { at, folded } => {
                self.separate(*at, screen);
                let counts = folded_words(folded);
                let sign = padded(FOLDED_SIGN);
                screen.short_line(&[(Tone::Dim, &format!("      {sign} {counts}"))]);
            }
        }
    }

    fn print_item(&mut self, item: &StoryItem, screen: &mut Screen) {
        self.separate(item.at, screen);
        let clock = screen.clock(item.at);
        let time = if clock == self.clock { "     " } else { clock.as_str() };
        let (sign, tone) = sign(item);
        let on_branch = self.branch.change(item);
        let on_branch = on_branch.map(|branch| format!(" (on {branch})")).unwrap_or_default();
        let (detail, question) = (item.reason().unwrap_or_default(), item.question());
        let gap = if detail.is_empty() { "" } else { "  " };
        screen.short_line(&[
            (Tone::Dim, &format!("{time} ")),
            (tone, &format!("{sign} ")),
            (item.text_tone(), &item.text),
            (Tone::Dim, &on_branch),
            (Tone::Dim, gap),
            (Tone::Dim, detail),
        ]);
        if let Some(question) = question {
            let indent = " ".repeat(TEXT_COLUMN);
            screen.short_line(&[(Tone::Dim, &format!("{indent}to: {question}"))]);
        }
        self.clock = clock;
    }

    /// Writes a separator before a row at this time, if one is needed.
    fn separate(&mut self, at: Timestamp, screen: &mut Screen) {
        let day = screen.day(at);
        let pause = self.last.and_then(|last| long_pause(last, at));
        self.last = Some(at);
        if day == self.day && pause.is_none() {
            return;
        }
        let long = pause.map(|pause| format!("after {}", describe_distance(pause)));
        let named = if day == self.day { None } else { Some(day.clone()) };
        let words: Vec<String> = [named, long].into_iter().flatten().collect();
        let start = format!("── {} ", words.join(", "));
        let width = screen.width().unwrap_or(RULE_COLUMNS).min(RULE_COLUMNS);
        let rest = width.saturating_sub(start.chars().count());
        screen.short_line(&[(Tone::Dim, &format!("{start}{}", "─".repeat(rest)))]);
        self.day = day;
        self.clock.clear();
    }
}

/// Returns the sign of an item, padded to its column, with its tone.
fn sign(item: &StoryItem) -> (String, Tone) {
    let (sign, tone) = item.sign();
    (padded(sign), tone)
}

/// Returns a sign in the middle of its column.
fn padded(sign: &str) -> String {
    format!("{sign:^3} ")
}
