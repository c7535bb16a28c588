//! `forge statusline` and `forge prompt-segment`: a session in a few words, for the status line of
//! Claude Code and for the prompt of a shell.

use crate::context::Context;
use crate::error::CommandError;
use crate::prompt_cache::PromptCache;
use crate::verb::{RawReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::model::text::{NewlineMode, sanitise};
use forge_store::store::BriefLine;
use forge_store::story::Story;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

/// The maximum number of bytes that are read of Claude Code's document.
const MAX_INPUT_BYTES: u64 = 1 << 20;

/// Print a session in one line for Claude Code's status line.
#[derive(Debug, clap::Args)]
pub struct StatuslineArgs {}

/// Print a session in a few words for the prompt of a shell.
#[derive(Debug, clap::Args)]
pub struct PromptSegmentArgs {}

impl Verb for StatuslineArgs {
    const NAME: &'static str = "statusline";
    type Opened = ();
    type Report = RawReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let given = GivenStatus::read();
        if let Some(folder) = given.folder {
            context.cwd = folder;
        }
        Ok(line_or_nothing(|| {
            if context.store_directory().is_err() {
                return Ok(String::new());
            }
            let store = workspace::open_store(context, StoreAccess::Read)?;
            let of_agent = given.session.as_deref().map(|id| store.agent_session(id));
            let session = of_agent.transpose()?.flatten();
            let session = match session {
                Some(session) => Some(session),
                None => workspace::session_to_read(context, &store)?,
            };
            let Some(session) = session else { return Ok(String::new()) };
            let brief = Story::brief(&session.state(&session.head()?)?, &forge_agents::resolve)?;
            let gist = SessionGist {
                hypothesis: best_hypothesis(&brief.active, &brief.confirmed),
                gaps: brief.gaps.len(),
                failing: brief.failing.len(),
                uncommitted: brief.uncommitted.len(),
            };
            Ok(gist.line())
        }))
    }
}

impl Verb for PromptSegmentArgs {
    const NAME: &'static str = "prompt-segment";
    type Opened = ();
    type Report = RawReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        Ok(line_or_nothing(|| {
            let Ok(path) = context.store_directory() else { return Ok(String::new()) };
            let cache = PromptCache::of(&path, context);
            if let Some(line) = cache.as_ref().and_then(PromptCache::line) {
                return Ok(line);
            }
            let store = workspace::open_store(context, StoreAccess::Read)?;
            let Some(session) = workspace::session_to_read(context, &store)? else {
                return Ok(String::new());
            };
            let state = session.state(&session.head()?)?;
            let hypotheses = state.hypothesis_lines()?;
            // Uncommitted files are found by reading all facts. The prompt must not wait for that.
            let gist = SessionGist {
                hypothesis: best_hypothesis(&hypotheses.active, &hypotheses.confirmed),
                gaps: state.open_gaps()?.len(),
                failing: state.checks()?.failing.len(),
                uncommitted: 0,
            };
            let line = gist.line();
            if let Some(cache) = cache {
                cache.keep(&line, &store);
            }
            Ok(line)
        }))
    }
}

/// What Claude Code says about the session that the line is for.
#[derive(Debug, Default)]
struct GivenStatus {
    session: Option<String>,
    folder: Option<PathBuf>,
}

impl GivenStatus {
    fn read() -> Self {
        let mut text = String::new();
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            // Without Claude Code's document, the line is about the session of other commands here.
            let _ = stdin.lock().take(MAX_INPUT_BYTES).read_to_string(&mut text);
        }
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let given: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let text = |pointer: &str| given.pointer(pointer)?.as_str().filter(|it| !it.is_empty());
        let folders = ["/workspace/current_dir", "/cwd", "/workspace/project_dir"];
        Self {
            session: text("/session_id").map(str::to_owned),
            folder: folders.into_iter().find_map(text).map(PathBuf::from),
        }
    }
}

/// A session in a few words.
#[derive(Debug, Default)]
struct SessionGist {
    /// The hypothesis that matters most.
    hypothesis: Option<String>,
    gaps: usize,
    failing: usize,
    uncommitted: usize,
}

/// Returns the id of the open hypothesis with the highest confidence, and the confidence. If no
/// hypothesis is open, returns the id of the confirmed one that was added last.
fn best_hypothesis(active: &[BriefLine], confirmed: &[BriefLine]) -> Option<String> {
    Some(match (active.first(), confirmed.last()) {
        (Some(BriefLine { id, confidence: Some(share), .. }), _) => {
            format!("{id} {share:.2}")
        }
        (Some(line), _) => line.id.clone(),
        (None, confirmed) => format!("{} confirmed", confirmed?.id),
    })
}

impl SessionGist {
    /// Returns `H4 0.88 · 2 gaps · 1 failing · 4 uncommitted`, without what is zero.
    fn line(&self) -> String {
        let mut parts: Vec<String> = self.hypothesis.iter().cloned().collect();
        let gaps = if self.gaps == 1 { "gap" } else { "gaps" };
        for (count, what) in
            [(self.gaps, gaps), (self.failing, "failing"), (self.uncommitted, "uncommitted")]
        {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join(" · ")
    }
}

/// Returns the line. Returns nothing after an error, which would be shown again and again.
fn line_or_nothing(line: impl FnOnce() -> Result<String, CommandError>) -> RawReport {
    let line = line().unwrap_or_else(|error| {
        tracing::info!(error = error.message(), "the line is empty");
        String::new()
    });
    let shown = sanitise(&line, NewlineMode::Escape);
    RawReport(if shown.is_empty() { Vec::new() } else { format!("{shown}\n").into_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_leaves_out_counts_of_zero() {
        let hypothesis = Some("H4 0.88".to_owned());
        let gist = SessionGist { hypothesis, gaps: 2, failing: 1, uncommitted: 4 };
        assert_eq!(gist.line(), "H4 0.88 · 2 gaps · 1 failing · 4 uncommitted");
        assert_eq!(SessionGist { gaps: 1, ..SessionGist::default() }.line(), "1 gap");
        assert_eq!(SessionGist::default().line(), "");
    }

    #[test]
    fn any_input_of_the_status_line_is_accepted() {
        let given = GivenStatus::parse(
            r#"{"session_id":"s1","cwd":"/a","workspace":{"current_dir":"/b"}}"#,
        );
        assert_eq!((given.session.as_deref(), given.folder), (Some("s1"), Some("/b".into())));
        for text in ["", "null", "[]", "{\"session_id\":7}", "\u{0}"] {
            let given = GivenStatus::parse(text);
            assert!(given.session.is_none() && given.folder.is_none(), "{text}");
        }
    }
}
