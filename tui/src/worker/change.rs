//! Makes the writes that a person requests.

use super::resolved_moment;
use super::row::entity_title;
use crate::answer::{TextSheet, WorkerAnswer};
use crate::app::DisplayZone;
use crate::effect::{MomentTarget, WriteRequest};
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::error::{Error, Result};
use forge_store::model::{BranchMetadata, FieldMap, Kind, Timestamp, Value, rule};
use forge_store::store::{
    CheckpointTriggers, HeadClaims, NewCheckpoint, OperationSummary, Session, WriteContext,
};

/// Makes a write, with the automatic checkpoints of these triggers.
pub(super) fn run(
    session: &Session,
    change: &WriteRequest,
    now: Timestamp,
    triggers: &CheckpointTriggers,
    zone: DisplayZone,
) -> Result<WorkerAnswer> {
    let message = match change {
        WriteRequest::Create { message, target } => {
            let act = WriteContext::asked("checkpoint create", now);
            let mut new = NewCheckpoint::manual(message.clone());
            let mut write = session.write(&act);
            if *target != MomentTarget::Head {
                let resolved = resolved_moment(session, *target)?;
                new.at = resolved.time();
                write = write.after(&resolved);
            }
            let done = write.checkpoint(new).commit()?;
            let sequence = done.checkpoint.map_or(0, |checkpoint| checkpoint.sequence);
            format!("made checkpoint #{sequence}")
        }
        WriteRequest::Tag { sequence, words } => {
            let act = WriteContext::asked("checkpoint tag", now);
            let resolved = session.at_sequence(*sequence)?;
            let checkpoint = resolved.named_checkpoint();
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
            let from = resolved_moment(session, *target)?;
            session.create_branch(&act, name, Some(&from), BranchMetadata::default())?;
            let at = zone.moment(*target);
            format!("made branch {name} at {at}; 'forge branch switch {name}' goes there")
        }
        WriteRequest::Restore { target } => {
            let act = WriteContext::asked("checkpoint restore", now);
            let done = session.restore(&act, &resolved_moment(session, *target)?)?;
            let at = zone.moment(*target);
            match done.revision {
                Some((sequence, _)) => {
                    format!("#{sequence}: the claims are what they were at {at}; u reverts it")
                }
                None => format!("the claims are what they were at {at} already"),
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
        WriteRequest::Note(text) => {
            add(session, now, triggers, (Kind::Note, "note add"), text, None)?
        }
        WriteRequest::Hypothesis(text) => {
            let hypothesis = (Kind::Hypothesis, "hypothesis add");
            add(session, now, triggers, hypothesis, text, Some("active"))?
        }
        WriteRequest::Gap(text) => {
            add(session, now, triggers, (Kind::Gap, "gap add"), text, Some("open"))?
        }
        WriteRequest::Evidence { hypothesis, hundredths, text } => {
            let act = WriteContext::asked("evidence add", now);
            let value = Value::from([
                ("description", text.as_str().into()),
                ("hypothesis", hypothesis.as_str().into()),
                ("strength", (f64::from(*hundredths) / 100.0).into()),
            ]);
            let kind = Kind::Evidence;
            let rule = |claims: &HeadClaims, id: &str| rule::add_evidence(claims, id, &value);
            let write = session.write(&act).triggers(triggers);
            let write = write.rule_with_next_id(kind, kind.id_prefix(), rule);
            format!("added {}", write.commit()?.new_id.unwrap_or_default())
        }
        WriteRequest::Settle { hypothesis, confirm, reason } => {
            let verb = if *confirm { "hypothesis confirm" } else { "hypothesis reject" };
            let act = WriteContext::asked(verb, now);
            let reason = Some(reason.as_str()).filter(|reason| !reason.is_empty());
            let rule = |claims: &HeadClaims| {
                if *confirm {
                    rule::confirm_hypothesis(claims, hypothesis, reason)
                } else {
                    rule::reject_hypothesis(claims, hypothesis, reason)
                }
            };
            session.write(&act).triggers(triggers).rule(rule).commit()?;
            format!("{hypothesis} is {}", if *confirm { "confirmed" } else { "rejected" })
        }
    };
    Ok(WorkerAnswer::Done { message, command: change.command() })
}

/// Adds a claim with this description and status under the next free id. Returns the message for
/// the person.
fn add(
    session: &Session,
    now: Timestamp,
    triggers: &CheckpointTriggers,
    (kind, verb): (Kind, &str),
    text: &str,
    status: Option<&str>,
) -> Result<String> {
    let mut fields = FieldMap::from([("description".to_owned(), Value::from(text))]);
    fields.extend(status.map(|status| ("status".to_owned(), Value::from(status))));
    let value = Value::Map(fields);
    let act = WriteContext::asked(verb, now);
    let write = session.write(&act).triggers(triggers);
    let trigger = rule::trigger_of(kind, None, &value).map(|(trigger, _)| trigger);
    let write = write.add_next(kind, kind.id_prefix(), value).event(trigger);
    Ok(format!("added {}", write.commit()?.new_id.unwrap_or_default()))
}

/// Returns what an undo or a redo would do.
pub(super) fn plan(
    session: &Session,
    next: &OperationSummary,
    redo: bool,
    zone: DisplayZone,
) -> TextSheet {
    let verb = if redo { "redo" } else { "undo" };
    let effect = if redo { "brings back" } else { "takes back" };
    let mut lines = vec![
        line(TextTone::Heading, 0, format!("{verb} {effect}: {}", next.verb)),
        line(TextTone::Dim, 0, format!("of {}", zone.show(next.time))),
    ];
    for effect in &next.effects {
        lines.push(line(TextTone::Plain, 2, effect.clone()));
        let sequence = effect.strip_prefix("revision #").and_then(|number| number.parse().ok());
        // A revision that can no longer be read is still named.
        let changes = sequence.and_then(|sequence| session.changes_of(sequence).ok());
        for change in changes.iter().flatten() {
            let value = change.new.as_ref().or(change.old.as_ref()).map(|entry| &entry.value);
            let text = value.map(|value| entity_title(change.key.kind, value)).unwrap_or_default();
            let id = format!("{} ", change.key.id);
            lines.push(line(TextTone::Id, 4, id).and(TextTone::Plain, text));
        }
    }
    TextSheet {
        title: format!("{verb} '{}'", next.verb),
        id: next.id.to_string(),
        sections: vec![section("", lines)],
        ..TextSheet::default()
    }
}
