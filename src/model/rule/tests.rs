//! The effects of each rule, case by case. Laws over any state are in `laws`.

mod laws;

use super::*;
use crate::model::claim::{Confidence, Strength};
use std::collections::BTreeMap;

type State = BTreeMap<Key, Value>;

impl ClaimLookup for State {
    fn claim(&self, key: &Key) -> Option<Value> {
        self.get(key).cloned()
    }

    fn all(&self, kind: Kind) -> Vec<(String, Value)> {
        self.range(Key::new(kind, "")..)
            .take_while(|(key, _)| key.kind == kind)
            .map(|(key, value)| (key.id.clone(), value.clone()))
            .collect()
    }
}

/// Builds a state from lines of kind, id and JSON fields.
fn state(claims: &[(Kind, &str, &str)]) -> State {
    let claim = |&(kind, id, fields): &(Kind, &str, &str)| {
        let value = claim::check(kind, &serde_json::from_str(fields).unwrap()).unwrap();
        (Key::new(kind, id), value)
    };
    claims.iter().map(claim).collect()
}

fn apply(state: &mut State, outcome: &RuleOutcome) {
    state.extend(outcome.changes.iter().cloned());
}

fn field<'a>(state: &'a State, kind: Kind, id: &str, name: &str) -> &'a Value {
    state[&Key::new(kind, id)].field(name).unwrap_or(&Value::Null)
}

fn changed(outcome: &RuleOutcome) -> Vec<String> {
    outcome.changes.iter().map(|(key, _)| key.to_string()).collect()
}

fn link(from: &str, to: &str, dependency_type: &str) -> Dependency {
    Dependency {
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
        dependency_type: Some(dependency_type.parse().unwrap()),
        ..Dependency::default()
    }
}

fn grown() -> State {
    state(&[
        (Kind::Hypothesis, "H1", r#"{"status": "active", "confidence": 0.6}"#),
        (Kind::Hypothesis, "H2", r#"{"parent": "H1"}"#),
        (Kind::Hypothesis, "H3", r#"{"parent": "H2", "status": "confirmed"}"#),
        (Kind::Hypothesis, "H4", r#"{"parent": "H1", "status": "archived"}"#),
        (Kind::Hypothesis, "H9", r#"{"status": "active"}"#),
        (Kind::Evidence, "e1", r#"{"hypothesis": "H3", "strength": 0.5}"#),
        (Kind::Evidence, "e2", r#"{"hypothesis": "H3", "strength": -0.5}"#),
        (Kind::Evidence, "e9", r#"{"hypothesis": "H9", "strength": 1}"#),
        (Kind::Belief, "by-field", r#"{"hypothesis": "H2", "x": [1]}"#),
        (Kind::Belief, "by-source", r#"{"source": "H1"}"#),
        (Kind::Belief, "by-evidence", r#"{"evidence": ["e9", "e1"]}"#),
        (Kind::Belief, "by-counter-evidence", r#"{"evidence": ["e2"]}"#),
        (Kind::Belief, "by-belief", "{}"),
        (Kind::Belief, "supported", "{}"),
        (Kind::Belief, "contradicted", "{}"),
        (Kind::Belief, "of-archived", r#"{"hypothesis": "H4"}"#),
        (Kind::Belief, "other", r#"{"hypothesis": "H9"}"#),
        (Kind::Dependency, "1", r#"{"from": "by-belief", "to": "by-field"}"#),
        (Kind::Dependency, "2", r#"{"from": "by-belief", "to": "supported", "type": "supports"}"#),
        (
            Kind::Dependency,
            "3",
            r#"{"from": "contradicted", "to": "by-field", "type": "contradicts"}"#,
        ),
    ])
}

#[test]
fn rejecting_a_hypothesis_rejects_its_descendants_and_puts_dependent_beliefs_in_doubt() {
    let mut state = grown();
    let outcome = reject_hypothesis(&state, "H1", Some("it was the cache")).unwrap();
    assert_eq!(
        changed(&outcome),
        [
            "hypothesis H1", "hypothesis H2", "hypothesis H3", "belief by-belief",
            "belief by-evidence", "belief by-field", "belief by-source", "belief supported",
        ]
    );
    assert_eq!(outcome.trigger, Some(AutoTrigger::HypothesisStatusChange));
    assert_eq!(outcome.tag, Some("hypothesis_rejected"));
    apply(&mut state, &outcome);
    for (kind, id, name, value) in [
        (Kind::Hypothesis, "H1", "reason", "it was the cache"),
        (Kind::Hypothesis, "H3", "reason", "parent H2 was rejected"),
        (Kind::Hypothesis, "H3", "status", "rejected"),
        (Kind::Belief, "by-field", "doubt_reason", "hypothesis H2 was rejected"),
        (Kind::Belief, "by-evidence", "doubt_reason", "hypothesis H3 was rejected"),
        (
            Kind::Belief,
            "supported",
            "doubt_reason",
            "rests on belief by-belief: hypothesis H2 was rejected",
        ),
    ] {
        assert_eq!(field(&state, kind, id, name), &Value::from(value));
    }
    assert_eq!(field(&state, Kind::Belief, "by-field", "x"), &vec![1i64].into());
    assert_eq!(field(&state, Kind::Hypothesis, "H1", "confidence"), &0.6.into());

    let again = reject_hypothesis(&state, "H1", Some("it was the cache")).unwrap();
    assert_eq!(again, RuleOutcome::default());
}

#[test]
fn confirm_changes_status_and_reason_and_reports_a_rejected_parent() {
    let mut state = grown();
    let outcome = confirm_hypothesis(&state, "H2", Some("seen")).unwrap();
    assert_eq!(changed(&outcome), ["hypothesis H2"]);
    assert_eq!(outcome.trigger, Some(AutoTrigger::HypothesisStatusChange));
    assert_eq!(outcome.contradiction, None);
    apply(&mut state, &outcome);
    assert_eq!(confirm_hypothesis(&state, "H2", None).unwrap(), RuleOutcome::default());

    let rejected = reject_hypothesis(&state, "H1", None).unwrap();
    apply(&mut state, &rejected);
    let outcome = confirm_hypothesis(&state, "H2", None).unwrap();
    assert_eq!(
        outcome.contradiction.as_deref(),
        Some("hypothesis H2 is confirmed and its parent H1 is rejected")
    );
}

#[test]
fn evidence_multiplies_the_odds_by_nine_to_the_power_of_its_strength() {
    for (prior, strength, expected) in [
        (0.5, 1.0, 0.9),
        (0.5, -1.0, 0.1),
        (0.5, 0.5, 0.75),
        (0.9, -1.0, 0.5),
        (0.9, 1.0, 81.0 / 82.0),
        (0.99, 1.0, 0.99),
        (1.0, 1.0, 1.0),
        (1.0, -1.0, 11.0 / 12.0),
        (0.0, -0.3, 0.0),
        (0.7, 0.0, 0.7),
    ] {
        let moved = posterior(Confidence::new(prior).unwrap(), Strength::new(strength).unwrap());
        assert!((moved.value() - expected).abs() < 1e-12, "{prior} {strength}: {moved:?}");
    }
}

#[test]
fn add_evidence_stores_it_and_moves_its_hypothesis_only() {
    let state = grown();
    let value = Value::from([("hypothesis", "H9".into()), ("strength", 1.0.into())]);
    let outcome = add_evidence(&state, "e3", &value).unwrap();
    assert_eq!(changed(&outcome), ["hypothesis H9", "evidence e3"]);
    assert_eq!(outcome.trigger, None);
    let confidence = outcome.changes[0].1.field("confidence").unwrap().as_f64().unwrap();
    assert!((confidence - 0.9).abs() < 1e-12);

    let silent = Value::from([("hypothesis", "H9".into())]);
    assert_eq!(changed(&add_evidence(&state, "e3", &silent).unwrap()), ["evidence e3"]);
}

#[test]
fn evidence_against_a_decided_hypothesis_is_reported_and_changes_no_status() {
    let mut state = grown();
    let against = Value::from([("hypothesis", "H3".into()), ("strength", (-0.2).into())]);
    let outcome = add_evidence(&state, "e3", &against).unwrap();
    assert_eq!(
        outcome.contradiction.as_deref(),
        Some("evidence e3 speaks against hypothesis H3, which is confirmed")
    );
    assert_eq!(outcome.trigger, Some(AutoTrigger::NewContradictionDetected));
    apply(&mut state, &outcome);
    assert_eq!(field(&state, Kind::Hypothesis, "H3", "status"), &"confirmed".into());

    let rejected = reject_hypothesis(&state, "H9", None).unwrap();
    apply(&mut state, &rejected);
    let favourable = Value::from([("hypothesis", "H9".into()), ("strength", 0.2.into())]);
    let outcome = add_evidence(&state, "e4", &favourable).unwrap();
    assert_eq!(
        outcome.contradiction.as_deref(),
        Some("evidence e4 speaks for hypothesis H9, which is rejected")
    );
}

#[test]
fn a_verb_about_a_missing_or_an_existing_claim_is_refused() {
    let state = grown();
    let message = |error: RuleError| error.to_string();
    assert_eq!(
        message(reject_hypothesis(&state, "H7", None).unwrap_err()),
        "no hypothesis 'H7': list those there are, or add it first"
    );
    let stray = Value::from([("hypothesis", "H7".into())]);
    assert!(matches!(add_evidence(&state, "e3", &stray), Err(RuleError::NotFound(_))));
    assert_eq!(
        message(add_evidence(&state, "e1", &Value::from([])).unwrap_err()),
        "evidence 'e1' is there already: choose another id or update it"
    );
    let strong = Value::from([("strength", 2.0.into())]);
    assert!(matches!(add_evidence(&state, "e3", &strong), Err(RuleError::InvalidField(_))));
    assert!(matches!(add_evidence(&state, "", &stray), Err(RuleError::InvalidId(_))));
    assert!(matches!(fill_gap(&state, "g1", None), Err(RuleError::NotFound(_))));
    assert!(matches!(
        add_dependency(&state, &link("other", "nobody", "requires")),
        Err(RuleError::NotFound(_))
    ));
    assert_eq!(add_dependency(&state, &Dependency::default()), Err(RuleError::NoEnds));
}

#[test]
fn contradicted_beliefs_are_both_in_doubt_and_keep_their_confidence() {
    let mut state = state(&[
        (Kind::Belief, "a", r#"{"confidence": 0.8, "in_doubt": true, "doubt_reason": "old"}"#),
        (Kind::Belief, "b", r#"{"confidence": 0.3}"#),
        (Kind::Belief, "c", "{}"),
    ]);
    let rests = add_dependency(&state, &link("a", "b", "requires")).unwrap();
    apply(&mut state, &rests);
    let outcome = contradict_beliefs(&state, "a", "b", Some("the log says so")).unwrap();
    // `a->b` is the id of the other dependency.
    assert_eq!(changed(&outcome), ["belief a", "belief b", "dependency b->a"]);
    assert_eq!(outcome.trigger, Some(AutoTrigger::NewContradictionDetected));
    apply(&mut state, &outcome);
    assert_eq!(
        field(&state, Kind::Belief, "a", "doubt_reason"),
        &"old; contradicts belief b: the log says so".into()
    );
    assert_eq!(field(&state, Kind::Belief, "b", "in_doubt"), &true.into());
    assert_eq!(field(&state, Kind::Belief, "b", "confidence"), &0.3.into());
    for (first, second) in [("a", "b"), ("b", "a")] {
        assert_eq!(
            contradict_beliefs(&state, first, second, None),
            Err(RuleError::AlreadyExists(Key::new(Kind::Dependency, "b->a")))
        );
    }
    assert_eq!(
        contradict_beliefs(&state, "c", "c", None),
        Err(RuleError::OneBelief("c".to_owned()))
    );
    let by_type = add_dependency(&state, &link("c", "a", "contradicts")).unwrap();
    assert_eq!(changed(&by_type), ["belief a", "belief c", "dependency c->a"]);
}

#[test]
fn a_cycle_is_refused_and_named() {
    let mut state: State =
        ["a", "b", "c"].map(|id| (Key::new(Kind::Belief, id), Value::from([]))).into();
    // `b` rests on `a` in the other direction: `a` supports `b`.
    for dependency in [link("b", "c", "derives_from"), link("b", "a", "supports")] {
        let outcome = add_dependency(&state, &dependency).unwrap();
        assert_eq!(outcome.trigger, None);
        apply(&mut state, &outcome);
    }
    let error = add_dependency(&state, &link("c", "a", "requires")).unwrap_err();
    assert_eq!(error.to_string(), "a dependency cycle, c -> a -> b -> c: leave one of these out");
    let itself = add_dependency(&state, &link("a", "a", "assumes")).unwrap_err();
    assert_eq!(itself, RuleError::Cycle(vec!["a".to_owned(), "a".to_owned()]));
    assert!(matches!(
        add_dependency(&state, &link("b", "c", "requires")),
        Err(RuleError::AlreadyExists(_))
    ));
}

#[test]
fn filling_a_filled_gap_changes_nothing() {
    let mut state = state(&[(Kind::Gap, "g1", r#"{"status": "open", "criticality": "high"}"#)]);
    let outcome = fill_gap(&state, "g1", Some("asked")).unwrap();
    assert_eq!(outcome.trigger, Some(AutoTrigger::GapFilled));
    apply(&mut state, &outcome);
    assert_eq!(field(&state, Kind::Gap, "g1", "resolution"), &"asked".into());
    assert_eq!(fill_gap(&state, "g1", None).unwrap(), RuleOutcome::default());
}

#[test]
fn a_change_by_hand_has_the_trigger_of_its_rule() {
    let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (kind, old, new, expected) in [
        (
            Kind::Hypothesis,
            Some("{}"),
            r#"{"status": "confirmed"}"#,
            Some((AutoTrigger::HypothesisStatusChange, Some("hypothesis_confirmed"))),
        ),
        (Kind::Hypothesis, None, r#"{"status": "active"}"#, None),
        (Kind::Hypothesis, Some("{}"), r#"{"confidence": 0.3}"#, None),
        (
            Kind::Gap,
            Some(r#"{"status": "open"}"#),
            r#"{"status": "filled"}"#,
            Some((AutoTrigger::GapFilled, None)),
        ),
        (Kind::Gap, Some(r#"{"status": "open"}"#), r#"{"status": "obsolete"}"#, None),
        (
            Kind::Dependency,
            None,
            r#"{"type": "contradicts"}"#,
            Some((AutoTrigger::NewContradictionDetected, Some("contradiction_detected"))),
        ),
        (
            Kind::Verification,
            None,
            r#"{"status": "failed"}"#,
            Some((AutoTrigger::VerificationComplete, None)),
        ),
        (Kind::Code, None, "{}", Some((AutoTrigger::CodeModified, None))),
        (Kind::Note, None, r#"{"status": "confirmed"}"#, None),
    ] {
        assert_eq!(trigger_of(kind, old.map(value).as_ref(), &value(new)), expected);
    }
}

/// Returns a state with a hypothesis and evidence of these strengths, added in this order.
fn weighed(prior: f64, strengths: &[f64]) -> State {
    let mut state = state(&[(Kind::Hypothesis, "H1", &format!(r#"{{"confidence": {prior}}}"#))]);
    for (number, strength) in (1..).zip(strengths) {
        let value = evidence(*strength);
        let outcome = add_evidence(&state, &format!("E{number}"), &value).unwrap();
        apply(&mut state, &outcome);
    }
    state
}

fn evidence(strength: f64) -> Value {
    Value::from([("hypothesis", "H1".into()), ("strength", strength.into())])
}

fn confidence(state: &State) -> f64 {
    field(state, Kind::Hypothesis, "H1", "confidence").as_f64().unwrap()
}

fn retract(state: &mut State, id: &str) {
    let outcome = retract_evidence(state, id).unwrap();
    assert_eq!(outcome.removed, [Key::new(Kind::Evidence, id)]);
    apply(state, &outcome);
    outcome.removed.iter().for_each(|key| drop(state.remove(key)));
}

#[test]
fn a_retraction_leaves_the_confidence_of_the_other_evidence() {
    for strengths in [&[0.8, -0.3][..], &[-0.5, 0.2, 0.4], &[0.7]] {
        for retracted in 0..strengths.len() {
            let mut state = weighed(0.4, strengths);
            retract(&mut state, &format!("E{}", retracted + 1));
            let mut rest = strengths.to_vec();
            rest.remove(retracted);
            let without = confidence(&weighed(0.4, &rest));
            assert!((confidence(&state) - without).abs() < 1e-12, "{strengths:?} {retracted}");
        }
    }
}

#[test]
fn a_retraction_takes_back_evidence_that_was_limited_by_a_bound_correctly() {
    let mut state = weighed(0.5, &[1.0; 5]);
    assert!((confidence(&state) - MAX_CONFIDENCE).abs() < 1e-12);
    retract(&mut state, "E5");
    assert!((confidence(&state) - MAX_CONFIDENCE).abs() < 1e-12, "four of them are enough");
    let mut state = weighed(0.5, &[-1.0; 5]);
    retract(&mut state, "E1");
    assert!((confidence(&state) - MIN_CONFIDENCE).abs() < 1e-12);
}

#[test]
fn corrected_evidence_counts_as_if_it_had_been_right_from_the_beginning() {
    let mut state = weighed(0.4, &[0.8, 0.3]);
    let outcome = update_evidence(&state, "E1", &evidence(-0.2)).unwrap();
    apply(&mut state, &outcome);
    assert!((confidence(&state) - confidence(&weighed(0.4, &[-0.2, 0.3]))).abs() < 1e-12);
    // A new text alone changes no confidence.
    let mut text = evidence(-0.2);
    if let Value::Map(fields) = &mut text {
        fields.insert("description".to_owned(), "9 lines".into());
    }
    assert_eq!(changed(&update_evidence(&state, "E1", &text).unwrap()), ["evidence E1"]);
    assert!(matches!(update_evidence(&state, "E9", &evidence(0.1)), Err(RuleError::NotFound(_))));
}

#[test]
fn evidence_that_moves_to_another_hypothesis_leaves_the_first() {
    let mut state = weighed(0.4, &[0.8]);
    state.extend(self::state(&[(Kind::Hypothesis, "H2", r#"{"confidence": 0.5}"#)]));
    let moved = Value::from([("hypothesis", "H2".into()), ("strength", 1.0.into())]);
    let outcome = update_evidence(&state, "E1", &moved).unwrap();
    apply(&mut state, &outcome);
    assert!((confidence(&state) - 0.4).abs() < 1e-12);
    let other = field(&state, Kind::Hypothesis, "H2", "confidence").as_f64().unwrap();
    assert!((other - 0.9).abs() < 1e-12);
}

#[test]
fn beliefs_that_rest_on_retracted_evidence_are_in_doubt_and_do_not_name_it() {
    let mut state = grown();
    let outcome = retract_evidence(&state, "e9").unwrap();
    assert_eq!(outcome.removed, [Key::new(Kind::Evidence, "e9")]);
    apply(&mut state, &outcome);
    let reason = field(&state, Kind::Belief, "by-evidence", "doubt_reason");
    assert_eq!(reason.as_text(), Some("evidence e9 was retracted"));
    let rest = field(&state, Kind::Belief, "by-evidence", "evidence");
    assert_eq!(rest, &Value::List(vec!["e1".into()]));
}

#[test]
fn a_retracted_belief_takes_its_dependencies_with_it() {
    let mut state = grown();
    let outcome = retract_belief(&state, "by-field").unwrap();
    let removed: Vec<String> = outcome.removed.iter().map(ToString::to_string).collect();
    assert_eq!(removed, ["belief by-field", "dependency 1", "dependency 3"]);
    apply(&mut state, &outcome);
    let reason = field(&state, Kind::Belief, "by-belief", "doubt_reason");
    assert_eq!(reason.as_text(), Some("belief by-field was retracted"));
    assert_eq!(field(&state, Kind::Belief, "contradicted", "in_doubt"), &Value::Null);
}

#[test]
fn an_outcome_has_a_trigger_only_if_a_claim_changes_or_is_removed() {
    let note = (Key::new(Kind::Note, "N1"), Value::from([("description", "a".into())]));
    let claims = State::from([note.clone()]);
    let passed = Some(AutoTrigger::SignificantTimePassed);
    let retracted = retract_note(&claims, "N1").unwrap().triggered(&claims, |_| passed);
    assert_eq!(retracted.trigger, passed);
    let outcome = RuleOutcome {
        changes: vec![note],
        trigger: Some(AutoTrigger::GapFilled),
        tag: Some("a tag"),
        ..RuleOutcome::default()
    };
    assert_eq!(outcome.triggered(&claims, |_| passed), RuleOutcome::default());
}
