//! `forge watch`.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::story::story_lines;
use crate::verb::{PrintedReport, Verb, VerbResult};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::store::Session;
use forge_store::story::Story;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

/// The time between two looks at the store.
const INTERVAL: Duration = Duration::from_millis(400);
/// How many earlier lines are shown at first.
const FIRST_LINES: usize = 5;

#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Number of new lines after which to end; without it, until it is interrupted
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Ring the terminal's bell with new lines
    #[arg(long)]
    pub notify: bool,
}

impl Verb for WatchArgs {
    const NAME: &'static str = "watch";
    type Opened = ();
    type Report = PrintedReport;

    fn check(&self, context: &Context) -> Result<(), CommandError> {
        if context.global.json {
            return Err(CommandError::invalid("'forge watch' prints lines, and has no JSON")
                .hinted("'forge story --json' gives the story so far"));
        }
        Ok(())
    }

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let store = workspace::open_store(context, StoreAccess::Follow)?;
        let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
        let mut watch = SessionWatch { session, seen: SeenLines::default(), position: None };
        let mut printed = 0;
        let mut is_away = false;
        // Nothing is ever sent: receiving with a time limit is only a wait.
        let (_sender, waiting) = mpsc::channel::<()>();
        loop {
            let is_first = watch.position.is_none();
            match watch.new_lines(context) {
                Ok(lines) => {
                    is_away = false;
                    let mut text: String = lines.concat();
                    if self.notify && !is_first && !lines.is_empty() {
                        text.push('\u{7}');
                    }
                    context.out.raw(text.as_bytes())?;
                    printed += if is_first { 0 } else { lines.len() };
                    if self.limit.is_some_and(|limit| printed >= limit) {
                        return Ok(PrintedReport);
                    }
                }
                // The server of the database may come back, or another server may take over.
                Err(error)
                    if !is_first
                        && store.database().is_some()
                        && error.kind() == CommandErrorKind::Unavailable =>
                {
                    if !is_away {
                        let message = error.message();
                        let next = "trying again until the database answers";
                        context.out.warn(&format!("{message}: {next}"));
                    }
                    is_away = true;
                }
                Err(error) => return Err(error),
            }
            let _ = waiting.recv_timeout(INTERVAL);
        }
    }
}

/// A session, and the lines of its story that were printed.
struct SessionWatch {
    session: Session,
    seen: SeenLines,
    /// The position of the store at the last look: without a new one, the story is not read again.
    /// `None` before the first look.
    position: Option<u64>,
}

impl SessionWatch {
    /// Returns the lines since the last look; at the first look only the last [`FIRST_LINES`].
    fn new_lines(&mut self, context: &Context) -> Result<Vec<String>, CommandError> {
        let now = self.session.store().position()?;
        if self.position == Some(now) {
            return Ok(Vec::new());
        }
        let state = self.session.state(&self.session.head()?)?;
        let mut story = Story::read(&state)?;
        story.read_whole_texts(&self.session, &forge_agents::resolve)?;
        let mut lines = self.seen.new_lines(&story_lines(&story, &context.out));
        if self.position.replace(now).is_none() {
            lines.drain(..lines.len().saturating_sub(FIRST_LINES));
        }
        Ok(lines)
    }
}

/// The lines that were printed, with the number of times for each.
#[derive(Debug, Default)]
struct SeenLines(BTreeMap<String, usize>);

impl SeenLines {
    /// Returns the lines that were not printed yet. A line that has changed, such as the line of a
    /// group of edits that grows, is printed again.
    fn new_lines(&mut self, lines: &[String]) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut new = Vec::new();
        for line in lines {
            let count = counts.entry(line).or_default();
            *count += 1;
            let known = self.0.entry(line.clone()).or_default();
            if *count > *known {
                *known = *count;
                new.push(line.clone());
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_once_and_again_when_it_changes() {
        let mut seen = SeenLines::default();
        let lines =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(seen.new_lines(&lines(&["a", "b"])), ["a", "b"]);
        assert_eq!(seen.new_lines(&lines(&["a", "b", "b"])), ["b"]);
        assert_eq!(seen.new_lines(&lines(&["a", "2 b"])), ["2 b"]);
        assert_eq!(seen.new_lines(&lines(&["a", "b", "b", "2 b"])), [""; 0]);
    }
}
