//! Reports of pushes, pulls and syncs.

use super::purges::{PurgesReport, print_rewritten};
use crate::error::CommandError;
use crate::output::{OutputSink, Report, Screen, Tone};
use crate::remote::name::remote_argument;
use crate::text::count_text;
use forge_store::store::remote::{PullPreview, PullReport, PushPreview, PushReport, RewriteReason};
use forge_store::store::{JoinedWork, SplitBranch, SplitReason};
use serde::Serialize;

/// What was exchanged with a remote, or would be.
#[derive(Debug, Serialize)]
pub struct TransferReport<S> {
    /// The name of the remote.
    pub remote: String,
    /// Whether this is a preview, which sends and writes nothing; absent for `sync`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Which sessions a pull is about.
    #[serde(skip)]
    pub scope: Option<PullScope>,
    pub sessions: Vec<S>,
    /// What was done because of purges; absent if nothing was done.
    #[serde(skip_serializing_if = "PurgesReport::is_empty")]
    pub purges: PurgesReport,
    /// The error that ended the transfer, if there was one.
    #[serde(skip)]
    pub failure: Option<CommandError>,
}

/// A session of a [`TransferReport`].
pub trait TransferredSession: Serialize {
    /// The verb of the transfer with its preposition, such as `push to`.
    const TO: &'static str;

    fn name(&self) -> &str;

    fn is_unchanged(&self) -> bool;

    fn print(&self, remote: &str, screen: &mut Screen);
}

impl<S: TransferredSession> Report for TransferReport<S> {
    fn take_failure(&mut self) -> Option<CommandError> {
        self.failure.take()
    }

    fn human(&self, screen: &mut Screen) {
        let remote = &self.remote;
        if let (Some(scope), [], None) = (self.scope, &*self.sessions, &self.failure) {
            scope.print_none(remote, screen);
        }
        let (changed, unchanged): (Vec<_>, Vec<_>) =
            self.sessions.iter().partition(|one| !one.is_unchanged());
        changed.iter().for_each(|one| one.print(remote, screen));
        // A single session is named. Of several, only the number is printed.
        match unchanged.as_slice() {
            [] => {}
            [one] => {
                screen.put(Tone::Plain, &format!("Nothing to {} {remote}: ", S::TO));
                screen.line(Tone::Id, one.name());
            }
            several => {
                let count = several.len();
                screen.plain(&format!("Nothing to {} {remote}: {count} sessions", S::TO));
            }
        }
        self.purges.print(remote, screen);
    }

    fn exit_code(&self) -> u8 {
        self.purges.exit_code()
    }
}

/// A session that was pushed, or would be.
#[derive(Debug, Serialize)]
pub struct PushedSession {
    pub session: String,
    /// The version of the session on the remote now; null in a preview.
    pub version: Option<u64>,
    /// How many operations were pushed.
    pub operations: u64,
    /// The size of the pack in bytes.
    pub bytes: u64,
    /// How many operations of others were pulled before the push.
    pub pulled: u64,
    /// Why the session was rewritten, or would be; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<RewriteReason>,
    /// The secrets that would stop the push, in words; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<String>,
    #[serde(flatten)]
    pub joined: JoinedWork,
}

/// Prints what changed in the work that was not pushed yet.
fn print_joined(joined: &JoinedWork, screen: &mut Screen) {
    const SHOWN: usize = 3;
    if !joined.renumbered.is_empty() {
        let all = joined.renumbered.iter().take(SHOWN);
        let mut text = all.map(|(before, now)| format!("#{before} is #{now}")).collect::<Vec<_>>();
        let more = joined.renumbered.len().saturating_sub(SHOWN);
        if more > 0 {
            text.push(format!("and {more} more"));
        }
        let text = text.join(", ");
        screen.plain(&format!("  your changes follow what others pushed: {text} now"));
    }
    for (before, now) in &joined.renamed_branches {
        let text = format!("  your branch {before} is {now} now: others pushed one of that name");
        screen.plain(&text);
    }
    if let Some(branch) = &joined.checked_out_elsewhere {
        screen.plain(&format!("  another machine has the branch {branch} checked out"));
        screen.dim(&format!("  forge branch switch {branch}"));
    }
    if let Some(count) = joined.removed_checkpoints {
        let checkpoints = count_text(count, "checkpoint");
        screen.plain(&format!("  others pruned or undid {checkpoints} that this store had"));
        screen.dim("  forge log --operations");
    }
    for split in &joined.split {
        let (text, next) = describe_split(split);
        let Some(next) = next else {
            screen.plain(&format!("  {text}"));
            continue;
        };
        screen.warning(&format!("  {text}"));
        screen.dim(&format!("  {next}"));
    }
}

/// Returns why revisions made here are on a branch of their own, and the command that comes next;
/// no command if they are merged.
fn describe_split(split: &SplitBranch) -> (String, Option<String>) {
    let SplitBranch { branch, own, reason, merged } = split;
    let why = match reason {
        SplitReason::Changed(claim) => format!("both sides changed the {claim}"),
        SplitReason::Undone => format!("others undid the creation of the branch {branch}"),
        SplitReason::Dangling => {
            "one side refers to a claim that the other side removed".to_owned()
        }
    };
    if let Some(number) = merged {
        let text =
            format!("{why}: the branch {own} with your changes is merged into {branch}, #{number}");
        return (text, None);
    }
    let next = match reason {
        SplitReason::Undone => format!("forge branch switch {own}"),
        _ => format!("forge branch switch {branch} && forge branch merge {own}"),
    };
    (format!("{why}: your changes are on the branch {own}"), Some(next))
}

/// Returns, as sentences, which revisions made here are on branches of their own and not merged.
pub fn unmerged_splits(session: &str, joined: &JoinedWork) -> Vec<String> {
    let sentences = joined.split.iter().filter_map(|split| {
        let (text, next) = describe_split(split);
        Some(format!("in the session {session}, {text} (next: '{}')", next?))
    });
    sentences.collect()
}

impl From<PushReport> for PushedSession {
    fn from(done: PushReport) -> Self {
        let PushReport { session, version, operations, bytes, rewritten, pulled, joined } = done;
        let (version, secrets) = (Some(version), None);
        Self { session, version, operations, bytes, pulled, rewritten, secrets, joined }
    }
}

impl PushedSession {
    pub fn preview(session: String, preview: PushPreview) -> Self {
        let PushPreview { operations, bytes, rewrite: rewritten, secrets } = preview;
        let (version, pulled, joined) = (None, 0, JoinedWork::default());
        Self { session, version, operations, bytes, pulled, rewritten, secrets, joined }
    }
}

impl TransferredSession for PushedSession {
    const TO: &'static str = "push to";

    fn name(&self) -> &str {
        &self.session
    }

    fn is_unchanged(&self) -> bool {
        self.bytes == 0 && self.pulled == 0 && self.joined.is_empty()
    }

    fn print(&self, remote: &str, screen: &mut Screen) {
        let operations = count_text(self.operations, "operation");
        let (done, version) = match self.version {
            Some(version) => ("Pushed ", format!(", version {version}")),
            None => ("Would push ", String::new()),
        };
        // The first push of an empty session has no operations.
        if self.operations > 0 || (self.bytes > 0 && self.rewritten.is_none()) {
            screen.put(Tone::Plain, done);
            screen.put(Tone::Id, &self.session);
            screen.plain(&format!(" to {remote}: {operations}{version}"));
        }
        match (self.rewritten, self.version) {
            (Some(reason), Some(_)) => {
                let end = if self.operations > 0 { "" } else { &version };
                print_rewritten(screen, "Rewrote", (&self.session, remote), reason, end);
            }
            (Some(reason), None) => {
                print_rewritten(screen, "Would rewrite", (&self.session, remote), reason, "");
            }
            (None, _) => {}
        }
        if self.pulled > 0 {
            let pulled = count_text(self.pulled, "operation");
            screen.put(Tone::Plain, "Pulled ");
            screen.put(Tone::Id, &self.session);
            screen.plain(&format!(" from {remote} before: {pulled}"));
        }
        print_joined(&self.joined, screen);
        if let Some(secrets) = &self.secrets {
            screen.warning(&format!("  it contains {secrets}: the push would be refused"));
        }
    }
}

/// A session that was pulled, or would be.
#[derive(Debug, Serialize)]
pub struct PulledSession {
    /// The name of the session in this store.
    pub session: String,
    pub version: u64,
    /// How many operations were new here; in a preview, how many can be new at most.
    pub operations: u64,
    /// Whether the session was not in this store before.
    pub new: bool,
    /// The number of bytes that a pull would read; absent after a pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The secrets in it that this store redacts, in words; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    #[serde(flatten)]
    pub joined: JoinedWork,
}

impl PulledSession {
    pub fn new(done: PullReport, new: bool) -> Self {
        let PullReport { session, version, operations, secrets, joined } = done;
        Self { session, version, operations, new, bytes: None, secrets, joined }
    }

    pub fn preview(session: String, preview: &PullPreview, new: bool) -> Self {
        let PullPreview { version, operations, bytes } = *preview;
        let (secrets, joined) = (Vec::new(), JoinedWork::default());
        Self { session, version, operations, new, bytes: Some(bytes), secrets, joined }
    }
}

impl TransferredSession for PulledSession {
    const TO: &'static str = "pull from";

    fn name(&self) -> &str {
        &self.session
    }

    fn is_unchanged(&self) -> bool {
        self.operations == 0 && !self.new && self.joined.is_empty()
    }

    fn print(&self, remote: &str, screen: &mut Screen) {
        let (done, most) = match self.bytes {
            Some(_) => ("Would pull ", "at most "),
            None => ("Pulled ", ""),
        };
        let new = if self.new { "new here, " } else { "" };
        let operations = count_text(self.operations, "operation");
        screen.put(Tone::Plain, done);
        screen.put(Tone::Id, &self.session);
        let version = self.version;
        screen.plain(&format!(" from {remote}: {new}{most}{operations}, version {version}"));
        print_joined(&self.joined, screen);
    }
}

/// Warns of secrets in a pulled session that this store redacts.
pub fn warn_of_secrets(session: &str, secrets: &[String], out: &OutputSink) {
    for found in secrets {
        out.warn(&format!(
            "{session} holds {found}, which others pushed: 'forge purge --rules --dry-run' shows \
             where, 'forge purge --rules --yes' purges them here and on the remote"
        ));
    }
}

/// Warns of secrets in each of these pulled sessions.
pub fn warn_of_pulled_secrets(sessions: &[PulledSession], out: &OutputSink) {
    sessions.iter().for_each(|one| warn_of_secrets(&one.session, &one.secrets, out));
}

/// Which sessions a pull is about.
#[derive(Clone, Copy, Debug)]
pub enum PullScope {
    /// The named sessions; without names, the sessions that were pushed or pulled before.
    Shared,
    /// All sessions on the remote.
    All,
    /// The sessions that were written to or pushed since a given time.
    Since,
}

impl PullScope {
    /// Prints that there is no session of this scope.
    fn print_none(self, remote: &str, screen: &mut Screen) {
        let none = match self {
            Self::Shared => "No session here was pushed or pulled before.".to_owned(),
            Self::All => format!("No session to pull from {remote}."),
            Self::Since => format!("No session on {remote} was written to or pushed since then."),
        };
        screen.plain(&none);
        if matches!(self, Self::Shared) {
            let (there, from) = (remote_argument("=", remote), remote_argument(" --from ", remote));
            let text = format!(
                "'forge session list --remote{there}' shows what is there, 'forge pull \
                 SESSION{from}' pulls one, 'forge pull --all{from}' pulls all."
            );
            screen.dim(&text);
        }
    }
}

/// A session that was pulled and pushed until both sides had the same.
#[derive(Debug, Default, Serialize)]
pub struct SyncedSession {
    /// The name of the session in this store.
    pub session: String,
    /// The version of the session on the remote; 0 if it is not there.
    pub version: u64,
    /// How many operations were pulled.
    pub pulled: u64,
    /// How many operations were pushed.
    pub pushed: u64,
    /// Whether the session was not in this store before.
    pub new: bool,
    /// Why the session was rewritten; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<RewriteReason>,
    /// The secrets in what was pulled that this store redacts, in words; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Whether the session was pushed for the first time; it may be empty.
    #[serde(skip)]
    pub is_new_there: bool,
    /// What to do if the last round still pulled or pushed something; absent if both sides have the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    #[serde(flatten)]
    pub joined: JoinedWork,
}

impl TransferredSession for SyncedSession {
    const TO: &'static str = "exchange with";

    fn name(&self) -> &str {
        &self.session
    }

    fn is_unchanged(&self) -> bool {
        self.is_equal() && self.rewritten.is_none()
    }

    fn print(&self, remote: &str, screen: &mut Screen) {
        if let Some(reason) = self.rewritten {
            print_rewritten(screen, "Rewrote", (&self.session, remote), reason, "");
        }
        if self.is_equal() {
            return;
        }
        let (pulled, pushed) = (count_text(self.pulled, "operation"), self.pushed);
        screen.put(Tone::Id, &self.session);
        let new = if self.new { "new here, " } else { "" };
        let version = self.version;
        screen.plain(&format!(": {new}pulled {pulled}, pushed {pushed}, version {version}"));
        print_joined(&self.joined, screen);
        if let Some(unfinished) = &self.unfinished {
            screen.warning(&format!("  {unfinished}"));
        }
    }
}

impl SyncedSession {
    /// Notes that the last round still pulled or pushed something.
    pub fn set_unfinished(&mut self, remote: &str) {
        let with = remote_argument(" --with ", remote);
        self.unfinished = Some(format!(
            "it changes at the same time, and more may remain: run 'forge sync{with}' again"
        ));
    }

    /// Whether both sides had the same operations before.
    fn is_equal(&self) -> bool {
        self.pulled == 0
            && self.pushed == 0
            && !self.is_new_there
            && !self.new
            && self.joined.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Local;
    use forge_store::model::Timestamp;

    #[test]
    fn the_json_of_a_split_branch_has_the_claim_and_whether_the_branch_was_undone() {
        for (reason, fields) in [
            (SplitReason::Changed("note A".to_owned()), r#""claim":"note A","#),
            (SplitReason::Dangling, r#""claim":null,"#),
            (SplitReason::Undone, r#""claim":null,"undone":true,"#),
        ] {
            let (branch, own) = ("main".to_owned(), "main-2".to_owned());
            let split = vec![SplitBranch { branch, own, reason, merged: None }];
            let joined = JoinedWork { split, ..JoinedWork::default() };
            let split = format!(r#"{{"branch":"main","own":"main-2",{fields}"merged":null}}"#);
            let shown = serde_json::to_string(&joined).unwrap();
            assert_eq!(shown, format!(r#"{{"split":[{split}]}}"#));
        }
    }

    /// A sync that ended after its last round, with more to exchange, said nothing about it.
    #[test]
    fn an_unfinished_sync_says_what_to_do() {
        let session = "checkout".to_owned();
        let mut done = SyncedSession { session, version: 9, pulled: 8, ..SyncedSession::default() };
        let shown = |done: &SyncedSession, remote| {
            let mut screen = Screen::new(None, false, Local, Timestamp::from_micros(0));
            done.print(remote, &mut screen);
            screen.into_text()
        };
        let line = "checkout: pulled 8 operations, pushed 0, version 9\n";
        assert_eq!(shown(&done, "origin"), line);
        assert_eq!(serde_json::to_value(&done).unwrap().get("unfinished"), None);
        for (remote, command) in [("origin", "forge sync"), ("copy", "forge sync --with copy")] {
            done.set_unfinished(remote);
            let notice =
                format!("it changes at the same time, and more may remain: run '{command}' again");
            assert_eq!(shown(&done, remote), format!("{line}  {notice}\n"));
            assert_eq!(serde_json::to_value(&done).unwrap()["unfinished"], notice);
        }
    }
}
