//! Laws of the rules over any state.

use super::super::*;
use super::{State, apply, link};
use crate::model::claim::{Confidence, Strength};
use proptest::prelude::*;

/// Generates hypotheses with any parents (including cycles), beliefs that rest on any of them, and
/// dependencies between any beliefs.
fn any_state() -> impl Strategy<Value = State> {
    let parent = prop::option::of(0..6usize);
    let status = prop::sample::select(vec!["active", "confirmed", "rejected", "archived"]);
    let hypotheses = prop::collection::vec((parent, status), 6);
    let beliefs = prop::collection::vec(prop::option::of(0..6usize), 5);
    let dependencies = prop::collection::vec((0..5usize, 0..5usize, any::<bool>()), 0..8);
    (hypotheses, beliefs, dependencies).prop_map(|(hypotheses, beliefs, dependencies)| {
        let mut state = State::new();
        for (id, (parent, status)) in hypotheses.into_iter().enumerate() {
            let parent = parent.map(|parent| format!("H{parent}"));
            let value = Value::from([("parent", parent.into()), ("status", status.into())]);
            state.insert(Key::new(Kind::Hypothesis, format!("H{id}")), value);
        }
        for (id, hypothesis) in beliefs.into_iter().enumerate() {
            let hypothesis = hypothesis.map(|id| format!("H{id}"));
            let value = Value::from([("hypothesis", hypothesis.into())]);
            state.insert(Key::new(Kind::Belief, format!("b{id}")), value);
        }
        for (from, to, supports) in dependencies {
            let (from, to) = (format!("b{from}"), format!("b{to}"));
            let mut dependency = link(&from, &to, "requires");
            if supports {
                dependency = link(&from, &to, "supports");
            }
            let key = Key::new(Kind::Dependency, Dependency::id(&from, &to));
            state.insert(key, dependency.to_value());
        }
        state
    })
}

/// Returns whether a belief rests on itself. Kahn's algorithm: repeatedly removes the edges to
/// beliefs that rest on nothing, until nothing changes.
fn has_cycle(state: &State) -> bool {
    let mut edges: Vec<(String, String)> = dependencies(state)
        .iter()
        .filter_map(Dependency::rests_on)
        .map(|(rests, ground)| (rests.to_owned(), ground.to_owned()))
        .collect();
    loop {
        let before = edges.len();
        let standing = edges.clone();
        edges.retain(|(_, ground)| standing.iter().any(|(rests, _)| rests == ground));
        if edges.len() == before {
            return before > 0;
        }
    }
}

proptest! {
    #[test]
    fn rejecting_a_rejected_hypothesis_changes_nothing(mut state in any_state()) {
        let outcome = reject_hypothesis(&state, "H0", Some("why")).unwrap();
        apply(&mut state, &outcome);
        prop_assert_eq!(reject_hypothesis(&state, "H0", Some("why")).unwrap(), RuleOutcome::default());
        for (_, value) in state.all(Kind::Hypothesis) {
            if text(&value, "parent") == Some("H0") {
                prop_assert!(matches!(text(&value, "status"), Some("rejected" | "archived")));
            }
        }
        // A belief that rests on one in doubt is in doubt too, because no belief was in doubt
        // before.
        for dependency in dependencies(&state) {
            let (rests, ground) = dependency.rests_on().unwrap();
            let doubt = |id: &str| in_doubt(&state[&Key::new(Kind::Belief, id)]);
            prop_assert!(!doubt(ground) || doubt(rests));
        }
    }

    #[test]
    fn confidence_stays_in_range_and_moves_the_way_of_the_evidence(
        prior in 0.0..=1.0f64,
        strength in -1.0..=1.0f64,
    ) {
        let strength = Strength::new(strength).unwrap();
        let moved = posterior(Confidence::new(prior).unwrap(), strength).value();
        prop_assert!((0.0..=1.0).contains(&moved));
        prop_assert!((moved - prior) * strength.value() >= 0.0);
    }

    #[test]
    fn the_order_of_evidence_does_not_matter_while_no_bound_is_met(
        prior in 0.2..0.8f64,
        strengths in prop::collection::vec(-0.4..0.4f64, 0..4),
        turn in 0..4usize,
    ) {
        let after = |strengths: &[f64]| {
            strengths.iter().fold(Confidence::new(prior).unwrap(), |confidence, strength| {
                posterior(confidence, Strength::new(*strength).unwrap())
            })
        };
        let mut turned = strengths.clone();
        turned.reverse();
        turned.rotate_left(turn.min(strengths.len()));
        let (one, other) = (after(&strengths).value(), after(&turned).value());
        prop_assert!((one - other).abs() < 1e-9, "{one} {other}");
    }

    #[test]
    fn a_dependency_is_refused_as_a_cycle_exactly_when_it_closes_one(
        links in prop::collection::vec((0..5usize, 0..5usize, any::<bool>()), 1..14)
    ) {
        let mut state: State = (0..5)
            .map(|id| (Key::new(Kind::Belief, format!("b{id}")), Value::from([])))
            .collect();
        for (from, to, supports) in links {
            let (from, to) = (format!("b{from}"), format!("b{to}"));
            let dependency = link(&from, &to, if supports { "supports" } else { "requires" });
            let key = Key::new(Kind::Dependency, Dependency::id(&from, &to));
            let mut with_it = state.clone();
            with_it.insert(key, dependency.to_value());
            match add_dependency(&state, &dependency) {
                Ok(outcome) => {
                    apply(&mut state, &outcome);
                    prop_assert!(!has_cycle(&state));
                }
                Err(RuleError::Cycle(way)) => {
                    prop_assert!(has_cycle(&with_it));
                    prop_assert_eq!(way.first(), way.last());
                    for step in way.windows(2) {
                        let step = Some((&*step[0], &*step[1]));
                        prop_assert!(
                            dependencies(&with_it).iter().any(|found| found.rests_on() == step)
                        );
                    }
                }
                Err(RuleError::AlreadyExists(key)) => prop_assert!(state.contains_key(&key)),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
