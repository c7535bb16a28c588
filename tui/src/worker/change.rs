//! Writes that a person asked for.

use super::point;
use crate::answer::WorkerAnswer;
use crate::effect::{MomentTarget, WriteRequest};
use forge_store::error::{Error, Result};
use forge_store::model::{BranchMetadata, Timestamp};
use forge_store::store::{NewCheckpoint, Session, WriteContext};

pub(super) fn run(
    session: &Session,
    change: &WriteRequest,
    now: Timestamp,
) -> Result<WorkerAnswer> {
    let said = match change {
        WriteRequest::Create { message, target } => {
            let act = WriteContext::asked("checkpoint create", now);
            let mut new = NewCheckpoint::manual(message.clone());
            if *target != MomentTarget::Head
                && let Some(time) = point(session, *target)?.time()
            {
                new = new.at(time);
            }
            let done = session.write(&act).checkpoint(new).commit()?;
            let sequence = done.checkpoint.map_or(0, |checkpoint| checkpoint.sequence);
            format!("made checkpoint #{sequence}")
        }
        WriteRequest::Tag { sequence, words } => {
            let act = WriteContext::asked("checkpoint tag", now);
            let point = session.at_sequence(*sequence)?;
            let checkpoint = point.named_checkpoint();
            let checkpoint =
                checkpoint.ok_or_else(|| Error::not_found("checkpoint", format!("#{sequence}")))?;
            let remove = words.iter().filter_map(|word| word.strip_prefix('-')).map(str::to_owned);
            let add = words.iter().filter(|word| !word.starts_with('-')).cloned();
            let (add, remove): (Vec<_>, Vec<_>) = (add.collect(), remove.collect());
            let tagged = session.tag(&act, &checkpoint.id, &add, &remove)?;
            format!("tags of #{sequence}: {}", tagged.tags.join(", "))
        }
        WriteRequest::Branch { name, target } => {
            let act = WriteContext::asked("branch create", now);
            let from = point(session, *target)?;
            session.create_branch(&act, name, Some(&from), BranchMetadata::default())?;
            format!("made branch {name} at {target}; 'forge branch switch {name}' goes there")
        }
        WriteRequest::Restore { target } => {
            let act = WriteContext::asked("checkpoint restore", now);
            let done = session.restore(&act, &point(session, *target)?)?;
            match done.revision {
                Some((sequence, _)) => {
                    format!("#{sequence}: the claims are what they were at {target}; u reverts it")
                }
                None => format!("the claims are what they were at {target} already"),
            }
        }
        WriteRequest::Undo => {
            let undone = session.undo(&WriteContext::asked("undo", now), None)?;
            format!("undid '{}'; U redoes it", undone.target.verb)
        }
        WriteRequest::Redo => {
            let undone = session.redo(&WriteContext::asked("redo", now))?;
            format!("brought back '{}'", undone.target.verb)
        }
    };
    Ok(WorkerAnswer::Done { said, command: change.command() })
}
