//! Builds the lines of the state at a moment.

use super::row::{entity_title, one_line};
use crate::answer::{ItemNovelty, StateItem, StateTab, StateView, text_of};
use crate::effect::MomentTarget;
use crate::theme::TextTone;
use forge_store::diff::ChangeKind;
use forge_store::error::Result;
use forge_store::model::claim::Dependency;
use forge_store::model::{ClaimEntry, Fact, Key, Kind, Value};
use forge_store::store::{ResolvedMoment, Session, StateAt};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of lines of a tab.
const MAX_ITEMS: usize = 2000;
/// The maximum number of facts of one kind that are read.
const MAX_FACTS: usize = 300;

/// Returns the lines of a tab at a moment, marked as new or changed since another moment.
pub(super) fn view(
    session: &Session,
    target: MomentTarget,
    moment: &ResolvedMoment,
    since: Option<&ResolvedMoment>,
    tab: StateTab,
) -> Result<StateView> {
    let state = session.state(moment)?;
    let claims_of = |tab: StateTab| {
        tab.kinds().iter().map(|kind| state.claims().count_of_kind(*kind)).sum::<usize>()
    };
    let counts = StateTab::ALL.iter().map(|(tab, ..)| (*tab, claims_of(*tab))).collect();

    let mut changed = BTreeMap::new();
    let mut moved_kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    if let Some(since) = since {
        for change in session.changed_claims(since, moment)?.keys() {
            let (key, change) = change?;
            *moved_kinds.entry(key.kind).or_default() += 1;
            match change {
                ChangeKind::Removed => {}
                ChangeKind::Added => _ = changed.insert(key, ItemNovelty::New),
                _ => _ = changed.insert(key, ItemNovelty::Changed),
            }
        }
    }
    let moved_in =
        |tab: StateTab| tab.kinds().iter().filter_map(|kind| moved_kinds.get(kind)).sum::<usize>();
    let moved = StateTab::ALL.iter().map(|(tab, ..)| (*tab, moved_in(*tab))).collect();

    let novelty = |key: &Key| changed.get(key).copied().unwrap_or(ItemNovelty::Same);
    let mut items = Vec::new();
    for kind in tab.kinds() {
        if kind.is_claim() {
            claims(&state, *kind, &novelty, &mut items)?;
        } else {
            let after = since.and_then(ResolvedMoment::time);
            for known in session.recent_facts(moment, *kind, MAX_FACTS)? {
                items
                    .push(fact_item(&known.fact, after.is_some_and(|after| known.fact.at > after)));
            }
        }
    }
    if tab.kinds().iter().any(|kind| !kind.is_claim()) {
        items.sort_by_key(|item| std::cmp::Reverse(item.time));
    }
    let more = items.len().saturating_sub(MAX_ITEMS);
    items.truncate(MAX_ITEMS);
    Ok(StateView {
        target,
        time: state.time()?,
        branch: state.current_branch()?,
        revision: moment.revision(),
        tab,
        items,
        more,
        counts,
        moved,
        since_mark: String::new(),
    })
}

fn claims(
    state: &StateAt,
    kind: Kind,
    novelty: &impl Fn(&Key) -> ItemNovelty,
    items: &mut Vec<StateItem>,
) -> Result<()> {
    let mut all = state.claims_of(kind)?;
    let field = |entry: &ClaimEntry, name: &str| entry.value.field(name).map(text_of);
    let rank = |words: &[&str], word: Option<String>, other: usize| {
        word.and_then(|word| words.iter().position(|known| *known == word)).unwrap_or(other)
    };
    match kind {
        Kind::Hypothesis => all.sort_by_key(|(_, entry)| {
            let words = ["under_test", "active", "confirmed", "rejected", "archived"];
            rank(&words, field(entry, "status"), 1)
        }),
        Kind::Gap => all.sort_by_key(|(_, entry)| {
            let open = rank(&["open", "filling"], field(entry, "status"), 0);
            let closed = usize::from(!matches!(
                field(entry, "status").as_deref(),
                None | Some("open" | "filling")
            ));
            let words = ["critical", "high", "medium", "low"];
            (closed, rank(&words, field(entry, "criticality"), 2), open)
        }),
        Kind::Belief => return beliefs(state, &all, novelty, items),
        _ => {}
    }
    items.extend(all.iter().map(|(id, entry)| claim_item(kind, id, entry, 0, novelty)));
    Ok(())
}

/// Adds the beliefs as a tree: a belief is shown below a belief that it rests on.
fn beliefs(
    state: &StateAt,
    all: &[(String, ClaimEntry)],
    novelty: &impl Fn(&Key) -> ItemNovelty,
    items: &mut Vec<StateItem>,
) -> Result<()> {
    // For each belief, the beliefs that rest on it.
    let mut above: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rests: BTreeSet<String> = BTreeSet::new();
    for (_, entry) in state.claims_of(Kind::Dependency)? {
        if let Ok(dependency) = Dependency::from_value(&entry.value)
            && let Some((upper, lower)) = dependency.rests_on()
        {
            above.entry(lower.to_owned()).or_default().push(upper.to_owned());
            rests.insert(upper.to_owned());
        }
    }
    let entries: BTreeMap<&str, &ClaimEntry> =
        all.iter().map(|(id, entry)| (id.as_str(), entry)).collect();
    let mut seen = BTreeSet::new();
    // Beliefs that rest on nothing come first, then all others, such as beliefs in a cycle.
    let roots = all.iter().filter(|(id, _)| !rests.contains(id)).chain(all);
    for (id, _) in roots {
        let mut waiting = vec![(id.as_str(), 0)];
        while let Some((id, depth)) = waiting.pop() {
            let Some(entry) = entries.get(id) else { continue };
            if !seen.insert(id) {
                continue;
            }
            items.push(claim_item(Kind::Belief, id, entry, depth, novelty));
            let under = above.get(id).into_iter().flatten().rev();
            waiting.extend(under.map(|upper| (upper.as_str(), (depth + 1).min(8))));
        }
    }
    Ok(())
}

fn claim_item(
    kind: Kind,
    id: &str,
    entry: &ClaimEntry,
    depth: u16,
    novelty: &impl Fn(&Key) -> ItemNovelty,
) -> StateItem {
    let key = Key::new(kind, id);
    let value = &entry.value;
    let text = |name: &str| value.field(name).map(text_of);
    let mut status = match kind {
        Kind::Hypothesis => text("status").unwrap_or_else(|| "active".to_owned()),
        Kind::Gap => {
            let status = text("status").unwrap_or_else(|| "open".to_owned());
            let critical = text("criticality").unwrap_or_else(|| "medium".to_owned());
            format!("{status}, {critical}")
        }
        Kind::Evidence => {
            let strength = value.field("strength").and_then(Value::as_f64);
            let strength = strength.map(|strength| format!("{strength:+.2} ")).unwrap_or_default();
            format!("{strength}{}", text("hypothesis").unwrap_or_default())
        }
        Kind::Belief if value.field("in_doubt") == Some(&Value::Bool(true)) => {
            "in doubt".to_owned()
        }
        Kind::Belief => text("kind").unwrap_or_default(),
        _ => text("status").unwrap_or_default(),
    };
    status = status.replace('_', " ");
    let tone = match status.split(',').next().unwrap_or_default() {
        "confirmed" | "filled" => TextTone::Good,
        "rejected" | "unfillable" => TextTone::Removed,
        "in doubt" => TextTone::Warning,
        "archived" | "obsolete" => TextTone::Dim,
        "open" if status.ends_with("critical") => TextTone::Bad,
        _ => TextTone::Plain,
    };
    let confidence = match kind {
        Kind::Hypothesis => Some(value.field("confidence").and_then(Value::as_f64).unwrap_or(0.5)),
        _ => value.field("confidence").and_then(Value::as_f64),
    };
    let novelty = novelty(&key);
    let title = entity_title(kind, value);
    StateItem { key, title, status, confidence, tone, depth, novelty, time: entry.added_at }
}

fn fact_item(fact: &Fact, new: bool) -> StateItem {
    let value = &fact.value;
    let text = |name: &str| value.field(name).map(text_of);
    let status = match fact.kind {
        Kind::Command => {
            match (value.field("exit_code").and_then(Value::as_i64), text("outcome")) {
                (Some(code), _) => format!("exit {code}"),
                (None, Some(outcome)) => outcome.replace('_', " "),
                (None, None) => String::new(),
            }
        }
        Kind::Message => text("role").unwrap_or_default(),
        Kind::Prompt => "asked".to_owned(),
        Kind::Code => match (text("lines_added"), text("lines_removed")) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => String::new(),
        },
        Kind::Measurement | Kind::Inference => String::new(),
        Kind::Tool => text("outcome").unwrap_or_default(),
        Kind::Notice => text("type").unwrap_or_default(),
        _ => text("status").unwrap_or_default().replace('_', " "),
    };
    let tone = match status.as_str() {
        "passed" | "completed" | "exit 0" => TextTone::Good,
        "failed" | "error" | "timed out" | "refused" => TextTone::Bad,
        other if other.starts_with("exit ") => TextTone::Bad,
        "asked" => TextTone::Warning,
        _ => TextTone::Plain,
    };
    StateItem {
        key: Key::new(fact.kind, fact.id.clone()),
        title: one_line(&entity_title(fact.kind, value)),
        status,
        confidence: None,
        tone,
        depth: 0,
        novelty: if new { ItemNovelty::New } else { ItemNovelty::Same },
        time: fact.at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::{FactOrigin, Timestamp};

    #[test]
    fn evidence_without_a_strength_shows_none() {
        let at = Timestamp::from_micros(0);
        let status = |value: Value| {
            let entry = ClaimEntry { added_at: at, value };
            claim_item(Kind::Evidence, "E1", &entry, 0, &|_: &Key| ItemNovelty::Same).status
        };
        assert_eq!(status(Value::from([("hypothesis", "H1".into())])), "H1");
        let strong = Value::from([("hypothesis", "H1".into()), ("strength", 0.5.into())]);
        assert_eq!(status(strong), "+0.50 H1");
    }

    #[test]
    fn a_timed_out_command_has_the_tone_of_a_failure() {
        let at = Timestamp::from_micros(0);
        let value = Value::from([("command", "sleep 9".into()), ("outcome", "timed_out".into())]);
        let (kind, id, origin) = (Kind::Command, "c1".to_owned(), FactOrigin::Imported);
        let fact = Fact { kind, id, at, origin, place: 0, recorded_at: at, value };
        let item = fact_item(&fact, false);
        assert_eq!((item.status.as_str(), item.tone), ("timed out", TextTone::Bad));
    }
}
