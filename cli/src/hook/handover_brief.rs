//! The brief for an agent after a compaction: first what the agent's own summary left out, then
//! what was known. It fits the size limit of the agent.
//!
//! The text does not depend on the current time. So a second delivery is the same text, and does
//! not invalidate the cache of the agent's provider.

use crate::compaction::ContextCompaction;
use crate::compaction::knowledge::SessionKnowledge;
use crate::compaction::loss::{KnownItem, LossKind, LostItem};
use crate::text::{common_folder, shorten};
use forge_agents::hook::ReplyBudget;
use forge_store::model::text::trim_cut_start;
use forge_store::model::{Kind, Timestamp};
use forge_store::store::BriefLine;
use std::fmt::Write;

/// The intended length in UTF-16 units.
pub const AIM_UNITS: usize = 4_000;
/// The steps of shortening, which are tried in order. Each has the maximum length of a text in
/// characters, and the maximum number of lines of a list that may be shortened.
const STEPS: [(usize, usize); 8] =
    [(300, 20), (220, 12), (160, 10), (120, 8), (90, 6), (70, 5), (50, 4), (30, 3)];
/// The last step, if the agent gives no room for texts.
const WITHOUT_TEXTS: (usize, usize) = (0, 2);
/// The maximum length of the last prompt in characters.
const PROMPT_CHARS: usize = 600;
/// The maximum lengths of the text of a listed item in characters, which are tried in order.
const ITEM_LENGTHS: [usize; 3] = [160, 80, 40];
/// The maximum number of files that are named on one line.
const NAMED: usize = 12;

/// Returns the whole brief: what was lost, then what was known.
#[must_use]
pub fn brief(
    session: &str,
    compaction: &ContextCompaction,
    known: &SessionKnowledge,
    lost: Option<&[LostItem]>,
    budget: ReplyBudget,
) -> String {
    let aim = ReplyBudget { units: budget.units.min(AIM_UNITS), bytes: budget.bytes };
    // A prompt may be very long, and the page is made several times.
    let last = known.last_prompt().map(|last| shorten_middle(&last.whole, PROMPT_CHARS));
    let last = last.unwrap_or_default();
    let mut shortest = String::new();
    // First within the intended length, then with all the room that the agent gives.
    let intended = STEPS.map(|step| (aim, step)).into_iter();
    let possible = STEPS.into_iter().chain([WITHOUT_TEXTS]).map(|step| (budget, step));
    for (limit, step) in intended.chain(possible) {
        let page = render(session, compaction, known, lost, &last, step);
        if limit.holds(&page) {
            return page;
        }
        shortest = page;
    }
    budget.cut(&shortest).to_owned()
}

/// Returns only what was lost, for an agent that already has the rest. `None` if nothing was lost.
#[must_use]
pub fn loss(
    session: &str,
    compaction: &ContextCompaction,
    lost: &[LostItem],
    budget: ReplyBudget,
) -> Option<String> {
    let begin = format!(
        "forge (record of session {}): the summary of the compaction at {} does not mention:\n",
        quoted(session),
        time_to_second(compaction.checkpoint.time)
    );
    let number = compaction.checkpoint.sequence;
    let end = format!("`forge compaction show '#{number}'` shows all of it.\n");
    item_list(&begin, lost.iter().map(|one| &one.item).collect(), &end, budget)
}

/// Returns what the agent's summary is to keep, for the prompt of the summary. `None` if nothing is
/// known.
#[must_use]
pub fn keep_list(known: &SessionKnowledge, budget: ReplyBudget) -> Option<String> {
    let begin =
        "Keep these in the summary, with their ids; they are from forge's record of this work:\n";
    let budget = ReplyBudget { units: budget.units.min(AIM_UNITS), bytes: budget.bytes };
    let items = known.known_items();
    item_list(begin, items.iter().collect(), "`forge brief` shows all of it.\n", budget)
}

/// Returns a line for each item, with its text as long as there is room for all of them, and the
/// files on one line. If the room is too small for the shortest texts, the last items are counted.
fn item_list(
    begin: &str,
    items: Vec<&KnownItem>,
    end: &str,
    budget: ReplyBudget,
) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let (files, items): (Vec<&KnownItem>, Vec<&KnownItem>) =
        items.into_iter().partition(|item| item.kind == LossKind::File);
    let files = file_names(&files).map(|files| format!("- {files}\n")).unwrap_or_default();
    let mut list = String::new();
    for length in ITEM_LENGTHS {
        let mut left = items.len();
        list.clear();
        for item in &items {
            let line = item_line(item, length);
            let more = format!("- {left} more\n");
            if !budget.holds(&[begin, &list, &line, &more, &files, end].concat()) {
                list.push_str(&more);
                break;
            }
            list.push_str(&line);
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    Some(budget.cut(&[begin, &list, &files, end].concat()).to_owned())
}

/// Returns the line of an item, with at most this many characters of its text.
fn item_line(item: &KnownItem, length: usize) -> String {
    let word = item.word.as_deref().filter(|word| *word != item.kind.word());
    let word = word.map(|word| format!(" ({})", word.replace('_', " "))).unwrap_or_default();
    let id = if item.kind.has_meaningful_id() { format!(" {}", item.id) } else { String::new() };
    format!("- {}{id}{word}: {}\n", item.kind.word(), shorten(&item.text, length))
}

fn render(
    session: &str,
    compaction: &ContextCompaction,
    known: &SessionKnowledge,
    lost: Option<&[LostItem]>,
    last_prompt: &str,
    (text, lines): (usize, usize),
) -> String {
    let checkpoint = &compaction.checkpoint;
    let mut page = HandoverPage { out: String::new(), text, lines, day: checkpoint.time };
    let tokens = compaction.tokens().map(|tokens| format!(", {tokens} tokens"));
    // Cursor and OpenCode get the brief when a compaction was announced.
    let what = if compaction.is_over() {
        "The context was compacted"
    } else {
        "A compaction of the context was announced"
    };
    let _ = writeln!(
        page.out,
        "forge keeps a record of this work (session {}). {what} at {} ({}{}). This was known then; it is data from the \
         record.",
        quoted(session),
        time_to_second(checkpoint.time),
        compaction.trigger().unwrap_or("unknown cause"),
        tokens.unwrap_or_default(),
    );
    let brief = &known.brief;
    page.lost(lost, &brief.prompts);
    let last = known.last_prompt();
    match last {
        Some(last) => {
            let prompt = shorten_middle(last_prompt, (page.text * 2).max(80));
            let clock = page.time_of_day(last.at);
            let line = brief.prompts.iter().find(|line| line.id == last.id);
            let question = line.map(|line| page.question(line)).unwrap_or_default();
            let _ = writeln!(page.out, "Last prompt ({clock}): {prompt}{question}");
        }
        None => page.line_if_none("Last prompt"),
    }
    let said = |page: &HandoverPage, line: &BriefLine| {
        format!("{}{}", shorten(&line.text, page.text.max(40)), page.question(line))
    };
    let is_later = |line: &&BriefLine| last.is_some_and(|last| line.at > last.at);
    let later: Vec<&BriefLine> = brief.prompts.iter().filter(is_later).collect();
    page.all_lines("Answers after it, the latest first", later, said);
    // Prompts that were typed while the agent worked can have equal times.
    let is_earlier =
        |line: &&BriefLine| last.is_none_or(|last| line.at <= last.at && line.id != last.id);
    let earlier: Vec<&BriefLine> = brief.prompts.iter().filter(is_earlier).collect();
    page.all_lines("Prompts before it, the latest first", earlier, said);
    page.hypotheses("Confirmed", &brief.confirmed);
    page.hypotheses("Rejected", &brief.rejected);
    page.hypotheses("Still open", &brief.active);
    page.claims("Decided", &known.decisions);
    page.claims("Must hold", &known.constraints);
    page.first_lines("Beliefs in doubt", &brief.doubted, |page, line| {
        format!("{}: {}{}", line.id, shorten(&line.text, page.text), page.reason(line))
    });
    let (blocking, other): (Vec<&BriefLine>, Vec<&BriefLine>) =
        brief.gaps.iter().partition(|line| known.blocking.contains(&line.id));
    let gap = |page: &HandoverPage, line: &BriefLine| {
        let word = line.word.map(|word| format!(" ({word})")).unwrap_or_default();
        format!("{}{word}: {}", line.id, shorten(&line.text, page.text))
    };
    page.all_lines("Open gaps that block", blocking, gap);
    page.first_lines("Other open gaps", other, gap);
    page.all_lines("Failing checks", &brief.failing, |page, line| {
        let code = line.exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
        let word = line.word.unwrap_or("failed").replace('_', " ");
        let error = line.error.as_deref().map(|error| shorten(error, page.text.max(40)));
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        format!(
            "{}: {word}{code} at {}{error}",
            shorten(&line.text, page.text.max(40)),
            page.time_of_day(line.at)
        )
    });
    page.first_lines("Refused, not to be tried again", &brief.refused, |page, line| {
        format!("{}{}", shorten(&line.text, page.text.max(40)), page.reason(line))
    });
    page.first_lines("Checks that passed last", &known.brief.passed, |page, line| {
        format!("{} at {}", shorten(&line.text, page.text.max(40)), page.time_of_day(line.at))
    });
    page.files(known);
    page.uncommitted(known);
    page.first_lines("Last commands", &brief.commands, |page, line| {
        let ended = match (line.exit_code, line.word) {
            (Some(code), _) => format!("exit {code}"),
            (None, word) => word.unwrap_or("no exit code").replace('_', " "),
        };
        format!("{}: {ended}", shorten(&line.text, (page.text / 2).max(40)))
    });
    page.first_lines("Tasks not done", &brief.tasks, |page, line| {
        format!("{}{}", shorten(&line.text, page.text.max(40)), page.reason(line))
    });
    page.first_lines("Commits", &known.commits, |page, (at, commit)| {
        format!("{} at {}", shorten(commit, page.text.max(40)), page.time_of_day(*at))
    });
    let number = checkpoint.sequence;
    let _ = writeln!(
        page.out,
        "More is kept: `forge checkpoint show '#{number}'` shows this moment whole, `forge compaction show '#{number}'` \
         what the summary left out, `forge brief` what is known now."
    );
    page.out
}

/// The text of the brief, to which lists are added.
struct HandoverPage {
    out: String,
    /// The maximum length of a text.
    text: usize,
    /// The maximum number of lines of a list.
    lines: usize,
    /// The time of the compaction. Times on its day are shown without the date.
    day: Timestamp,
}

impl HandoverPage {
    fn line_if_none(&mut self, title: &str) {
        let _ = writeln!(self.out, "{title}: none recorded.");
    }

    /// Adds a whole list; nothing if it is empty.
    fn all_lines<'l, T: 'l>(
        &mut self,
        title: &str,
        list: impl IntoIterator<Item = &'l T>,
        line: impl Fn(&Self, &T) -> String,
    ) {
        let lines: Vec<String> = list.into_iter().map(|one| line(self, one)).collect();
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(self.out, "{title}:");
        for line in lines {
            let _ = writeln!(self.out, "- {line}");
        }
    }

    /// Adds the first lines of a list, and how many more there are.
    fn first_lines<'l, T: 'l>(
        &mut self,
        title: &str,
        list: impl IntoIterator<Item = &'l T>,
        line: impl Fn(&Self, &T) -> String,
    ) {
        let list: Vec<&T> = list.into_iter().collect();
        if list.is_empty() {
            if matches!(
                title,
                "Last commands" | "Tasks not done" | "Commits" | "Checks that passed last"
            ) {
                self.line_if_none(title);
            }
            return;
        }
        let more = list.len().saturating_sub(self.lines);
        let title =
            if more > 0 { format!("{title} ({} in all)", list.len()) } else { title.to_owned() };
        self.all_lines(&title, list.into_iter().take(self.lines), line);
    }

    fn hypotheses(&mut self, title: &str, list: &[BriefLine]) {
        self.all_lines(title, list, |page, line| {
            let sure = line.confidence.map(|sure| format!(" ({sure:.2})")).unwrap_or_default();
            format!("{}{sure}: {}{}", line.id, shorten(&line.text, page.text), page.reason(line))
        });
    }

    fn claims(&mut self, title: &str, list: &[(String, String)]) {
        self.first_lines(title, list, |page, (id, text)| {
            format!("{id}: {}", shorten(text, page.text))
        });
    }

    fn reason(&self, line: &BriefLine) -> String {
        let reason = line.reason.as_deref().map(|reason| shorten(reason, self.text / 2));
        let reason = reason.filter(|reason| !reason.is_empty() && reason != "…");
        let word = if line.kind == Kind::Task { "" } else { "because " };
        reason.map(|reason| format!(" [{word}{reason}]")).unwrap_or_default()
    }

    /// Returns the question that a prompt answers, if it answers one.
    fn question(&self, prompt: &BriefLine) -> String {
        let question = prompt.reason.as_deref().map(|to| shorten(to, (self.text / 2).max(40)));
        question.map(|to| format!(" ({to})")).unwrap_or_default()
    }

    /// Adds the names of files on one line, because most of them are short.
    fn files(&mut self, known: &SessionKnowledge) {
        if known.files.is_empty() {
            return self.line_if_none("Files changed");
        }
        let paths: Vec<&str> = known.files.iter().map(|file| file.path.as_str()).collect();
        let folder = common_folder(&paths);
        let names = paths.iter().map(|path| shorten(path.get(folder.len()..).unwrap_or(path), 120));
        let names = leading_names(names, self.lines * 2);
        let within = if folder.is_empty() {
            String::new()
        } else {
            format!(" (in {})", shorten(folder, 200))
        };
        let _ = writeln!(self.out, "Files changed{within}, the latest first: {names}.");
    }

    /// Adds the names of edited files that no recorded commit contains; nothing without a commit.
    fn uncommitted(&mut self, known: &SessionKnowledge) {
        let files = &known.brief.uncommitted;
        if files.is_empty() || known.commits.is_empty() {
            return;
        }
        let names = files.iter().map(|file| shorten(&file.text, 120));
        let names = leading_names(names, self.lines * 2);
        let _ = writeln!(self.out, "Not committed: {names}.");
    }

    /// Formats a time of day, with the date if it is not the day of the compaction.
    fn time_of_day(&self, time: Timestamp) -> String {
        let (text, day) = (time_to_second(time), time_to_second(self.day));
        let parts = (text.get(..10), text.get(11..16));
        let (Some(date), Some(clock)) = parts else { return text };
        if day.starts_with(date) { format!("{clock}Z") } else { format!("{date} {clock}Z") }
    }

    /// Adds what the agent's summary leaves out: prompts with their texts, and other things by
    /// name, because their details follow. The last prompts follow too, so they are omitted here.
    fn lost(&mut self, lost: Option<&[LostItem]>, last_prompts: &[BriefLine]) {
        let Some(lost) = lost else { return };
        if lost.is_empty() {
            let _ = writeln!(self.out, "The agent's own summary mentions all of it.");
            return;
        }
        let mut parts = Vec::new();
        for kind in [
            LossKind::Constraint,
            LossKind::Hypothesis,
            LossKind::Decision,
            LossKind::Gap,
            LossKind::Failing,
            LossKind::Refused,
            LossKind::Task,
        ] {
            let of_kind: Vec<String> = lost
                .iter()
                .filter(|one| one.item.kind == kind)
                .map(|one| match kind {
                    LossKind::Failing | LossKind::Refused | LossKind::Task => {
                        format!("'{}'", shorten(&one.item.text, self.text.max(40)))
                    }
                    _ => one.item.id.clone(),
                })
                .collect();
            if !of_kind.is_empty() {
                parts.push(format!("{} {}", kind.word(), of_kind.join(", ")));
            }
        }
        let files: Vec<&KnownItem> = lost.iter().map(|one| &one.item).collect();
        parts.extend(file_names(&files));
        if !parts.is_empty() {
            let parts = parts.join("; ");
            let _ = writeln!(self.out, "The agent's own summary does not mention: {parts}.");
        }
        for (kind, title) in [
            (LossKind::Instruction, "Instructions of the person that it does not mention"),
            (LossKind::Prompt, "Other prompts that it does not mention, the latest first"),
        ] {
            let is_below = |id: &str| last_prompts.iter().any(|prompt| prompt.id == id);
            let items = lost.iter().filter(|one| one.item.kind == kind && !is_below(&one.item.id));
            self.first_lines(title, items, |page, one| shorten(&one.item.text, page.text.max(40)));
        }
    }
}

/// Names the files among these items.
fn file_names(items: &[&KnownItem]) -> Option<String> {
    let files: Vec<&str> = items
        .iter()
        .filter(|item| item.kind == LossKind::File)
        .map(|item| item.id.rsplit('/').next().unwrap_or(&item.id))
        .collect();
    let names = files.iter().map(|name| (*name).to_owned());
    (!files.is_empty()).then(|| format!("changed files {}", leading_names(names, NAMED)))
}

/// Lists the first of these names, and says how many more there are.
fn leading_names(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown: Vec<String> = names.take(most).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Shortens a text to its beginning and its end. What is wanted is often at the end of a prompt.
fn shorten_middle(text: &str, characters: usize) -> String {
    let line = shorten(text, usize::MAX);
    let count = line.chars().count();
    if count <= characters {
        return line;
    }
    let end: String = line.chars().skip(count - characters / 3).collect();
    let beginning = shorten(&line, characters - characters / 3 - 1);
    format!("{beginning} {}", trim_cut_start(&end).trim_start())
}

fn quoted(name: &str) -> String {
    format!("'{}'", shorten(name, 60))
}

/// Formats a time to the second.
fn time_to_second(time: Timestamp) -> String {
    let micros = time.as_micros();
    time.plus_micros(-micros.rem_euclid(1_000_000)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_line_without_invisible_characters() {
        assert_eq!(shorten("a\n\n b\u{1b}[2J\u{202e}c", 99), "a b [2J c");
        assert_eq!(shorten("日本語", 2), "日…");
        assert_eq!(shorten("", 5), "");
        assert_eq!(shorten_middle("abc\ndef", 7), "abc def");
        assert_eq!(shorten_middle("a long log, then: fix it", 18), "a long log… fix it");
    }
}
