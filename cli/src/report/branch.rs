//! Reports about branches.

use super::entity_write::MadeCheckpoint;
use crate::error::CommandError;
use crate::output::{Report, Screen, TextTable, Tone, cells};
use forge_store::error::Error;
use forge_store::model::{BranchStatus, Timestamp};
use forge_store::store::{BranchSummary, Session};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct BranchListReport {
    pub session: String,
    /// The branches, oldest first.
    pub branches: Vec<BranchLine>,
    /// How many branches were omitted because they are neither current nor open.
    pub left_out: usize,
}

#[derive(Debug, Serialize)]
pub struct BranchLine {
    pub name: String,
    /// Whether it is the current branch.
    pub current: bool,
    pub status: BranchStatus,
    /// The number of its last revision; null before the first.
    pub revision: Option<u64>,
    /// Where it began; null for `main`.
    pub base: Option<BranchStart>,
    pub created_at: Timestamp,
    /// The hypothesis that it tests.
    pub hypothesis: Option<String>,
    pub approach: Option<String>,
    /// What would count as success.
    pub success_criteria: Vec<String>,
    pub results: Vec<String>,
}

/// Where a branch was forked.
#[derive(Debug, Serialize)]
pub struct BranchStart {
    /// The name of the branch.
    pub branch: String,
    /// The number of the revision; null before the first.
    pub revision: Option<u64>,
}

impl From<BranchSummary> for BranchLine {
    fn from(branch: BranchSummary) -> Self {
        Self {
            name: branch.name,
            current: branch.current,
            status: branch.status,
            revision: branch.revision,
            base: branch.base.map(|(branch, revision)| BranchStart { branch, revision }),
            created_at: branch.created_at,
            hypothesis: branch.metadata.hypothesis,
            approach: branch.metadata.approach,
            success_criteria: branch.metadata.success_criteria,
            results: branch.metadata.results,
        }
    }
}

impl BranchLine {
    fn status(&self) -> (Tone, &'static str) {
        match self.status {
            BranchStatus::Active => (Tone::Plain, "active"),
            BranchStatus::Merged => (Tone::Good, "merged"),
            BranchStatus::Abandoned => (Tone::Bad, "abandoned"),
            BranchStatus::Archived => (Tone::Dim, "archived"),
        }
    }

    fn head(&self) -> String {
        self.revision.map_or_else(|| "-".to_owned(), |revision| format!("#{revision}"))
    }

    fn origin(&self) -> String {
        match &self.base {
            None => "-".to_owned(),
            Some(BranchStart { branch, revision: None }) => branch.clone(),
            Some(BranchStart { branch, revision: Some(revision) }) => {
                format!("{branch} #{revision}")
            }
        }
    }
}

impl Report for BranchListReport {
    fn human(&self, screen: &mut Screen) {
        let mut table = TextTable::new(&["", "Branch", "Head", "From", "Status", "Approach"]);
        for branch in &self.branches {
            let (tone, status) = branch.status();
            table.row(cells![
                Good: if branch.current { "*" } else { "" }, Id: &branch.name, branch.head(),
                branch.origin(), (tone): status, branch.approach.as_deref().unwrap_or_default(),
            ]);
        }
        screen.table(&table);
        if self.left_out > 0 {
            screen.dim(&format!("{} more with '--all'", self.left_out));
        }
        screen.dim(&format!("session {}", self.session));
    }
}

#[derive(Debug, Serialize)]
pub struct BranchReport {
    #[serde(skip)]
    done: Option<&'static str>,
    pub session: String,
    /// The name of the branch.
    pub branch: String,
    #[serde(flatten)]
    pub line: BranchLine,
}

impl BranchReport {
    /// Creates the report of the branch with this name.
    pub fn load(session: &Session, name: &str) -> Result<Self, CommandError> {
        let branches = session.branches(&session.head()?)?;
        let Some(found) = branches.into_iter().find(|branch| branch.name == name) else {
            return Err(with_branch_names(Error::not_found("branch", name), session));
        };
        let session = session.summary()?.info.name;
        Ok(Self { done: None, session, branch: name.to_owned(), line: found.into() })
    }

    /// Returns the report of a command that was to change the branch; `done` is a past participle,
    /// or `Nothing to change:`.
    pub const fn after(mut self, done: &'static str) -> Self {
        self.done = Some(done);
        self
    }
}

/// Adds the names of up to 8 existing branches to an error about a missing one.
pub fn with_branch_names(error: Error, session: &Session) -> CommandError {
    let is_unknown = matches!(error, Error::NotFound { what: "branch", .. });
    let names = || -> Result<Vec<String>, Error> {
        let branches = session.branches(&session.head()?)?;
        Ok(branches.into_iter().take(8).map(|branch| branch.name).collect())
    };
    let shown = CommandError::from(error);
    match names() {
        Ok(names) if is_unknown => shown.hinted(format!("the branches are {}", names.join(", "))),
        _ => shown,
    }
}

impl Report for BranchReport {
    fn human(&self, screen: &mut Screen) {
        let line = &self.line;
        if let Some(done) = self.done {
            screen.put(Tone::Plain, &format!("{done} branch "));
            screen.put(Tone::Id, &line.name);
            screen.dim(&format!(" (session {})", self.session));
            if line.current && line.status == BranchStatus::Abandoned {
                let switch = format!("'{} branch switch NAME'", screen.forge());
                screen.plain(&format!("  it is still checked out: {switch}"));
            } else if !line.current && line.status == BranchStatus::Active {
                let from = line.origin();
                screen.plain(&format!("  from {from}; switch to it with"));
                screen.plain(&format!("  {} branch switch {}", screen.forge(), line.name));
            }
            return;
        }
        screen.put(Tone::Id, &line.name);
        screen.dim(&format!(" (session {})", self.session));
        let (tone, status) = line.status();
        screen.put(Tone::Plain, "  status: ");
        screen.put(tone, status);
        screen.plain(if line.current { ", checked out" } else { "" });
        let made = screen.time(line.created_at);
        screen.plain(&format!("  head: {}", line.head()));
        screen.plain(&format!("  from: {}", line.origin()));
        screen.plain(&format!("  made: {made}"));
        let one = |label: &str, text: &Option<String>| {
            text.as_ref().map(|t| (label.to_owned(), t.clone()))
        };
        let mut more = Vec::new();
        more.extend(one("tests", &line.hypothesis));
        more.extend(one("approach", &line.approach));
        more.extend(line.success_criteria.iter().map(|text| ("success".to_owned(), text.clone())));
        more.extend(line.results.iter().map(|text| ("result".to_owned(), text.clone())));
        for (label, text) in more {
            screen.plain(&format!("  {label}: {text}"));
        }
    }
}

/// The result of switching to a branch.
#[derive(Debug, Serialize)]
pub struct BranchSwitchReport {
    /// The branch that is current now.
    #[serde(flatten)]
    pub branch: BranchReport,
    /// The branch that was current before; null if it was the same one.
    pub left: Option<String>,
    pub checkpoint: Option<MadeCheckpoint>,
}

impl Report for BranchSwitchReport {
    fn human(&self, screen: &mut Screen) {
        let BranchReport { line, session, .. } = &self.branch;
        match &self.left {
            Some(left) => screen.put(Tone::Plain, &format!("Switched from {left} to ")),
            None => screen.put(Tone::Plain, "Already on "),
        }
        screen.put(Tone::Id, &line.name);
        screen.dim(&format!(" (session {session}, {})", line.head()));
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.print(screen);
        }
    }
}
