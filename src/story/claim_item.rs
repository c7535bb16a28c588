//! The items of a story for the claims that a revision changed.

use super::gist::{ITEM_CHARS, one_line};
use super::item::{FoldKey, StoryItem, StoryKind, StoryMark};
use crate::model::claim::{GapStatus, HypothesisStatus, VocabularyWord};
use crate::model::rule::PRIOR;
use crate::model::{ClaimEntry, EntryChange, Key, Kind};
use crate::store::LogEntry;

/// Returns the items of the changes of a revision.
pub(super) fn claim_items(revision: &LogEntry, changes: &[EntryChange]) -> Vec<StoryItem> {
    let builder = ClaimItemBuilder { revision, changes };
    // Evidence that changed the confidence of a hypothesis is part of the item of the hypothesis.
    let causes: Vec<&str> = changes.iter().filter_map(|change| builder.cause(change)).collect();
    let is_cause = |key: &Key| key.kind == Kind::Evidence && causes.contains(&key.id.as_str());
    let shown = changes.iter().filter(|change| !is_cause(&change.key));
    shown.map(|change| builder.item(change)).collect()
}

/// Makes items of the changes of one revision.
struct ClaimItemBuilder<'a> {
    revision: &'a LogEntry,
    changes: &'a [EntryChange],
}

impl<'a> ClaimItemBuilder<'a> {
    fn item(&self, change: &EntryChange) -> StoryItem {
        let item = match change.key.kind {
            Kind::Hypothesis => self.hypothesis(change),
            Kind::Evidence => self.evidence(change),
            Kind::Belief => self.belief(change),
            Kind::Gap => self.gap(change),
            Kind::Note => self.note(change),
            _ => self.other(change),
        };
        let mut item = item.about(change.key.kind, &change.key.id);
        if let Some(id) = self.cause(change) {
            item = item.about(Kind::Evidence, id);
        }
        StoryItem {
            branch: Some(self.revision.branch.clone()),
            ..item.at_sequence(self.revision.sequence)
        }
    }

    fn loud(
        &self,
        kind: StoryKind,
        text: String,
        mark: StoryMark,
        detail: Option<String>,
    ) -> StoryItem {
        let detail = detail.map(|detail| one_line(&detail, ITEM_CHARS));
        StoryItem::loud(self.revision.time, kind, text).marked(mark).detailed(detail)
    }

    fn quiet(&self, kind: StoryKind, text: String) -> StoryItem {
        StoryItem::quiet(self.revision.time, kind, FoldKey::Claim, text)
    }

    fn hypothesis(&self, change: &EntryChange) -> StoryItem {
        let id = &change.key.id;
        let kind = StoryKind::Hypothesis;
        let description = field(&change.new, "description");
        let Some((old, new)) = both(change) else {
            return self.added_or_removed(kind, change, description);
        };
        let moved = moved(change.key.kind, old, new);
        let path = moved.as_ref().map(|(path, _)| format!(" {path}")).unwrap_or_default();
        if let Some(status) = changed(old, new, "status") {
            let mark = match HypothesisStatus::from_word(&status) {
                Some(HypothesisStatus::Confirmed) => StoryMark::Good,
                Some(HypothesisStatus::Rejected) => StoryMark::Bad,
                _ => moved.map_or(StoryMark::Plain, |(_, mark)| mark),
            };
            let reason = changed(old, new, "reason")
                .or_else(|| self.cause(change).and_then(|id| self.description_of_evidence(id)));
            let text = format!("{id} {}{path}", status.replace('_', " "));
            return self.loud(kind, text, mark, reason.or(description));
        }
        if let Some((path, mark)) = moved {
            let cause = self.cause(change).and_then(|id| self.description_of_evidence(id));
            let text = format!("{id} {path}");
            return self.loud(kind, text, mark, cause.or(description));
        }
        if let Some(words) = changed(old, new, "description") {
            return self.loud(kind, format!("{id} reworded"), StoryMark::Plain, Some(words));
        }
        match changed(old, new, "reason") {
            Some(reason) => {
                let text = format!("{id} has another reason");
                self.loud(kind, text, StoryMark::Plain, Some(reason))
            }
            None => self.quiet(kind, format!("{id} changed")),
        }
    }

    fn evidence(&self, change: &EntryChange) -> StoryItem {
        let id = &change.key.id;
        let kind = StoryKind::Evidence;
        let description = field(&change.new, "description");
        if change.old.is_some() {
            let word = if change.new.is_none() { "removed" } else { "changed" };
            return self.loud(kind, format!("{id} {word}"), StoryMark::Plain, description);
        }
        let strength = change.new.as_ref().and_then(|new| number(new, "strength"));
        let strength = strength.map(|strength| match strength < 0.0 {
            true => ("against", -strength),
            false => ("for", strength),
        });
        let text = match (field(&change.new, "hypothesis"), strength) {
            (Some(hypothesis), Some((way, number))) => {
                format!("{id} {way} {hypothesis} {number:.2}")
            }
            (Some(hypothesis), None) => format!("{id} about {hypothesis}"),
            (None, Some((way, number))) => format!("{id} {way} {number:.2}"),
            (None, None) => id.clone(),
        };
        self.loud(kind, text, StoryMark::New, description)
    }

    fn belief(&self, change: &EntryChange) -> StoryItem {
        let id = &change.key.id;
        let kind = StoryKind::Belief;
        let description = field(&change.new, "description");
        let Some((old, new)) = both(change) else {
            return self.added_or_removed(kind, change, description);
        };
        if flag(new, "in_doubt") && !flag(old, "in_doubt") {
            let reason = text(new, "doubt_reason").or(description);
            return self.loud(kind, format!("{id} in doubt"), StoryMark::Bad, reason);
        }
        if let Some((path, mark)) = moved(change.key.kind, old, new) {
            return self.loud(kind, format!("{id} {path}"), mark, description);
        }
        if flag(old, "in_doubt") && !flag(new, "in_doubt") {
            let text = format!("{id} no longer in doubt");
            return self.loud(kind, text, StoryMark::Plain, description);
        }
        match changed(old, new, "description") {
            Some(words) => self.loud(kind, format!("{id} reworded"), StoryMark::Plain, Some(words)),
            None => self.quiet(kind, format!("{id} changed")),
        }
    }

    fn gap(&self, change: &EntryChange) -> StoryItem {
        let id = &change.key.id;
        let kind = StoryKind::Gap;
        let description = field(&change.new, "description");
        let Some((old, new)) = both(change) else {
            if change.old.is_some() {
                return self.added_or_removed(kind, change, description);
            }
            return self.loud(kind, format!("{id} open"), StoryMark::Open, description);
        };
        let Some(status) = changed(old, new, "status") else {
            return match changed(old, new, "resolution") {
                Some(words) => {
                    let text = format!("{id} resolution changed");
                    self.loud(kind, text, StoryMark::Plain, Some(words))
                }
                None => self.quiet(kind, format!("{id} changed")),
            };
        };
        let words = format!("{id} {}", status.replace('_', " "));
        let mark = match GapStatus::from_word(&status) {
            Some(GapStatus::Filling) => return self.quiet(kind, words),
            Some(GapStatus::Filled) => StoryMark::Good,
            Some(GapStatus::Unfillable) => StoryMark::Bad,
            // The answer that it had does not hold any more.
            Some(GapStatus::Open) => return self.loud(kind, words, StoryMark::Open, description),
            Some(GapStatus::Obsolete) | None => StoryMark::Plain,
        };
        let resolution = text(new, "resolution").or(description);
        self.loud(kind, words, mark, resolution)
    }

    fn note(&self, change: &EntryChange) -> StoryItem {
        let id = &change.key.id;
        let (text, mark) = match (&change.old, &change.new) {
            (None, _) => (id.clone(), StoryMark::New),
            (Some(_), None) => (format!("{id} removed"), StoryMark::Plain),
            _ => (format!("{id} reworded"), StoryMark::Plain),
        };
        self.loud(StoryKind::Note, text, mark, field(&change.new, "description"))
    }

    fn other(&self, change: &EntryChange) -> StoryItem {
        let word = match (&change.old, &change.new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        let kind = change.key.kind.name().replace('_', " ");
        self.quiet(StoryKind::Claim, format!("{kind} {} {word}", change.key.id))
    }

    /// Returns the item of a hypothesis or a belief that was added or removed, or of a gap that was
    /// removed.
    fn added_or_removed(
        &self,
        kind: StoryKind,
        change: &EntryChange,
        description: Option<String>,
    ) -> StoryItem {
        let id = &change.key.id;
        if change.new.is_none() {
            let old = field(&change.old, "description");
            return self.loud(kind, format!("{id} removed"), StoryMark::Plain, old);
        }
        let sure = change.new.as_ref().and_then(|new| number(new, "confidence"));
        let sure = sure.map(|sure| format!(" {sure:.2}"));
        let status = field(&change.new, "status").filter(|status| status != "active");
        let status = status.map(|status| format!(" {}", status.replace('_', " ")));
        let text = format!("{id} new{}{}", status.unwrap_or_default(), sure.unwrap_or_default());
        self.loud(kind, text, StoryMark::New, description)
    }

    /// Returns the id of the evidence that explains a change of the confidence of a hypothesis: the
    /// first evidence about it that this revision adds. `None` if the revision does not change the
    /// confidence, or changes the reason too.
    fn cause(&self, change: &EntryChange) -> Option<&'a str> {
        let (old, new) = both(change)?;
        if change.key.kind != Kind::Hypothesis
            || moved(change.key.kind, old, new).is_none()
            || changed(old, new, "reason").is_some()
        {
            return None;
        }
        let is_cause = |evidence: &&EntryChange| {
            evidence.key.kind == Kind::Evidence
                && evidence.old.is_none()
                && field(&evidence.new, "hypothesis").as_deref() == Some(&change.key.id)
        };
        self.changes.iter().find(is_cause).map(|evidence| evidence.key.id.as_str())
    }

    fn description_of_evidence(&self, id: &str) -> Option<String> {
        let is_it =
            |change: &&EntryChange| change.key.kind == Kind::Evidence && change.key.id == id;
        field(&self.changes.iter().find(is_it)?.new, "description")
    }
}

fn both(change: &EntryChange) -> Option<(&ClaimEntry, &ClaimEntry)> {
    change.old.as_ref().zip(change.new.as_ref())
}

/// Returns the text of a field, which may be empty.
pub(super) fn raw_text<'a>(entry: &'a ClaimEntry, name: &str) -> Option<&'a str> {
    entry.value.field(name)?.as_text()
}

fn text(entry: &ClaimEntry, name: &str) -> Option<String> {
    raw_text(entry, name).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn field(entry: &Option<ClaimEntry>, name: &str) -> Option<String> {
    text(entry.as_ref()?, name)
}

pub(super) fn number(entry: &ClaimEntry, name: &str) -> Option<f64> {
    entry.value.field(name)?.as_f64()
}

fn flag(entry: &ClaimEntry, name: &str) -> bool {
    entry.value.field(name).and_then(crate::model::Value::as_bool).unwrap_or(false)
}

/// Returns the new text of a field; `None` if the text did not change or was removed.
fn changed(old: &ClaimEntry, new: &ClaimEntry, name: &str) -> Option<String> {
    let now = text(new, name)?;
    (text(old, name).as_ref() != Some(&now)).then_some(now)
}

/// Returns the change of a confidence, such as `0.55 → 0.75`, and the mark of its direction; `None`
/// if both confidences are equal when rounded to two digits.
fn moved(kind: Kind, old: &ClaimEntry, new: &ClaimEntry) -> Option<(String, StoryMark)> {
    let now = number(new, "confidence")?;
    let unstated = (kind == Kind::Hypothesis).then_some(PRIOR);
    let shown = |confidence: f64| format!("{confidence:.2}");
    match number(old, "confidence").or(unstated) {
        Some(before) if shown(before) == shown(now) => None,
        Some(before) => {
            let mark = if now > before { StoryMark::Up } else { StoryMark::Down };
            Some((format!("{before:.2} → {now:.2}"), mark))
        }
        None => Some((shown(now), StoryMark::Plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OperationAuthor, OperationId, RevisionId, Timestamp, Value};

    fn entry(fields: &[(&str, Value)]) -> ClaimEntry {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        ClaimEntry { added_at: Timestamp::from_micros(0), value: Value::Map(fields.collect()) }
    }

    fn change(
        kind: Kind,
        id: &str,
        old: Option<&[(&str, Value)]>,
        new: Option<&[(&str, Value)]>,
    ) -> EntryChange {
        EntryChange { key: Key::new(kind, id), old: old.map(entry), new: new.map(entry) }
    }

    fn shown_items(changes: &[EntryChange]) -> Vec<String> {
        let revision = LogEntry {
            sequence: 4,
            id: RevisionId::from_bytes([0; 32]),
            time: Timestamp::from_micros(0),
            branch: "main".to_owned(),
            verb: "test".to_owned(),
            author: OperationAuthor::default(),
            operation: OperationId::from_bytes([0; 16]),
            reset_to: None,
            merged: None,
            claims: 0,
        };
        let shown = |item: StoryItem| {
            let loud = if item.loud { "" } else { "(quiet) " };
            let detail = item.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            format!("{loud}{:?} {}{detail}", item.mark, item.text)
        };
        claim_items(&revision, changes).into_iter().map(shown).collect()
    }

    const SAYS: (&str, &str) = ("description", "the cache is stale");

    fn says() -> (&'static str, Value) {
        (SAYS.0, SAYS.1.into())
    }

    #[test]
    fn the_item_of_a_hypothesis_has_its_id_and_the_reason() {
        let at = |sure: f64, status: &str| {
            vec![says(), ("confidence", sure.into()), ("status", status.into())]
        };
        let confirmed =
            [at(0.98, "confirmed"), vec![("reason", "reproduced at will".into())]].concat();
        let confirmed_again = confirmed.clone();
        for (old, new, expected) in [
            (None, Some(at(0.6, "active")), "New H4 new 0.60: the cache is stale"),
            (
                Some(at(0.97, "under_test")),
                Some(confirmed),
                "Good H4 confirmed 0.97 → 0.98: reproduced at will",
            ),
            (
                Some(at(0.5, "active")),
                Some(at(0.3, "under_test")),
                "Down H4 under test 0.50 → 0.30: the cache is stale",
            ),
            (
                Some(at(0.5, "active")),
                Some(at(0.75, "active")),
                "Up H4 0.50 → 0.75: the cache is stale",
            ),
            (
                Some(at(0.3, "active")),
                Some(at(0.3, "rejected")),
                "Bad H4 rejected: the cache is stale",
            ),
            (Some(at(0.3, "active")), None, "Plain H4 removed: the cache is stale"),
            (Some(at(0.3, "active")), Some(at(0.301, "active")), "(quiet) Plain H4 changed"),
            (
                Some(at(0.98, "confirmed")),
                Some(confirmed_again),
                "Plain H4 has another reason: reproduced at will",
            ),
        ] {
            let changes = [change(Kind::Hypothesis, "H4", old.as_deref(), new.as_deref())];
            assert_eq!(shown_items(&changes), [expected]);
        }
    }

    #[test]
    fn evidence_is_shown_as_the_cause_of_a_change_or_as_a_separate_item() {
        let evidence = |id: &str, strength: f64| {
            let fields = [
                ("description", format!("seen {id}").into()),
                ("hypothesis", "H1".into()),
                ("strength", strength.into()),
            ];
            change(Kind::Evidence, id, None, Some(&fields))
        };
        let moved = change(
            Kind::Hypothesis,
            "H1",
            Some(&[says(), ("confidence", 0.55.into())]),
            Some(&[says(), ("confidence", 0.75.into())]),
        );
        assert_eq!(
            shown_items(&[moved, evidence("E1", 0.7), evidence("E2", 0.2)]),
            ["Up H1 0.55 → 0.75: seen E1", "New E2 for H1 0.20: seen E2"]
        );
        assert_eq!(shown_items(&[evidence("E3", -0.5)]), ["New E3 against H1 0.50: seen E3"]);
        // Regression: the first evidence for a hypothesis without a stated confidence had no mark.
        let first = change(
            Kind::Hypothesis,
            "H1",
            Some(&[says()]),
            Some(&[says(), ("confidence", 0.25.into())]),
        );
        let shown = shown_items(&[first, evidence("E1", -0.5)]);
        assert_eq!(shown, ["Down H1 0.50 → 0.25: seen E1"]);
    }

    #[test]
    fn the_items_of_beliefs_gaps_and_notes_have_their_ids() {
        let doubt = [says(), ("in_doubt", true.into()), ("doubt_reason", "H3 was rejected".into())];
        let filled = [says(), ("status", "filled".into()), ("resolution", "Yes: 1.8 s".into())];
        for (kind, id, old, new, expected) in [
            (
                Kind::Belief,
                "B1",
                None,
                &[says(), ("confidence", 1.0.into())][..],
                "New B1 new 1.00: the cache is stale",
            ),
            (
                Kind::Belief,
                "B1",
                Some(&[says()][..]),
                &doubt[..],
                "Bad B1 in doubt: H3 was rejected",
            ),
            (
                Kind::Belief,
                "B1",
                Some(&doubt[..]),
                &[says()][..],
                "Plain B1 no longer in doubt: the cache is stale",
            ),
            (
                Kind::Belief,
                "B1",
                Some(&[][..]),
                &[says()][..],
                "Plain B1 reworded: the cache is stale",
            ),
            (Kind::Gap, "G1", None, &[says()][..], "Open G1 open: the cache is stale"),
            (Kind::Gap, "G1", Some(&[says()][..]), &filled[..], "Good G1 filled: Yes: 1.8 s"),
            (
                Kind::Gap,
                "G1",
                Some(&[says()][..]),
                &[says(), ("status", "filling".into())][..],
                "(quiet) Plain G1 filling",
            ),
            (
                Kind::Gap,
                "G1",
                Some(&filled[..]),
                &[says(), ("status", "open".into()), ("resolution", "Yes: 1.8 s".into())][..],
                "Open G1 open: the cache is stale",
            ),
            (Kind::Note, "N1", None, &[says()][..], "New N1: the cache is stale"),
            (Kind::Dependency, "B1->B2", None, &[][..], "(quiet) Plain dependency B1->B2 added"),
        ] {
            assert_eq!(shown_items(&[change(kind, id, old, Some(new))]), [expected]);
        }
    }
}
