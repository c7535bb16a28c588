//! The report as Markdown, for a pull request or a post-mortem.

use crate::model::{CompactionPart, HypothesisRow, LinePart, LostKnowledge, ReportModel};
use crate::page_text::PageText;
use crate::words::counted;
use forge_store::model::claim::{HypothesisStatus, VerificationStatus};
use forge_store::story::StoryKind;
use std::fmt::Write;

/// The maximum length of the text of a line, in characters.
const LINE_CHARS: usize = 240;
/// The maximum number of lines of the story; the last ones are written.
const MAX_LINES: usize = 400;
/// The maximum number of things lost in a compaction that are named.
const LOST_NAMED: usize = 12;
/// The bars that show a confidence, from 0 to 1.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes the report as Markdown. With `brief`, the story is left out.
#[must_use]
pub fn write_markdown(model: &ReportModel, brief: bool) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = Writer { model, out: &mut out }.write(brief);
    out
}

struct Writer<'m, 'o> {
    model: &'m ReportModel,
    out: &'o mut String,
}

impl Writer<'_, '_> {
    fn write(&mut self, brief: bool) -> std::fmt::Result {
        let model = self.model;
        writeln!(self.out, "## {}\n", escaped(&model.title, LINE_CHARS))?;
        writeln!(self.out, "_{}_\n", self.figures())?;
        for (word, prompt) in [("Asked", &model.first_prompt), ("Asked last", &model.last_prompt)] {
            if let Some(prompt) = prompt {
                writeln!(self.out, "**{word}:** {}\n", escaped(prompt, LINE_CHARS))?;
            }
        }
        self.outcome()?;
        self.hypotheses_of("Confirmed", HypothesisStatus::Confirmed)?;
        self.hypotheses_of("Rejected, and why", HypothesisStatus::Rejected)?;
        self.hypotheses_of("Under test", HypothesisStatus::UnderTest)?;
        self.hypotheses_of("Active", HypothesisStatus::Active)?;
        self.given_up()?;
        self.questions()?;
        self.confidence()?;
        self.lost()?;
        if !brief {
            self.story()?;
        }
        self.checks()?;
        self.files()
    }

    /// Returns one line of figures.
    fn figures(&self) -> String {
        let model = self.model;
        let mut parts = vec![format!("session {}", escaped(&model.session, 60))];
        if let Some((from, to)) = model.span {
            parts.push(format!("{} {}", model.zone.span(from, to), model.zone.name()));
        }
        if let Some(at) = model.as_of {
            parts.push(format!("as of {}", model.zone.day_and_clock(at)));
        }
        let prompts = model.prompts().count();
        if prompts > 0 {
            parts.push(counted(prompts, "prompt", "prompts"));
        }
        let runs = model.runs().count();
        if runs > 0 {
            let passed = model.runs().filter(|run| run.is_pass()).count();
            let words = if runs == 1 { "check run passed" } else { "check runs passed" };
            parts.push(format!("{passed}/{runs} {words}"));
        }
        if !model.files.is_empty() {
            let lines = model.changed_lines();
            let lines = lines.map(|(added, removed)| format!(" +{added} −{removed}"));
            let files = counted(model.files.len(), "file", "files");
            parts.push(format!("{files}{}", lines.unwrap_or_default()));
        }
        for (count, one, many) in [
            (model.outcome.commits.len(), "commit", "commits"),
            (model.compactions.len(), "compaction", "compactions"),
            (model.agents.len(), "sub-agent", "sub-agents"),
        ] {
            if count > 0 {
                parts.push(counted(count, one, many));
            }
        }
        parts.join(" · ")
    }

    fn outcome(&mut self) -> std::fmt::Result {
        let model = self.model;
        let outcome = &model.outcome;
        let mut lines = Vec::new();
        for check in &outcome.failing {
            let error = check.error.as_ref();
            let error = error.map(|error| format!(": {}", escaped(error, LINE_CHARS)));
            let name = code(&check.name);
            let at = model.zone.day_and_clock(check.at);
            lines
                .push(format!("✗ {name} failed when last run ({at}){}", error.unwrap_or_default()));
        }
        if let Some((name, at)) = &outcome.last_pass {
            let at = model.zone.day_and_clock(*at);
            let words = match outcome.failing.is_empty() {
                true => "No check fails; the last that passed",
                false => "The last that passed",
            };
            lines.push(format!("✓ {words}: {} ({at})", code(name)));
        }
        if let Some(last) = outcome.commits.last() {
            let count = counted(outcome.commits.len(), "commit", "commits");
            lines.push(format!("◆ {count}, the last: {}", escaped(&last.subject, LINE_CHARS)));
        }
        if !outcome.uncommitted.is_empty() {
            let files: Vec<String> = outcome.uncommitted.iter().map(code).collect();
            lines.push(format!("± Not committed: {}", files.join(", ")));
        } else if !outcome.commits.is_empty() {
            lines.push("✓ No edited file is left to commit".to_owned());
        }
        if let Some(question) = &outcome.last_question {
            let question = escaped(question, LINE_CHARS);
            lines.push(format!("? The agent waits for an answer: {question}"));
        }
        if model.hypotheses.is_empty()
            && let Some(word) = &outcome.last_word
        {
            lines.push(format!("The agent's last words: {}", escaped(word, 600)));
        }
        self.list(&lines)
    }

    fn list(&mut self, lines: &[String]) -> std::fmt::Result {
        for line in lines {
            writeln!(self.out, "- {line}")?;
        }
        if lines.is_empty() { Ok(()) } else { writeln!(self.out) }
    }

    fn hypotheses_of(&mut self, title: &str, status: HypothesisStatus) -> std::fmt::Result {
        let hypotheses =
            self.model.hypotheses.iter().filter(|hypothesis| hypothesis.status == Some(status));
        let line = |hypothesis: &HypothesisRow| {
            let sure = hypothesis.confidence.map(|sure| format!(" ({sure:.2})"));
            let reason = hypothesis.reason.as_ref();
            let reason = reason.map(|reason| format!(" – {}", escaped(reason, LINE_CHARS)));
            format!(
                "**{}**{} {}{}",
                escaped(&hypothesis.id, 40),
                sure.unwrap_or_default(),
                escaped(&hypothesis.text, 400),
                reason.unwrap_or_default()
            )
        };
        self.titled(title, hypotheses.map(line))
    }

    fn titled(&mut self, title: &str, lines: impl Iterator<Item = String>) -> std::fmt::Result {
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "**{title}**\n")?;
        self.list(&lines)
    }

    fn given_up(&mut self) -> std::fmt::Result {
        let line = |branch: &crate::model::GivenUpBranch| {
            let results: Vec<String> =
                branch.results.iter().map(|text| escaped(text, LINE_CHARS)).collect();
            format!("{}: {}", code(&branch.name), results.join("; "))
        };
        self.titled("Branches given up", self.model.given_up.iter().map(line))
    }

    fn questions(&mut self) -> std::fmt::Result {
        let open = self.model.gaps.iter().filter(|gap| gap.is_open);
        let line = |gap: &crate::model::GapRow| {
            let elsewhere = gap.answered_elsewhere.as_ref().map(|(branch, answer)| {
                format!(" – answered on {} only: {}", code(branch), escaped(answer, LINE_CHARS))
            });
            let (id, text) = (escaped(&gap.id, 40), escaped(&gap.text, LINE_CHARS));
            format!("**{id}** {text} ({}){}", gap.criticality, elsewhere.unwrap_or_default())
        };
        self.titled("Still open", open.map(line))
    }

    fn confidence(&mut self) -> std::fmt::Result {
        let all = self.model.hypotheses.iter().map(|one| (one, one.confidences()));
        let all: Vec<_> = all.filter(|(_, points)| !points.is_empty()).collect();
        if all.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "| Hypothesis | Confidence over time | Now |\n|---|---|---|")?;
        for (hypothesis, points) in all {
            let bars: String = points.iter().map(|(_, sure)| bar(*sure)).collect();
            let path: Vec<String> = points.iter().map(|(_, sure)| format!("{sure:.2}")).collect();
            let (word, _) = crate::words::status_words(hypothesis.status);
            let id = escaped(&hypothesis.id, 40).replace('|', "\\|");
            writeln!(self.out, "| {id} | `{bars}` {} | {word} |", path.join(" → "))?;
        }
        writeln!(self.out)
    }

    fn lost(&mut self) -> std::fmt::Result {
        let mut lines = Vec::new();
        for CompactionPart { note, .. } in &self.model.compactions {
            let Some(lost) = note.lost.as_ref().filter(|lost| !lost.is_empty()) else { continue };
            let at = self.model.zone.day_and_clock(note.at);
            let label = |one: &LostKnowledge<PageText>| {
                let id = one.id.as_ref().map(|id| format!(" {}", code(id))).unwrap_or_default();
                format!("{}{id} {}", one.kind, escaped(&one.text, 120)).trim_end().to_owned()
            };
            let labels: Vec<String> = lost.iter().take(LOST_NAMED).map(label).collect();
            let more = match lost.len().saturating_sub(LOST_NAMED) {
                0 => String::new(),
                more => format!("; {more} more"),
            };
            lines.push(format!("{at}: {}{more}", labels.join("; ")));
        }
        self.titled("What compaction lost", lines.into_iter())
    }

    fn story(&mut self) -> std::fmt::Result {
        let turns = self.model.turns.iter();
        let lines = turns.flat_map(|turn| turn.prompt.iter().chain(turn.lines()));
        let lines: Vec<&LinePart> = lines.collect();
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<details><summary>The story</summary>\n")?;
        let earlier = lines.len().saturating_sub(MAX_LINES);
        if earlier > 0 {
            writeln!(self.out, "- {} before these", counted(earlier, "line", "lines"))?;
        }
        let mut day = String::new();
        for line in lines.into_iter().skip(earlier) {
            let this_day = self.model.zone.day(line.at);
            let clock = self.model.zone.clock(line.at);
            let time = if this_day == day { clock } else { format!("{this_day} {clock}") };
            day = this_day;
            let text = escaped(&line.text, LINE_CHARS);
            let detail = line.detail.as_ref().map(|detail| escaped(detail, LINE_CHARS));
            let (indent, words) = match (line.kind, detail) {
                (StoryKind::Prompt, Some(detail)) => {
                    ("", format!("**You:** {text} (to: {detail})"))
                }
                (StoryKind::Prompt, None) => ("", format!("**You:** {text}")),
                (_, Some(detail)) => ("  ", format!("{text} – {detail}")),
                (_, None) => ("  ", text),
            };
            writeln!(self.out, "{indent}- {time} {words}")?;
        }
        writeln!(self.out, "\n</details>\n")
    }

    fn checks(&mut self) -> std::fmt::Result {
        let checks = &self.model.checks;
        if checks.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<details><summary>Checks</summary>\n")?;
        writeln!(self.out, "| Check | Runs | Failed | Last |\n|---|--:|--:|---|")?;
        for check in checks {
            let failed = check.runs.iter().filter(|run| run.is_failure()).count();
            let last = check.runs.last().map_or("", |run| match run.status {
                VerificationStatus::Passed => "✓ passed",
                _ if run.is_failure() => "✗ failed",
                _ => "unknown",
            });
            let name = code(&check.name).replace('|', "\\|");
            writeln!(self.out, "| {name} | {} | {failed} | {last} |", check.runs.len())?;
        }
        writeln!(self.out, "\n</details>\n")
    }

    fn files(&mut self) -> std::fmt::Result {
        let files = &self.model.files;
        if files.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<details><summary>Files changed</summary>\n")?;
        writeln!(self.out, "| File | + | − |\n|---|--:|--:|")?;
        for file in files {
            let path = code(&file.path).replace('|', "\\|");
            match file.lines() {
                Some((added, removed)) => writeln!(self.out, "| {path} | {added} | {removed} |")?,
                None => writeln!(self.out, "| {path} | | |")?,
            }
        }
        writeln!(self.out, "\n</details>")
    }
}

fn bar(sure: f64) -> char {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a confidence is from 0 to 1"
    )]
    let place = (sure.clamp(0.0, 1.0) * 7.999) as usize;
    BARS.get(place).copied().unwrap_or('█')
}

/// Returns a text on one line, in which nothing is markup. Text between single back quotes stays
/// code.
fn escaped(text: &PageText, chars: usize) -> String {
    let line = text.short(chars);
    let parts: Vec<&str> = line.as_str().split('`').collect();
    let with_code =
        parts.len() >= 3 && !parts.len().is_multiple_of(2) && !line.as_str().contains("``");
    if !with_code {
        return plain(line.as_str());
    }
    let part = |(place, part): (usize, &&str)| match place % 2 {
        1 => format!("`{part}`"),
        _ => plain(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Escapes the markup of Markdown. So that sites such as GitHub do not make a link of it, one
/// character of an address is written as an HTML entity, and a zero-width space follows each `@`:
/// they look for mentions in the decoded text.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut letters = text.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let is_inside = |next: Option<&char>| {
            before.is_alphanumeric() && next.is_some_and(|next| next.is_alphanumeric())
        };
        match letter {
            '_' if is_inside(letters.peek()) => out.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(letter);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("@&#8203;"),
            _ => out.push(letter),
        }
        before = letter;
    }
    out.replace("://", ":&#47;/")
}

fn code(text: &PageText) -> String {
    let line = text.short(160);
    let inside = line.as_str().replace('`', "'");
    if inside.is_empty() { String::new() } else { format!("`{inside}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_text::TextCleaner;
    use forge_store::redact::Redactor;

    fn shown(text: &str) -> String {
        escaped(&TextCleaner::new(&Redactor::new()).clean(text), 200)
    }

    #[test]
    fn markdown_and_html_in_a_text_are_escaped() {
        for (text, expected) in [
            ("a <b> & *c*", "a &lt;b&gt; &amp; \\*c\\*"),
            ("run `a_b` now_then _x_", "run `a_b` now_then \\_x\\_"),
            ("[x](javascript:1)", "\\[x\\](javascript:1)"),
            ("[x](@y) #12", "\\[x\\](@&#8203;y) \\#12"),
            ("see https://example.org/x", "see https:&#47;/example.org/x"),
            ("one\n## two", "one \\#\\# two"),
            ("one ` only", "one \\` only"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    /// Regression: only the `@` was written as an entity. GitHub decodes entities before it looks for
    /// mentions, so that a pasted report notified the person.
    #[test]
    fn a_name_after_an_at_sign_does_not_mention_anyone() {
        assert_eq!(shown("@somebody, (@x)"), "@&#8203;somebody, (@&#8203;x)");
    }

    #[test]
    fn a_bar_is_as_high_as_the_confidence() {
        let bars: String = [0.0, 0.05, 0.5, 0.75, 0.98, 1.0].map(bar).iter().collect();
        assert_eq!(bars, "▁▁▄▆██");
    }
}
