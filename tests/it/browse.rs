//! Reads the history in pages: for every page size, nothing is missing and nothing is repeated.

use forge_store::error::Error;
use forge_store::model::{Fact, FactOrigin, Kind, Timestamp, Value};
use forge_store::store::{
    ACTIVITY_LIMIT, HistoryPosition, HistoryRank, NewSession, PageDirection, PageItem,
    PageItemContent, PageKinds, Session, Store, WriteContext,
};
use forge_testkit::example;

const ALL: PageKinds = PageKinds { revisions: true, checkpoints: true, facts: true };

fn session() -> Session {
    example::fill(&Store::in_memory().expect("a store")).expect("the example")
}

/// Reads the whole history, page by page.
fn walk(session: &Session, way: PageDirection, limit: usize) -> Vec<PageItem> {
    let (mut items, mut from) = (Vec::new(), None);
    loop {
        let page = session.history_page(ALL, None, from, way, limit).expect("a page");
        assert!(page.items.len() <= limit);
        items.extend(page.items);
        match page.next {
            Some(next) => from = Some(next),
            None => return items,
        }
    }
}

#[test]
fn pages_of_any_size_and_direction_give_the_same_history() {
    let session = session();
    let whole = walk(&session, PageDirection::Newer, 10_000);
    assert!(whole.windows(2).all(|pair| pair[0].place < pair[1].place));
    let summary = session.summary().unwrap();
    assert_eq!(whole.len() as u64, summary.last_sequence + summary.facts);
    for limit in [1, 2, 7, 64] {
        assert!(walk(&session, PageDirection::Newer, limit) == whole, "{limit}");
        let mut back = walk(&session, PageDirection::Older, limit);
        back.reverse();
        assert!(back == whole, "{limit}");
    }
}

#[test]
fn a_page_begins_after_its_position_and_may_be_limited_to_a_branch() {
    let session = session();
    let whole = walk(&session, PageDirection::Newer, 10_000);
    let middle = whole[40].place;
    let page = session.history_page(ALL, None, Some(middle), PageDirection::Newer, 3).unwrap();
    assert_eq!(page.items, whole[41..44]);
    let page = session.history_page(ALL, None, Some(middle), PageDirection::Older, 3).unwrap();
    let before: Vec<_> = whole[37..40].iter().rev().cloned().collect();
    assert_eq!(page.items, before);
    let kinds = PageKinds { facts: false, ..ALL };
    let page =
        session.history_page(kinds, Some("dedup-cache"), None, PageDirection::Older, 500).unwrap();
    assert!(!page.items.is_empty());
    assert!(page.items.iter().all(|item| item.branch == "dedup-cache"));
}

/// Regression: a page without revisions, of a branch that does not exist, was empty.
#[test]
fn a_page_of_a_branch_that_does_not_exist_is_an_error() {
    let session = session();
    for revisions in [true, false] {
        let kinds = PageKinds { revisions, ..ALL };
        let page = session.history_page(kinds, Some("nowhere"), None, PageDirection::Older, 5);
        assert!(matches!(page, Err(Error::NotFound { .. })), "{page:?}");
    }
}

#[test]
fn a_revision_has_its_changes_and_activity_counts_everything_once() {
    let session = session();
    let whole = walk(&session, PageDirection::Newer, 10_000);
    let changed = whole.iter().filter_map(|item| match &item.content {
        PageItemContent::Revision { changes, .. } => Some(changes.len()),
        _ => None,
    });
    assert!(changed.min() >= Some(1));
    let summary = session.summary().unwrap();
    let (first, last) = (summary.first_event.unwrap(), summary.last_event.unwrap());
    let activity = session.activity(first, last, 37).unwrap();
    assert_eq!(activity.counts.len(), 37);
    assert!(activity.counts.iter().all(|count| *count < ACTIVITY_LIMIT));
    assert_eq!(activity.counts.iter().sum::<u32>() as usize, whole.len());
    assert_eq!(activity.compactions.len(), 1);
    assert!(!activity.failures.is_empty() && !activity.passes.is_empty());
    let one = session.activity(first, last, 1).unwrap();
    assert_eq!(one.counts, [ACTIVITY_LIMIT.min(whole.len() as u32)]);
}

/// Regression: the activity of a part of the time had the failures and passes before it, too.
#[test]
fn activity_of_a_period_has_no_earlier_failures_and_passes() {
    let session = session();
    let summary = session.summary().unwrap();
    let (first, last) = (summary.first_event.unwrap(), summary.last_event.unwrap());
    let whole = session.activity(first, last, 1).unwrap();
    let from = whole.failures.iter().chain(&whole.passes).max().unwrap().plus_micros(1);
    let after = session.activity(from, last.max(from), 1).unwrap();
    assert!(after.failures.is_empty() && after.passes.is_empty(), "{after:?}");
}

#[test]
fn the_newest_facts_are_those_of_the_state() {
    let session = session();
    let moment =
        session.at_time(Timestamp::parse_rfc3339("2025-03-11T10:30:00Z").unwrap()).unwrap();
    let state = session.state(&moment).unwrap();
    for kind in Kind::facts() {
        let mut recent = session.recent_facts(&moment, kind, 1000).unwrap();
        recent.sort_by(|a, b| (a.fact.at, &a.fact.id).cmp(&(b.fact.at, &b.fact.id)));
        assert_eq!(recent, state.facts_of(kind).unwrap(), "{kind}");
    }
    assert_eq!(session.recent_facts(&moment, Kind::Command, 2).unwrap().len(), 2);
}

#[test]
fn each_branch_line_begins_at_a_revision_of_another_branch() {
    let session = session();
    let lines = session.branch_lines().unwrap();
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["main", "dedup-cache", "monotonic-lease"]);
    assert_eq!(lines[0].base, None);
    for line in &lines[1..] {
        let Some((on, Some(base))) = &line.base else { panic!("{line:?}") };
        assert_eq!(on, "main");
        assert!(line.head.unwrap() > *base);
    }
    let head = session.position_of(&session.head().unwrap()).unwrap();
    let last = session.summary().unwrap().last_event.unwrap();
    assert_eq!(head, Some(HistoryPosition { time: last, rank: HistoryRank::Sequence(u64::MAX) }));
}

fn command(origin: FactOrigin, seconds: i64, place: u64, text: &str) -> Fact {
    let at = Timestamp::from_micros(1_741_683_850_000_000 + seconds * 1_000_000);
    Fact {
        kind: Kind::Command,
        id: "call-1".to_owned(),
        at,
        origin,
        place,
        recorded_at: at,
        value: Value::from([("command", text.into()), ("exit_code", 0_i64.into())]),
    }
}

/// Regression: a hook and the transcript report the same call. The page showed it twice, the state
/// once.
#[test]
fn a_fact_of_a_hook_and_another_source_is_listed_once() {
    let session = Store::in_memory().unwrap();
    let now = Timestamp::from_micros(1_741_683_840_000_000);
    let session = session
        .create_session(&WriteContext::asked("session new", now), NewSession::named("calls"))
        .expect("a session");
    let add = |fact: Fact| {
        session
            .write(&WriteContext::asked("import", fact.at))
            .fact(fact)
            .commit()
            .expect("a commit");
    };
    add(command(FactOrigin::Hook, 3, 0, "by the hook"));
    assert_eq!(walk(&session, PageDirection::Older, 10).len(), 1);
    add(command(FactOrigin::Recorded, 2, 0, "as recorded"));
    let commands_of = |items: Vec<PageItem>| -> Vec<String> {
        let text = |item: PageItem| match item.content {
            PageItemContent::Fact(known) => known.fact.value.field("command").cloned(),
            _ => None,
        };
        items.into_iter().map(|item| format!("{:?}", text(item))).collect()
    };
    for way in [PageDirection::Older, PageDirection::Newer] {
        let found = commands_of(walk(&session, way, 10));
        assert!(found.len() == 1 && found[0].contains("as recorded"), "{found:?}");
    }
    // A later version with the same time and place replaces the earlier one.
    let mut again = command(FactOrigin::Recorded, 2, 0, "as corrected");
    again.recorded_at = again.recorded_at.plus_micros(60_000_000);
    add(again);
    for way in [PageDirection::Older, PageDirection::Newer] {
        let found = commands_of(walk(&session, way, 10));
        assert!(found.len() == 1 && found[0].contains("as corrected"), "{found:?}");
    }
}
