//! Reports of undo and redo.

use crate::error::CommandError;
use crate::output::{Report, Screen, Tone};
use crate::text::name_list;
use forge_store::model::{OperationId, Timestamp};
use forge_store::store::Session;
use serde::Serialize;

/// An operation that was undone or redone.
#[derive(Debug, Serialize)]
pub struct OperationUndoReport {
    #[serde(skip)]
    done: &'static str,
    pub session: String,
    /// The current branch afterwards.
    pub branch: String,
    /// The operation of the undo or redo itself, which can be undone too.
    pub operation: OperationId,
    /// The operation that was undone or redone.
    pub target: UndoneOperation,
    /// The number of the revision that the undo or redo made; null if no claim changed.
    pub revision: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct UndoneOperation {
    pub id: OperationId,
    /// Its verb, such as `hypothesis add`.
    pub verb: String,
    pub time: Timestamp,
    pub effects: Vec<String>,
}

impl OperationUndoReport {
    /// Creates the report of an undo or a redo.
    pub fn new(
        done: &'static str,
        session: &Session,
        undone: forge_store::store::UndoReport,
    ) -> Result<Self, CommandError> {
        let summary = session.summary()?;
        let target = undone.target;
        let (id, verb, time, effects) = (target.id, target.verb, target.time, target.effects);
        let target = UndoneOperation { id, verb, time, effects };
        let (operation, revision) = (undone.operation, undone.revision);
        let (session, branch) = (summary.info.name, summary.branch);
        Ok(Self { done, session, branch, operation, target, revision })
    }
}

impl Report for OperationUndoReport {
    fn human(&self, screen: &mut Screen) {
        let UndoneOperation { id, verb, time, effects } = &self.target;
        screen.put(Tone::Plain, &format!("{} '{verb}' ", self.done));
        screen.put(Tone::Id, &id.short());
        let revision = self.revision.map(|number| format!(", #{number}")).unwrap_or_default();
        screen.dim(&format!(" (session {}, branch {}{revision})", self.session, self.branch));
        let ago = screen.ago(*time);
        screen.plain(&format!("  done {ago}: {}", name_list(effects)));
    }
}
