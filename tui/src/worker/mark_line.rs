//! The line that says what changed between the mark and the selected moment.

use super::difference::order;
use forge_store::diff::ChangeKind;
use forge_store::error::Result;
use forge_store::model::claim::{Hypothesis, HypothesisStatus, VocabularyWord};
use forge_store::model::{Key, Kind};
use forge_store::store::{ResolvedMoment, Session};
use std::collections::BTreeMap;

/// Maximum number of hypotheses that are named. Further ones are counted.
const MAX_NAMED: usize = 4;

/// Returns the line: what changed from the earlier of two moments to the later one.
pub(super) fn since_mark(
    session: &Session,
    mark: &ResolvedMoment,
    here: &ResolvedMoment,
) -> Result<String> {
    let is_later = order(mark) > order(here);
    let (from, to) = if is_later { (here, mark) } else { (mark, here) };
    let mut parts = Vec::new();
    let mut counts: BTreeMap<Kind, [usize; 3]> = BTreeMap::new();
    for change in session.changed_claims(from, to)?.keys() {
        let (key, change) = change?;
        if key.kind == Kind::Hypothesis && change != ChangeKind::Removed && parts.len() < MAX_NAMED
        {
            parts.push(hypothesis(session, from, to, &key)?);
            continue;
        }
        let [added, removed, changed] = counts.entry(key.kind).or_default();
        match change {
            ChangeKind::Added => *added += 1,
            ChangeKind::Removed => *removed += 1,
            _ => *changed += 1,
        }
    }
    for (kind, [added, removed, changed]) in counts {
        let named = |count: usize| match count {
            1 => format!("1 {}", kind.name().replace('_', " ")),
            count => format!("{count} {}", kind.plural()),
        };
        parts.extend((added > 0).then(|| format!("+{}", named(added))));
        parts.extend((removed > 0).then(|| format!("−{}", named(removed))));
        parts.extend((changed > 0).then(|| format!("{} changed", named(changed))));
    }
    let words = if parts.is_empty() { "no claim changed".to_owned() } else { parts.join(", ") };
    Ok(format!("{} the mark: {words}", if is_later { "until" } else { "since" }))
}

/// Returns how a hypothesis changed, such as `H4 0.55 → 0.98 confirmed`.
fn hypothesis(
    session: &Session,
    from: &ResolvedMoment,
    to: &ResolvedMoment,
    key: &Key,
) -> Result<String> {
    let read = |moment| -> Result<Option<Hypothesis>> {
        let entry = session.claim(moment, key)?;
        Ok(entry.and_then(|entry| Hypothesis::from_value(&entry.value).ok()))
    };
    let (old, new) = (read(from)?, read(to)?.unwrap_or_default());
    let confidence = |held: &Hypothesis| held.confidence.map(|it| format!("{:.2}", it.value()));
    let mut text = key.id.clone();
    match (old.as_ref().and_then(confidence), confidence(&new)) {
        (Some(old), Some(new)) if old != new => text.push_str(&format!(" {old} → {new}")),
        (None, Some(new)) => text.push_str(&format!(" {new}")),
        _ => {}
    }
    let status = new.status.unwrap_or(HypothesisStatus::Active);
    match old {
        None => text.push_str(" new"),
        Some(old) if old.status.unwrap_or(HypothesisStatus::Active) != status => {
            text.push_str(&format!(" {}", status.word().replace('_', " ")));
        }
        Some(_) => {}
    }
    Ok(text)
}
