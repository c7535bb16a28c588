//! Reports what pushes and pulls did because of purges.

use crate::error::{EXIT_NOT_YET, EXIT_OK};
use crate::output::{OutputSink, Screen, Tone};
use crate::remote::name::remote_argument;
use crate::text::{count_text, name_list};
use forge_store::store::PurgeFinding;
use forge_store::store::remote::{FinishedPurges, PurgeActivity, RewriteReason, UnpurgedSecret};
use serde::Serialize;

/// What was done because of purges.
#[derive(Debug, Default, Serialize)]
pub struct PurgesReport {
    /// The number of purges made here whose notices were written to the remote for the first time.
    pub notices: u64,
    /// The places here in which secrets that were purged elsewhere were found and replaced.
    pub replaced: Vec<PurgeFinding>,
    /// Whether other processes still use old files with these secrets.
    pub unfinished: bool,
    /// What was purged elsewhere and cannot be purged here.
    pub unpurged: Vec<UnpurgedSecret>,
    /// The number of texts that were purged elsewhere but are no secrets. They were not replaced.
    pub ignored: u64,
    /// The sessions that were rewritten in addition to the sessions of the command.
    pub rewritten: Vec<String>,
    /// The sessions that were not rewritten, because they have operations that are not pushed.
    pub unpushed: Vec<String>,
    /// The packs with purged or swept data that could not be removed from the remote.
    pub left: Vec<String>,
}

impl From<FinishedPurges> for PurgesReport {
    fn from(done: FinishedPurges) -> Self {
        let FinishedPurges { activity, rewritten, unpushed } = done;
        let PurgeActivity { written, replaced, is_unfinished, unpurged, ignored, left } = activity;
        Self {
            notices: written,
            replaced,
            unfinished: is_unfinished,
            unpurged,
            ignored,
            rewritten,
            unpushed,
            left,
        }
    }
}

impl PurgesReport {
    /// Returns whether there is nothing to report.
    pub const fn is_empty(&self) -> bool {
        self.notices == 0
            && self.replaced.is_empty()
            && self.rewritten.is_empty()
            && self.unpushed.is_empty()
            && self.left.is_empty()
            && self.unpurged.is_empty()
            && self.ignored == 0
    }

    /// Returns the exit code of the command: 8 if what was purged is not gone everywhere yet.
    pub const fn exit_code(&self) -> u8 {
        let is_done = !self.unfinished
            && self.unpushed.is_empty()
            && self.left.is_empty()
            && self.unpurged.is_empty();
        if is_done { EXIT_OK } else { EXIT_NOT_YET }
    }

    /// Warns of what cannot be undone and of what is left to do.
    pub fn warn(&self, remote: &str, out: &OutputSink) {
        let all = self.done_elsewhere().into_iter().chain(self.not_done());
        all.for_each(|text| out.warn(&text));
        if self.unfinished {
            out.warn(
                "other processes still use old files with what was purged: end them, then run \
                 'forge maintain'",
            );
        }
        let to = remote_argument(" --to ", remote);
        for name in &self.unpushed {
            out.warn(&format!(
                "{remote} still has what was purged in {name}, which has operations that are not \
                 pushed: 'forge push {name}{to}' rewrites it"
            ));
        }
        for name in &self.left {
            out.warn(&format!(
                "{name} on {remote} has what was erased here and could not be removed: remove it \
                 there, or run the command again"
            ));
        }
    }

    /// Returns, as sentences, what was done here because of purges elsewhere, and which texts were
    /// not replaced.
    pub fn done_elsewhere(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.replaced.is_empty() {
            let secrets = count_text(self.replaced.iter().map(|place| place.count).sum(), "secret");
            let mut sessions: Vec<String> =
                self.replaced.iter().filter_map(|place| place.session.clone()).collect();
            sessions.sort_unstable();
            sessions.dedup();
            let sessions = match sessions.as_slice() {
                [] => String::new(),
                names => format!(" in {}", name_list(names)),
            };
            sentences.push(format!(
                "replaced {secrets}{sessions}, as a purge elsewhere did: this cannot be undone"
            ));
        }
        if self.ignored > 0 {
            sentences.push(format!(
                "left {}, though a purge elsewhere replaced it: it is part of forge's own words, and \
                 so no secret",
                count_text(self.ignored, "text")
            ));
        }
        sentences
    }

    /// Returns, as sentences, what was purged elsewhere and cannot be purged here. Each push finds
    /// it again.
    pub fn not_done(&self) -> Vec<String> {
        let held = self.unpurged.iter().map(|one| {
            format!(
                "{} holds what was purged elsewhere and cannot be purged here: {}. It is not pushed \
                 until that is changed",
                name_list(&one.sessions),
                one.reason
            )
        });
        held.collect()
    }

    /// Writes what was done.
    pub fn print(&self, remote: &str, screen: &mut Screen) {
        if self.notices > 0 {
            let purges = count_text(self.notices, "purge");
            screen.plain(&format!("Sent {purges} to {remote}"));
        }
        for name in &self.rewritten {
            print_rewritten(screen, "Rewrote", (name, remote), RewriteReason::Purged, "");
        }
    }
}

/// Says that a session was rewritten, after a word such as "Rewrote".
pub fn print_rewritten(
    screen: &mut Screen,
    did: &str,
    (session, remote): (&str, &str),
    reason: RewriteReason,
    end: &str,
) {
    let how = match reason {
        RewriteReason::Purged => "without what was purged",
        RewriteReason::Swept => "without what was permanently deleted",
        RewriteReason::Reordered => "in the order that it has on another remote",
    };
    screen.put(Tone::Plain, &format!("{did} "));
    screen.put(Tone::Id, session);
    screen.plain(&format!(" on {remote} {how}{end}"));
}
