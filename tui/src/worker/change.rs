//! Writes that a person asked for.

use super::point;
use crate::answer::Answer;
use crate::effect::{Change, Target};
use forge_store::error::{Error, Result};
use forge_store::model::{BranchMetadata, Timestamp};
use forge_store::store::{Act, NewCheckpoint, Session};

pub(super) fn run(session: &Session, change: &Change, now: Timestamp) -> Result<Answer> {
    let said = match change {
        Change::Create { message, target } => {
            let act = Act::asked("checkpoint create", now);
            let mut new = NewCheckpoint::manual(message.clone());
            if *target != Target::Head
                && let Some(time) = point(session, *target)?.time()
            {
                new = new.at(time);
            }
            let done = session.write(&act).checkpoint(new).commit()?;
            let sequence = done.checkpoint.map_or(0, |checkpoint| checkpoint.sequence);
            format!("made checkpoint #{sequence}")
        }
        Change::Tag { sequence, words } => {
            let act = Act::asked("checkpoint tag", now);
            let point = session.sequence(*sequence)?;
            let checkpoint = point.named_checkpoint();
            let checkpoint =
                checkpoint.ok_or_else(|| Error::not_found("checkpoint", format!("#{sequence}")))?;
            let remove = words.iter().filter_map(|word| word.strip_prefix('-')).map(str::to_owned);
            let add = words.iter().filter(|word| !word.starts_with('-')).cloned();
            let (add, remove): (Vec<_>, Vec<_>) = (add.collect(), remove.collect());
            let tagged = session.tag(&act, &checkpoint.id, &add, &remove)?;
            format!("tags of #{sequence}: {}", tagged.tags.join(", "))
        }
        Change::Branch { name, target } => {
            let act = Act::asked("branch create", now);
            let from = point(session, *target)?;
            session.create_branch(&act, name, Some(&from), BranchMetadata::default())?;
            format!("made branch {name} at {target}; 'forge branch switch {name}' goes there")
        }
        Change::Restore { target } => {
            let act = Act::asked("checkpoint restore", now);
            let done = session.restore(&act, &point(session, *target)?)?;
            match done.revision {
                Some((sequence, _)) => {
                    format!(
                        "#{sequence}: the claims are what they were at {target}; u takes it back"
                    )
                }
                None => format!("the claims are what they were at {target} already"),
            }
        }
        Change::Undo => {
            let undone = session.undo(&Act::asked("undo", now), None)?;
            format!("took back '{}'; U brings it back", undone.target.verb)
        }
        Change::Redo => {
            let undone = session.redo(&Act::asked("redo", now))?;
            format!("brought back '{}'", undone.target.verb)
        }
    };
    Ok(Answer::Done { said, command: change.command() })
}
