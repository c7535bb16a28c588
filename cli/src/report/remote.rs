//! Reports of remotes.

use crate::error::CommandError;
use crate::output::{Report, Screen, TextTable, Tone, cells};
use crate::remote::address::shown_url;
use crate::remote::name::remote_argument;
use crate::report::purges::PurgesReport;
use crate::report::transfer::{PulledSession, TransferredSession};
use crate::text::count_text;
use forge_store::model::Timestamp;
use forge_store::shell::quoted;
use forge_store::store::remote::{
    KnownRemote, RemoteGrant, RemoteSession, RewriteReason, RotationReport,
};
use serde::Serialize;
use std::path::Path;

/// What is not on a remote, as far as the store knows.
#[derive(Debug, Default, Serialize)]
pub struct UnpushedLine {
    /// The name of the remote.
    pub remote: String,
    /// How many operations are not there, of sessions that were pushed or pulled before.
    pub operations: u64,
    /// How many sessions have such operations.
    pub sessions: u64,
    /// When the first of these operations was made.
    pub since: Option<Timestamp>,
    /// How many purges made here the remote does not know.
    pub purges: u64,
    /// How many sessions on the remote still have what was purged here.
    pub purged_sessions: u64,
    /// Whether the remote is opened with a grant.
    #[serde(skip)]
    pub is_granted: bool,
}

impl UnpushedLine {
    /// Returns whether the remote lacks nothing, as far as the store knows.
    pub const fn is_empty(&self) -> bool {
        self.operations == 0 && self.purges == 0 && self.purged_sessions == 0
    }

    /// Returns which purges have not reached the remote, in words; `None` if all have.
    pub fn describe_purges(&self) -> Option<String> {
        let remote = &self.remote;
        let purges = count_text(self.purges, "purge");
        let have = if self.purged_sessions == 1 { "has" } else { "have" };
        let sessions = count_text(self.purged_sessions, "session");
        match (self.purges, self.purged_sessions) {
            (0, 0) => None,
            (0, _) => Some(format!("{sessions} on {remote} still {have} what was purged here")),
            (_, 0) => Some(format!("{purges} not sent to {remote} yet")),
            _ => Some(format!(
                "{purges} not sent to {remote} yet: {sessions} there still {have} what was purged"
            )),
        }
    }

    /// Returns what to do about purges that have not reached the remote.
    pub fn purge_remedy(&self) -> String {
        const GRANTED: &str = "purge where the key of the remote is too: a grant sends no purges";
        let to = remote_argument(" --to ", &self.remote);
        match (self.is_granted, self.purged_sessions) {
            (false, _) => {
                format!("'forge push{to}' sends the purges, and removes there what was purged")
            }
            (true, 0) => GRANTED.to_owned(),
            (true, _) => format!("'forge push{to}' removes there what was purged; {GRANTED}"),
        }
    }

    /// Returns what is not pushed, in words; `None` if all of it is.
    pub fn describe(&self, since: Option<&str>) -> Option<String> {
        let operations = count_text(self.operations, "operation");
        let sessions = count_text(self.sessions, "session");
        let since = since.map(|since| format!(", the first {since}")).unwrap_or_default();
        let remote = &self.remote;
        (self.operations > 0)
            .then(|| format!("{operations} of {sessions} not pushed to {remote}{since}"))
    }

    /// Prints what is not pushed, and which purges have not reached the remote.
    pub fn print(&self, screen: &mut Screen) {
        let since = self.since.map(|since| screen.ago(since));
        if let Some(text) = self.describe(since.as_deref()) {
            screen.warning(&text);
        }
        if let Some(text) = self.describe_purges() {
            screen.warning(&text);
        }
    }
}

/// The last exchange that a hook began for an agent's session, if it failed.
#[derive(Debug, Serialize)]
pub struct FailedExchange {
    /// The agent's own id of the session.
    pub session: String,
    /// `pull` or `sync`.
    pub verb: String,
    pub time: Timestamp,
    /// The error, with what to do about it.
    pub error: String,
}

impl FailedExchange {
    /// Returns what failed, in words.
    pub fn describe(&self) -> String {
        let Self { session, verb, error, .. } = self;
        format!("a hook could not {verb} the agent's session {session}: {error}")
    }

    /// Returns what a person can do about it.
    pub fn remedy(&self) -> String {
        format!("'forge sync {}' tries it again", quoted(&self.session))
    }

    /// Prints what failed, and what a person can do about it.
    pub fn print(&self, screen: &mut Screen) {
        let ago = screen.ago(self.time);
        screen.warning(&format!("{ago}, {}", self.describe()));
        screen.dim(&format!("  {}", self.remedy()));
    }
}

/// A remote that a store knows.
#[derive(Debug, Serialize)]
pub struct RemoteLine {
    pub name: String,
    pub url: String,
    /// The permanent id of the remote.
    pub id: String,
    /// Whether the environment names it, and the keyring does not.
    pub environment: bool,
    /// How many sessions here were pushed to it or pulled from it.
    pub shared: u64,
    pub unpushed: UnpushedLine,
}

#[derive(Debug, Serialize)]
pub struct RemoteListReport {
    pub remotes: Vec<RemoteLine>,
}

impl Report for RemoteListReport {
    fn human(&self, screen: &mut Screen) {
        if self.remotes.is_empty() {
            screen.plain("This store has no remotes.");
            screen.dim(
                "'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds one.",
            );
            return;
        }
        let mut table = TextTable::new(&["Remote", "URL", "Sessions", "Unpushed"])
            .right(2)
            .right(3)
            .flexible(1);
        for remote in &self.remotes {
            table.row(cells![
                Id: &remote.name, &remote.url, remote.shared, remote.unpushed.operations,
            ]);
        }
        screen.table(&table);
    }
}

/// A remote, with the sessions that were pushed to it or pulled from it.
#[derive(Debug, Serialize)]
pub struct RemoteShowReport {
    #[serde(flatten)]
    pub line: RemoteLine,
    pub sessions: Vec<SharedSessionLine>,
}

/// A session that was pushed or pulled.
#[derive(Debug, Serialize)]
pub struct SharedSessionLine {
    pub session: String,
    /// Its place on the remote.
    pub handle: String,
    /// How many of its operations are not on the remote.
    pub unpushed: u64,
    /// When the first of them was made.
    pub since: Option<Timestamp>,
    /// Why it must be rewritten there; absent if it need not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<RewriteReason>,
}

impl Report for RemoteShowReport {
    fn human(&self, screen: &mut Screen) {
        let line = &self.line;
        screen.put(Tone::Id, &line.name);
        screen.plain(&format!(" at {} ({})", line.url, line.id));
        if line.environment {
            screen.plain("  named by FORGE_REMOTE, not by the keyring");
        }
        if let Some(text) = line.unpushed.describe_purges() {
            screen.warning(&format!("  {text}"));
        }
        if self.sessions.is_empty() {
            return screen.dim("  No session here was pushed to it or pulled from it.");
        }
        let mut table = TextTable::new(&["Session", "Unpushed", "Since"]).right(1).flexible(0);
        for one in &self.sessions {
            let since = one.since.map(|since| screen.ago(since));
            table.row(cells![Id: &one.session, one.unpushed, Dim: since.as_deref().unwrap_or("-")]);
        }
        screen.table(&table);
    }
}

/// A remote that was created or added, or whose key was replaced.
#[derive(Debug, Serialize)]
pub struct RemoteKeptReport {
    pub name: String,
    pub url: String,
    /// The permanent id of the remote.
    pub id: String,
    /// `created`, `joined` or `rekeyed`.
    pub done: &'static str,
}

impl RemoteKeptReport {
    pub fn new(remote: &KnownRemote, done: &'static str) -> Self {
        let id = remote.access.remote().to_string();
        Self { name: remote.name.clone(), url: shown_url(&remote.url), id, done }
    }
}

impl Report for RemoteKeptReport {
    const SCHEMA: Option<&'static str> = Some("forge.remote.kept/1");

    fn human(&self, screen: &mut Screen) {
        let done = match self.done {
            "created" => "Made",
            "rekeyed" => "Replaced the key of",
            _ => "Added",
        };
        screen.put(Tone::Plain, &format!("{done} the remote "));
        screen.put(Tone::Id, &self.name);
        screen.plain(&format!(" at {}", self.url));
        if self.done == "created" {
            screen.dim(
                "  Its key is in the keyring of this machine and nowhere else: 'forge remote key \
                export FILE' writes it for other machines",
            );
        }
    }
}

/// A remote that was forgotten.
#[derive(Debug, Serialize)]
pub struct RemoteRemoveReport {
    pub name: String,
    pub url: String,
}

impl Report for RemoteRemoveReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Forgot the remote ");
        screen.put(Tone::Id, &self.name);
        screen.plain(&format!("; what is at {} stays there", self.url));
    }
}

/// A remote or a URL that was checked and does what forge needs.
#[derive(Debug, Serialize)]
pub struct RemoteCheckReport {
    pub url: String,
    /// The name of the remote; null if a URL was checked.
    pub name: Option<String>,
}

impl Report for RemoteCheckReport {
    fn human(&self, screen: &mut Screen) {
        screen.good(&format!("{} does what remotes need.", self.url));
        if self.name.is_some() {
            screen.plain("  It is the remote that this store knows, and the key opens it.");
        }
    }
}

/// A key that was written to a file.
#[derive(Debug, Serialize)]
pub struct RemoteKeyExportReport {
    /// The permanent id of the remote.
    pub id: String,
    /// The path of the file; only for people.
    #[serde(skip)]
    pub file: String,
}

impl RemoteKeyExportReport {
    pub fn new(remote: &KnownRemote, file: &Path) -> Self {
        Self { id: remote.access.remote().to_string(), file: file.display().to_string() }
    }
}

impl Report for RemoteKeyExportReport {
    fn human(&self, screen: &mut Screen) {
        screen.plain(&format!("Wrote the key of the remote to {}", self.file));
        screen.dim(
            "  anyone with this key can read and write the whole remote: transfer the file \
            securely, then remove it",
        );
    }
}

/// A key that was replaced.
#[derive(Debug, Serialize)]
pub struct RemoteKeyRotateReport {
    /// The name of the remote.
    pub remote: String,
    /// Its permanent id.
    pub id: String,
    /// Whether this finished a rotation that had begun earlier.
    pub continued: bool,
    /// How many sessions were encrypted with the new key.
    pub sessions: u64,
    /// How many purge notices were encrypted with the new key.
    pub notices: u64,
    /// The handles of the sessions that opened with neither key. They were not changed.
    pub unopened: Vec<String>,
}

impl RemoteKeyRotateReport {
    pub fn new(remote: &KnownRemote, rotated: RotationReport) -> Self {
        let RotationReport { continued, sessions, notices, unopened } = rotated;
        let unopened = unopened.iter().map(ToString::to_string).collect();
        let (remote, id) = (remote.name.clone(), remote.access.remote().to_string());
        Self { remote, id, continued, sessions, notices, unopened }
    }
}

impl Report for RemoteKeyRotateReport {
    fn human(&self, screen: &mut Screen) {
        let done = if self.continued { "Finished the new key of" } else { "Made a new key of" };
        let sessions = count_text(self.sessions, "session");
        screen.plain(&format!("{done} {}: it encrypts {sessions} now", self.remote));
        for handle in &self.unopened {
            screen.plain(&format!("  {handle} opens with neither key and is as it was"));
        }
        let name = remote_argument(" ", &self.remote);
        screen.plain(&format!(
            "  'forge remote key export FILE{name}' writes it for the other machines, where \
                 'forge remote add URL{name} --key FILE' replaces the key"
        ));
        screen.dim("  what was pushed before can still be read with the previous key");
    }
}

#[derive(Debug, Serialize)]
pub struct RemoteGrantReport {
    /// The permanent id of the remote.
    pub remote: String,
    /// The id of the session.
    pub session: String,
    /// Its place on the remote.
    pub handle: String,
    /// The text for `FORGE_GRANT`.
    pub grant: String,
}

impl RemoteGrantReport {
    pub fn new(grant: &RemoteGrant) -> Self {
        Self {
            remote: grant.remote.to_string(),
            session: grant.session.to_string(),
            handle: grant.handle.to_string(),
            grant: grant.encode(),
        }
    }
}

impl Report for RemoteGrantReport {
    /// Prints only the grant, so that a shell can assign it.
    fn human(&self, screen: &mut Screen) {
        screen.plain(&self.grant);
    }
}

/// The result of removing the packs that no session needs.
#[derive(Debug, Serialize)]
pub struct RemoteTidyReport {
    /// The name of the remote.
    pub remote: String,
    /// How many packs were removed.
    pub removed: u64,
}

impl Report for RemoteTidyReport {
    fn human(&self, screen: &mut Screen) {
        let text = match self.removed {
            0 => format!("There is nothing to remove on {}.", self.remote),
            count => format!(
                "Removed {} from {} that no session needs.",
                count_text(count, "pack"),
                self.remote
            ),
        };
        screen.plain(&text);
    }
}

#[derive(Debug, Serialize)]
pub struct RemoteSessionListReport {
    /// The name of the remote.
    pub remote: String,
    /// The sessions, in the order of their names.
    pub sessions: Vec<RemoteSessionLine>,
    /// The error of a session that is left out because it is damaged.
    #[serde(skip)]
    pub failure: Option<CommandError>,
}

/// A session on a remote, as its ref describes it.
#[derive(Debug, Serialize)]
pub struct RemoteSessionLine {
    pub name: String,
    pub id: String,
    /// Its place on the remote.
    pub handle: String,
    pub kind: forge_store::SessionKind,
    pub version: u64,
    /// Its name in this store; null if it is not here.
    pub here: Option<String>,
    /// Its current branch.
    pub branch: String,
    /// The number of its revisions and checkpoints.
    pub last_sequence: u64,
    pub checkpoints: u64,
    pub claims: u64,
    pub facts: u64,
    /// The time of its latest event.
    pub last_event: Option<Timestamp>,
}

impl RemoteSessionLine {
    pub fn new(one: RemoteSession, here: Option<String>) -> Self {
        let summary = one.summary;
        Self {
            name: one.info.name,
            id: one.info.id.to_string(),
            handle: one.handle.to_string(),
            kind: one.info.kind,
            version: one.version,
            here,
            branch: summary.branch,
            last_sequence: summary.last_sequence,
            checkpoints: summary.checkpoints,
            claims: summary.claims,
            facts: summary.facts,
            last_event: summary.last_event,
        }
    }
}

impl Report for RemoteSessionListReport {
    const SCHEMA: Option<&'static str> = Some("forge.session.list.remote/1");

    fn take_failure(&mut self) -> Option<CommandError> {
        self.failure.take()
    }

    fn human(&self, screen: &mut Screen) {
        if self.sessions.is_empty() {
            if self.failure.is_none() {
                screen.plain(&format!("No session was pushed to {} yet.", self.remote));
            }
            return;
        }
        let titles = ["Session", "Here", "Branch", "Claims", "Facts", "Checkpoints", "Last"];
        let mut table = TextTable::new(&titles).right(3).right(4).right(5).flexible(0);
        for one in &self.sessions {
            let last = one.last_event.map(|last| screen.ago(last));
            table.row(cells![
                Id: &one.name, one.here.as_deref().unwrap_or("-"), &one.branch, one.claims,
                one.facts, one.checkpoints, Dim: last.as_deref().unwrap_or("-"),
            ]);
        }
        screen.table(&table);
    }
}

/// A new store, with sessions of a remote.
#[derive(Debug, Serialize)]
pub struct CloneReport {
    /// The directory of the store.
    pub path: String,
    /// The name of the remote.
    pub remote: String,
    pub url: String,
    pub sessions: Vec<PulledSession>,
    /// What was done because of purges; absent if nothing was.
    #[serde(skip_serializing_if = "PurgesReport::is_empty")]
    pub purges: PurgesReport,
    /// The session that commands use; null if none was pulled.
    pub current: Option<String>,
}

impl Report for CloneReport {
    fn exit_code(&self) -> u8 {
        self.purges.exit_code()
    }

    fn human(&self, screen: &mut Screen) {
        screen.plain(&format!("Made the store {}", self.path));
        screen.put(Tone::Plain, "Added the remote ");
        screen.put(Tone::Id, &self.remote);
        screen.plain(&format!(" at {}", self.url));
        self.sessions.iter().for_each(|one| one.print(&self.remote, screen));
        self.purges.print(&self.remote, screen);
        match &self.current {
            Some(current) => {
                screen.put(Tone::Plain, "Session ");
                screen.put(Tone::Id, current);
                screen.plain(" is the current one.");
            }
            None => screen.dim("No session is on the remote yet."),
        }
    }
}
