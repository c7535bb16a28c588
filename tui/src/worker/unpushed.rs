//! Says what is not pushed to the remotes of the store, as far as the store knows. It makes no
//! request to a remote.

use crate::app::DisplayZone;
use forge_store::error::Result;
use forge_store::model::text::count_text;
use forge_store::model::{SessionId, Timestamp};
use forge_store::store::Store;
use forge_store::store::remote::{KnownRemote, RewriteReason};
use std::collections::BTreeMap;

/// What is not pushed, in words.
#[derive(Debug, Default)]
pub(super) struct UnpushedText {
    /// For each session with unpushed work.
    pub(super) sessions: BTreeMap<SessionId, String>,
    /// For each remote with unpushed operations.
    pub(super) remotes: Vec<String>,
}

impl UnpushedText {
    /// Reads what is not pushed of the sessions that were pushed to a remote or pulled from it
    /// before.
    pub(super) fn load(store: &Store, remotes: &[KnownRemote], zone: DisplayZone) -> Result<Self> {
        let mut text = Self::default();
        for KnownRemote { name, access, .. } in remotes {
            let (mut operations, mut sessions, mut first) = (0, 0, None);
            for session in store.shared_sessions(access)? {
                let work = store.unpushed(access, &session)?;
                let id = session.summary()?.info.id;
                let mut add = |own: String| {
                    let known = text.sessions.entry(id).or_default();
                    let comma = if known.is_empty() { "" } else { ", " };
                    *known += &format!("{comma}{own}");
                };
                if let Some(reason) = work.rewrite {
                    add(outdated(name, reason));
                }
                if work.operations > 0 {
                    let count = count_text(work.operations, "operation");
                    add(format!("{count} not pushed to {name}{}", since(work.since, zone)));
                    operations += work.operations;
                    sessions += 1;
                    first = first.into_iter().chain(work.since).min();
                }
            }
            if operations > 0 {
                text.remotes.push(format!(
                    "{} of {} not pushed to {name}{}",
                    count_text(operations, "operation"),
                    count_text(sessions, "session"),
                    since(first, zone)
                ));
            }
        }
        Ok(text)
    }
}

/// Returns why a session must be rewritten on a remote, in words.
fn outdated(remote: &str, reason: RewriteReason) -> String {
    match reason {
        RewriteReason::Purged => format!("{remote} still has what was purged here"),
        RewriteReason::Swept => format!("{remote} still has what was swept here"),
        RewriteReason::Reordered => format!("{remote} has another order"),
    }
}

fn since(first: Option<Timestamp>, zone: DisplayZone) -> String {
    first.map(|first| format!(", the first {}", zone.show(first))).unwrap_or_default()
}
