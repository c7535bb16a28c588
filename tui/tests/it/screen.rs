//! Every screen at several sizes, from keys written as text.

use crate::hand::{Hand, at};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Store, WriteContext};
use forge_tui::action::BrowserAction;
use insta::assert_snapshot;

#[test]
fn the_timeline_opens_on_the_head_with_the_state_beside_it() {
    assert_snapshot!(Hand::on_example(120, 30).screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    >  ○ ★    1 h 03-11 12:11:00 the head of monotonic-lease: 48 clai…│HEAD (claims of #87)  2025-03-11 12:11:00 +00:00, 1 …
       ◇      1 h 03-11 12:11:00 Fix committed  [commit]  code modifi…│[hypotheses 6] evidence 12 beliefs 9 gaps 6 notes 7 …
       ◇      1 h 03-11 12:07:00 All tests pass, old workers too  [ve…│ H4 █████ 0.98 (confirmed) The lease's deadline is c…
       ◇      1 h 03-11 11:50:00 The fix holds at every difference of…│ H6 █████ 0.95 (confirmed) A new field for the durat…
     C │ ★    1 h 03-11 11:24:00 Before compaction: cause confirmed, …│ H1 ░░░░░ 0.04 (rejected) The acknowledgement of wor…
     ◇─╯ •    2 h 03-11 11:10:30 Confirmed: one deadline, two clocks …│ H2 ░░░░░ 0.05 (rejected) The test sleeps too short …
     ◇   •    2 h 03-11 10:57:00 The delay follows the difference of …│ H3 ░░░░░ 0.03 (rejected) The bounded memory of ackn…
     ◆   ★    2 h 03-11 10:46:00 Reproduced: a worker 1.8 s behind fa…│ H5 ███░░ 0.65 (archived) A runner's clock runs away…
     ◇        2 h 03-11 10:21:30 The runners' clocks are 1.8 s apart …│
     ◆   ★    3 h 03-11 10:11:00 A new suspect: one deadline, two clo…│
     │ ◇ •    3 h 03-11 09:56:00 The memory of acknowledged orders ne…│
     ◆ │ ★    3 h 03-11 09:36:00 Suspects before the detour: lost ack…│
     ◇─╯ •    3 h 03-11 09:27:40 The test's own sleeps are not it  st…│
     ◆   ★    4 h 03-11 09:11:00 Three failed runs read; two suspects…│
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
                                                                      │
    ▃▁▁▂▃···▃···▁▂▂▁·▂▃▁▁▁··▁·▃····▁▃▂▂··▁▁▃·▃▃·▁····▃·▁▂····▃···▁··▄▁▂····▃▁···▃···▂▁·▁▂·▁▁·▁▁▂·····▁▁·▂·▁·▂·▃···▃···▁·▃▁·▃
                                                                    ✗                        C         ✗         ✗         ^
    2025-03-11 09:04 to 2025-03-11 12:11  ▁▄█ activity  · idle (longest about 7 min 47 s)  C compaction  ✗ failed  ^ here
    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff  c charts  s sessions
    ");
}

#[test]
fn a_narrow_window_shows_one_side_at_a_time() {
    let mut hand = Hand::on_example(60, 16);
    assert_snapshot!(hand.screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ●…
    >  ○ ★    1 h 12:11 the head of monotonic-lease: 48 claims …
       ◇      1 h 12:11 Fix committed  [commit]  code modified
       ◇      1 h 12:07 All tests pass, old workers too  [verif…
       ◇      1 h 11:50 The fix holds at every difference of cl…
     C │ ★    1 h 11:24 Before compaction: cause confirmed, fix…
     ◇─╯ •    2 h 11:10 Confirmed: one deadline, two clocks  [c…
     ◇   •    2 h 10:57 The delay follows the difference of the…
     ◆   ★    2 h 10:46 Reproduced: a worker 1.8 s behind fails…
     ◇        2 h 10:21 The runners' clocks are 1.8 s apart  ga…
     ◆   ★    3 h 10:11 A new suspect: one deadline, two clocks…
     │ ◇ •    3 h 09:56 The memory of acknowledged orders never…
    ▃▂▃·▃·▃▃▂▃▂·▁▃·▁▃▂▁▃▃▃▁·▃▁▂·▃·▁·▄▂·▃▁·▃·▂▁▂▂▁▂··▁▁▂▁▂▃·▃·▁▃▃
                                   ✗            C    ✗    ✗    ^
    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open  <tab> other side  / search
    ");
    assert_snapshot!(hand.press("j j <tab>").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
    #88 (claims of #87)  2025-03-11 12:07:00 +00:00, 1 h ago  o…
    [hypotheses 6] evidence 12 beliefs 9 gaps 6 notes 7 verific…
     H4 █████ 0.98 (confirmed) The lease's deadline is computed…
     H6 █████ 0.95 (confirmed) A new field for the duration, wi…
     H1 ░░░░░ 0.04 (rejected) The acknowledgement of worker 1 i…
     H2 ░░░░░ 0.05 (rejected) The test sleeps too short on a bu…
     H3 ░░░░░ 0.03 (rejected) The bounded memory of acknowledge…
     H5 ███░░ 0.65 (archived) A runner's clock runs away while …



    ▃▂▃·▃·▃▃▂▃▂·▁▃·▁▃▂▁▃▃▃▁·▃▁▂·▃·▁·▄▂·▃▁·▃·▂▁▂▂▁▂··▁▁▂▁▂▃·▃·▁▃▃
                                   ✗            C    ✗    ✗  ^
    $ forge checkpoint at '#88'
    ? help  <esc> back  <enter> open  <tab> other side  / search
    ");
}

#[test]
fn a_tiny_window_still_shows_the_position() {
    assert_snapshot!(Hand::on_example(20, 5).press("j").screen(), @"
    example  on monoton…
       ○ ★the head of m…
    >  ◇  Fix committed…
    $ forge checkpoint …
    ? help  <esc> back
    ");
}

#[test]
fn the_toggle_shows_every_revision_and_then_every_fact() {
    let mut hand = Hand::on_example(100, 14);
    assert_snapshot!(hand.press("v").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    >  ○ ★    1 h 12:11 the head of monotonic-lease: 48 cl…│HEAD (claims of #87)  2025-03-11 12:11:00 +…
       ◇      1 h 12:11 Fix committed  [commit]  code modi…│[hypotheses 6] evidence 12 beliefs 9 gaps 6
       ◇      1 h 12:07 All tests pass, old workers too  […│ H4 █████ 0.98 (confirmed) The lease's dead…
       ! •    1 h 12:06 hypothesis H5 is archived now: lik…│ H6 █████ 0.95 (confirmed) A new field for …
       ! •    1 h 12:06 hypothesis H6 is confirmed now: th…│ H1 ░░░░░ 0.04 (rejected) The acknowledgeme…
       ! •    1 h 12:06 gap G6 is filled now: They do: fie…│ H2 ░░░░░ 0.05 (rejected) The test sleeps t…
       ! •    1 h 11:56 gap G6 is filling now  import      │ H3 ░░░░░ 0.03 (rejected) The bounded memor…
       •      1 h 11:56 + hypothesis H6: A new field for t…│ H5 ███░░ 0.65 (archived) A runner's clock …
       •      1 h 11:56 + note N7: An old worker sends sec…│
    ▃▁▂▃··▃···▁▂▃·▂▃▁▁▁·▁▂▂··▁▂▃▂··▁▁▃▃▃▁···▂▃·▃···▁▂··▁·▄▁▂···▃▁··▃···▂·▁▂·▂·▁▁▂···▁·▁▂·▁▂·▃··▂▂··▁·▃·▃
                                                         ✗                    C       ✗       ✗        ^
    showing revisions
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff
    ");
    assert_snapshot!(hand.press("v").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    >  ○ ★    1 h 12:11 the head of monotonic-lease: 48 cl…│HEAD (claims of #87)  2025-03-11 12:11:00 +…
       ◇      1 h 12:11 Fix committed  [commit]  code modi…│[hypotheses 6] evidence 12 beliefs 9 gaps 6
       ·      1 h 12:11 Fixed on monotonic-lease: a worker…│ H4 █████ 0.98 (confirmed) The lease's dead…
       ·      1 h 12:10 Find and fix the cause  task       │ H6 █████ 0.95 (confirmed) A new field for …
       ·      1 h 12:10 git commit -qam 'lease: ask for a …│ H1 ░░░░░ 0.04 (rejected) The acknowledgeme…
       ◇      1 h 12:07 All tests pass, old workers too  […│ H2 ░░░░░ 0.05 (rejected) The test sleeps t…
       ! •    1 h 12:06 hypothesis H5 is archived now: lik…│ H3 ░░░░░ 0.03 (rejected) The bounded memor…
       ! •    1 h 12:06 hypothesis H6 is confirmed now: th…│ H5 ███░░ 0.65 (archived) A runner's clock …
       ! •    1 h 12:06 gap G6 is filled now: They do: fie…│
    ▃▁▂▃··▃···▁▂▃·▂▃▁▁▁·▁▂▂··▁▂▃▂··▁▁▃▃▃▁···▂▃·▃···▁▂··▁·▄▁▂···▃▁··▃···▂·▁▂·▂·▁▁▂···▁·▁▂·▁▂·▃··▂▂··▁·▃·▃
                                                         ✗                    C       ✗       ✗        ^
    showing everything
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff
    ");
}

#[test]
fn moving_marks_what_changed_since_the_stop_before() {
    assert_snapshot!(Hand::on_example(120, 16).press("j j j j j").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
       ○ ★    1 h 03-11 12:11:00 the head of monotonic-lease: 48 clai…│#71 (claims of #70)  2025-03-11 11:10:30 +00:00, 2 h…
       ◇      1 h 03-11 12:11:00 Fix committed  [commit]  code modifi…│[hypotheses 5] evidence 11 beliefs 8 gaps 4~ notes 5~
       ◇      1 h 03-11 12:07:00 All tests pass, old workers too  [ve…│ H5 ███░░ 0.65 (active) A runner's clock runs away w…
       ◇      1 h 03-11 11:50:00 The fix holds at every difference of…│ H4 █████ 0.98 (confirmed) The lease's deadline is c…
     C │ ★    1 h 03-11 11:24:00 Before compaction: cause confirmed, …│ H1 ░░░░░ 0.04 (rejected) The acknowledgement of wor…
    >◇─╯ •    2 h 03-11 11:10:30 Confirmed: one deadline, two clocks …│ H2 ░░░░░ 0.05 (rejected) The test sleeps too short …
     ◇   •    2 h 03-11 10:57:00 The delay follows the difference of …│ H3 ░░░░░ 0.03 (rejected) The bounded memory of ackn…
     ◆   ★    2 h 03-11 10:46:00 Reproduced: a worker 1.8 s behind fa…│
     ◇        2 h 03-11 10:21:30 The runners' clocks are 1.8 s apart …│
     ◆   ★    3 h 03-11 10:11:00 A new suspect: one deadline, two clo…│
     │ ◇ •    3 h 03-11 09:56:00 The memory of acknowledged orders ne…│
    ▃▁▁▂▃···▃···▁▂▂▁·▂▃▁▁▁··▁·▃····▁▃▂▂··▁▁▃·▃▃·▁····▃·▁▂····▃···▁··▄▁▂····▃▁···▃···▂▁·▁▂·▁▁·▁▁▂·····▁▁·▂·▁·▂·▃···▃···▁·▃▁·▃
                                                                    ✗               ^        C         ✗         ✗
    $ forge checkpoint at '#71'
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff  c charts  s sessions
    ");
}

#[test]
fn beliefs_stand_in_a_tree_and_commands_with_their_codes() {
    let mut hand = Hand::on_example(120, 16);
    assert_snapshot!(hand.press("l l").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    >  ○ ★    1 h 03-11 12:11:00 the head of monotonic-lease: 48 clai…│HEAD (claims of #87)  2025-03-11 12:11:00 +00:00, 1 …
       ◇      1 h 03-11 12:11:00 Fix committed  [commit]  code modifi…│hypotheses 6 evidence 12 [beliefs 9] gaps 6 notes 7 …
       ◇      1 h 03-11 12:07:00 All tests pass, old workers too  [ve…│ B1 █████ 0.90 (fact) The order is delivered twice b…
       ◇      1 h 03-11 11:50:00 The fix holds at every difference of…│ B2 ████░ 0.80 (inference) The failures began with t…
     C │ ★    1 h 03-11 11:24:00 Before compaction: cause confirmed, …│ └ B3 ████░ 0.75 (inference) 9c1f2aa brought them, s…
     ◇─╯ •    2 h 03-11 11:10:30 Confirmed: one deadline, two clocks …│   └ B8 ████░ 0.85 (inference) All three failures in…
     ◇   •    2 h 03-11 10:57:00 The delay follows the difference of …│ B4 █████ 0.98 (fact) A lease carries an absolute de…
     ◆   ★    2 h 03-11 10:46:00 Reproduced: a worker 1.8 s behind fa…│ └ B5 █████ 0.95 (fact) The broker compares that dea…
     ◇        2 h 03-11 10:21:30 The runners' clocks are 1.8 s apart …│   └ B7 █████ 0.90 (inference) The second delivery c…
     ◆   ★    3 h 03-11 10:11:00 A new suspect: one deadline, two clo…│     └ B9 █████ 0.97 (inference) A lease as a durati…
     │ ◇ •    3 h 03-11 09:56:00 The memory of acknowledged orders ne…│ B6 █████ 0.95 (fact) In CI broker and workers run o…
    ▃▁▁▂▃···▃···▁▂▂▁·▂▃▁▁▁··▁·▃····▁▃▂▂··▁▁▃·▃▃·▁····▃·▁▂····▃···▁··▄▁▂····▃▁···▃···▂▁·▁▂·▁▁·▁▁▂·····▁▁·▂·▁·▂·▃···▃···▁·▃▁·▃
                                                                    ✗                        C         ✗         ✗         ^
    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff  c charts  s sessions
    ");
    assert_snapshot!(hand.press("l l l l").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    >  ○ ★    1 h 03-11 12:11:00 the head of monotonic-lease: 48 clai…│HEAD (claims of #87)  2025-03-11 12:11:00 +00:00, 1 …
       ◇      1 h 03-11 12:11:00 Fix committed  [commit]  code modifi…│beliefs 9 gaps 6 notes 7 verifications [commands] co…
       ◇      1 h 03-11 12:07:00 All tests pass, old workers too  [ve…│ 12:10:20 (exit 0) git commit -qam 'lease: ask for a…
       ◇      1 h 03-11 11:50:00 The fix holds at every difference of…│ 12:05:50 (exit 0) cargo test --workspace
     C │ ★    1 h 03-11 11:24:00 Before compaction: cause confirmed, …│ 11:55:40 (exit 101) cargo test --test protocol -- o…
     ◇─╯ •    2 h 03-11 11:10:30 Confirmed: one deadline, two clocks …│ 11:49:30 (exit 0) for s in 0.5 1.0 1.5 1.9 30; do f…
     ◇   •    2 h 03-11 10:57:00 The delay follows the difference of …│ 11:46:10 (exit 0) cargo build
     ◆   ★    2 h 03-11 10:46:00 Reproduced: a worker 1.8 s behind fa…│ 11:40:45 (exit 101) cargo build
     ◇        2 h 03-11 10:21:30 The runners' clocks are 1.8 s apart …│ 11:19:10 (exit 0) grep -rn 'deadline' src --include…
     ◆   ★    3 h 03-11 10:11:00 A new suspect: one deadline, two clo…│ 10:55:10 (exit 0) for s in 0.5 1.0 1.5 1.9; do fake…
     │ ◇ •    3 h 03-11 09:56:00 The memory of acknowledged orders ne…│ 10:44:30 (exit 1) faketime -f '-1.8s' target/debug/…
    ▃▁▁▂▃···▃···▁▂▂▁·▂▃▁▁▁··▁·▃····▁▃▂▂··▁▁▃·▃▃·▁····▃·▁▂····▃···▁··▄▁▂····▃▁···▃···▂▁·▁▂·▁▁·▁▁▂·····▁▁·▂·▁·▂·▃···▃···▁·▃▁·▃
                                                                    ✗                        C         ✗         ✗         ^
    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff  c charts  s sessions
    ");
}

#[test]
fn a_hypothesis_opens_with_its_fields_history_and_dependents() {
    assert_snapshot!(Hand::on_example(100, 40).press("<tab> <enter>").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    hypothesis H4
    - fields
      added 2025-03-11 10:09:30 +00:00
      confidence: 0.98
      description: The lease's deadline is computed on the worker's clock and judged on the broker's:
      where the two differ by more than is left, the broker takes a living lease for expired
      reason: reproduced at will, and the delay is predicted to 4 ms
      status: confirmed
      tags: clock, lease
    - history (5 changes)
      #69 2025-03-11 11:10:00 +00:00 import
          confidence: 0.97 -> 0.98
          reason:  -> reproduced at will, and the delay is predicted to 4 ms
          status: under_test -> confirmed
      #61 2025-03-11 10:56:00 +00:00 import
          confidence: 0.93 -> 0.97
      #54 2025-03-11 10:45:00 +00:00 import
          confidence: 0.75 -> 0.93
      #44 2025-03-11 10:21:00 +00:00 import
          confidence: 0.55 -> 0.75
          status: active -> under_test
      #36 2025-03-11 10:09:30 +00:00 import
          + added
    - what depends on it
      hypothesis H5: A runner's clock runs away while its VM is suspended and chrony slews it back only
      slowly
      evidence E7: Two machines, one absolute time: the deadline crosses from one wall clock to another
      evidence E8: The clocks of two runners are 1.82 s apart; a lease has 2 s
      evidence E11: With the worker's clock 1.8 s behind, the second delivery comes after 204 ms = 2 s
      - 1.8 s, every time
      evidence E12: Four differences, four delays, each 2 s minus the difference within 4 ms
      evidence E14: Without a deadline that crosses machines the second delivery is gone, even at 30 s
      belief B7: The second delivery comes at lease minus clock difference
      belief B8: All three failures in CI have this one cause
      belief B9: A lease as a duration needs no agreement of clocks
      gap G3: How far apart are the clocks of the runners?

    $ forge hypothesis show H4 --at HEAD
    ? help  <esc> back  <enter> open  y copy  e export  <space> fold  q quit
    ");
}

#[test]
fn a_checkpoint_opens_in_full() {
    assert_snapshot!(Hand::on_example(90, 14).press("j <enter>").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
    Fix committed
      moment: #89
      time: 2025-03-11 12:11:00 +00:00
      branch: monotonic-lease
      id: [id]
      what: Fix committed
      trigger: code modified
      tags: commit
      claims: those of #87


    $ forge checkpoint show '#89'
    ? help  <esc> back  <enter> open  y copy  e export  <space> fold  q quit
    ");
}

#[test]
fn two_moments_compare_by_kind_with_sections_that_fold() {
    let mut hand = Hand::on_example(100, 24);
    assert_snapshot!(hand.press("j j m k d").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  mark: #88
    from #88 to #89
    1 message, 1 command, 1 task updated; 4 min later
    - messages (1)
      + M6  Fixed on monotonic-lease: a worker asks for a duration and the broker measures it on its
      own monotonic clock. Old workers keep working. The runners' clocks no longer matter to this test,
      nor to production.
    - commands (1)
      + C23  git commit -qam 'lease: ask for a duration, keep the deadline on the broker'
    - tasks (1)
      ~ t3
          status: in_progress -> completed










    $ forge checkpoint diff '#88' '#89'
    ? help  <esc> back  <enter> open  y copy  e export  <space> fold  q quit
    ");
    assert_snapshot!(hand.press("z").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  mark: #88
    from #88 to #89
    + messages (1) (1 lines)
    + commands (1) (1 lines)
    + tasks (1) (2 lines)

















    $ forge checkpoint diff '#88' '#89'
    ? help  <esc> back  <enter> open  y copy  e export  <space> fold  q quit
    ");
}

#[test]
fn a_search_filters_while_it_is_typed_and_escape_clears_it() {
    let mut hand = Hand::on_example(100, 14);
    assert_snapshot!(hand.press("/").type_in("stress").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  filter: stress
    >·        3 h 09:24 stress-ng --cpu 8 --timeout 400s &…│2025-03-11T09:24:15Z (claims of #8)  2025-0…
                                                           │[hypotheses 2] evidence 1 beliefs 1 gaps 1 …
                                                           │ H1 ███░░ 0.50 (active) The acknowledgement…
                                                           │ H2 ██░░░ 0.40 (active) The test sleeps too…
                                                           │
                                                           │
                                                           │
                                                           │
                                                           │
    ▃▁▂▃··▃···▁▂▃·▂▃▁▁▁·▁▂▂··▁▂▃▂··▁▁▃▃▃▁···▂▃·▃···▁▂··▁·▄▁▂···▃▁··▃···▂·▁▂·▂·▁▁▂···▁·▁▂·▁▂·▃··▂▂··▁·▃·▃
              ^                                          ✗                    C       ✗       ✗
    search: stress▏
    <enter> do it  <esc> leave it
    ");
    hand.press("<enter> <esc>");
    assert!(!hand.screen().contains("filter:"), "{}", hand.screen());
    assert_snapshot!(hand.press("/").type_in("kind:bogus").screen().lines().nth(13).unwrap(), @"search: kind:bogus▏   there is no kind 'bogus': hypothesis, evidence, belief, dependency, gap, note…");
}

#[test]
fn typing_a_moment_goes_there() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("t").type_in("2025-03-11 10:00:00Z").press("<enter>");
    assert_snapshot!(hand.screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
     ◆   ★    2 h 10:46 Reproduced: a worker 1.8 s behind …│#27 (claims of #26)  2025-03-11 09:56:00 +0…
     ◇        2 h 10:21 The runners' clocks are 1.8 s apart│[hypotheses 3] evidence 5 beliefs 3 gaps 2 …
     ◆   ★    3 h 10:11 A new suspect: one deadline, two c…│ H1 ███░░ 0.50 (active) The acknowledgement…
    >│ ◇ •    3 h 09:56 The memory of acknowledged orders …│ H2 ░░░░░ 0.05 (rejected) The test sleeps t…
     ◆ │ ★    3 h 09:36 Suspects before the detour: lost a…│ H3 ░░░░░ 0.03 (rejected) The bounded memor…
     ◇─╯ •    3 h 09:27 The test's own sleeps are not it  …│
     ◆   ★    4 h 09:11 Three failed runs read; two suspec…│
                                                           │
                                                           │
    ▃▁▂▃··▃···▁▂▃·▂▃▁▁▁·▁▂▂··▁▂▃▂··▁▁▃▃▃▁···▂▃·▃···▁▂··▁·▄▁▂···▃▁··▃···▂·▁▂·▂·▁▁▂···▁·▁▂·▁▂·▃··▂▂··▁·▃·▃
                               ^                         ✗                    C       ✗       ✗
    at 2025-03-11 10:00:00Z
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff
    ");
    hand.press("t").type_in("before last compaction").press("<enter>");
    assert_eq!(hand.app.row().unwrap().title, "Confirmed: one deadline, two clocks");
    hand.press("t").type_in("nowhere at all").press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("nowhere"), "{:?}", hand.app.status);
}

#[test]
fn landmarks_are_visited_one_after_the_other() {
    let mut hand = Hand::on_example(100, 20);
    hand.press(">");
    assert!(hand.app.row().unwrap().title.starts_with("Before compaction"));
    hand.press("}");
    let title = hand.app.row().unwrap().title.clone();
    hand.press("{ >");
    assert!(hand.app.status.as_ref().unwrap().text.contains("no compaction before"), "{title}");
}

#[test]
fn charts_show_confidence_verifications_and_activity() {
    assert_snapshot!(Hand::on_example(100, 24).press("c").screen(), @r"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    confidence over time  (6 of 6 drawn)
         1.0                                                       DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD
                                                              DDDDD                                 FFFF
                                                                                                FFFF
                                                  DDDDDDDDDDDD
                                                    EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE
         0.5    AAAAAAAAAAAAAAAAAAAAAAAAAAA  DDDDD
                BBBBBBB    CCCCCCCCCCCC
                                           AAAAAAAAAAAAAAAAAAAAAAAA
                       B

         0.0            BBBBBBBBBBBBBBBCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC
    > [x] A H1 0.04 (rejected) The acknowledgement of worker 1 is lost when two workers poll at the sam…
      [x] B H2 0.05 (rejected) The test sleeps too short on a busy runner: the lease really has run out
      [x] C H3 0.03 (rejected) The bounded memory of acknowledged orders forgets order 77 too early, an…
      [x] D H4 0.98 (confirmed) The lease's deadline is computed on the worker's clock and judged on th…
      [x] E H5 0.65 (archived) A runner's clock runs away while its VM is suspended and chrony slews it…
    passed    ······1··1·········1·························································11·······1···
    failed    ················································1·························1······1········
    activity  ▃·▁▂··▃···▂▂·▁▃▁··▁·▂··▁▂▂▂·▁▁▃·▁▁···▃·▁···▁··▁·······▁··▃···▁···▁········▁··▁▂·▂··▂····▁·
              2025-03-11 09:04:10 +00:00 to 2025-03-11 12:11:00 +00:00

    ? help  <esc> back  <enter> open  e export  <space> draw  z all  q quit
    ");
}

#[test]
fn which_hypotheses_a_chart_draws_is_chosen() {
    let mut hand = Hand::on_example(100, 24);
    assert_snapshot!(hand.press("c z j j <space>").screen(), @r"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    confidence over time  (1 of 6 drawn)
         1.0




         0.5
                           CCCCCCCCCCCC



         0.0                           CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC
      [ ] A H1 0.04 (rejected) The acknowledgement of worker 1 is lost when two workers poll at the sam…
      [ ] B H2 0.05 (rejected) The test sleeps too short on a busy runner: the lease really has run out
    > [x] C H3 0.03 (rejected) The bounded memory of acknowledged orders forgets order 77 too early, an…
      [ ] D H4 0.98 (confirmed) The lease's deadline is computed on the worker's clock and judged on th…
      [ ] E H5 0.65 (archived) A runner's clock runs away while its VM is suspended and chrony slews it…
    passed    ······1··1·········1·························································11·······1···
    failed    ················································1·························1······1········
    activity  ▃·▁▂··▃···▂▂·▁▃▁··▁·▂··▁▂▂▂·▁▁▃·▁▁···▃·▁···▁··▁·······▁··▃···▁···▁········▁··▁▂·▂··▂····▁·
              2025-03-11 09:04:10 +00:00 to 2025-03-11 12:11:00 +00:00

    ? help  <esc> back  <enter> open  e export  <space> draw  z all  q quit
    ");
    // Opened from a hypothesis, it draws that one; a click on another draws that one too.
    let mut hand = Hand::on_example(100, 24);
    hand.press("<tab> j c");
    let listed = hand.screen();
    assert!(listed.contains("(1 of 6 drawn)") && listed.contains("> [x] F H6"), "{listed}");
    hand.act(BrowserAction::Click { x: 9, y: 14 });
    assert!(hand.screen().contains("(2 of 6 drawn)"), "{}", hand.screen());
    // The selected hypothesis opens in full, and closing it returns to the chart.
    let opened = hand.press("<enter>").screen();
    assert!(opened.contains("hypothesis H"), "{opened}");
    assert!(hand.press("<esc>").screen().contains("of 6 drawn)"));
}

#[test]
fn the_help_names_every_key() {
    let mut hand = Hand::on_example(100, 24);
    assert_snapshot!(hand.press("?").screen(), @r"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    help  (line 1 of 151)
    - timeline
      ?                     show all keys [help]
      <esc>                 close what is in front, clear filter and mark [back]
      <enter>               open in full, or choose [open]
      <tab>                 go to the other side [next-pane]
      /                     search and filter [search]
      t :                   go to a moment by typing it [jump]
      v                     checkpoints, every revision, everything [level]
      m                     mark this moment to compare with [mark]
      d                     compare with the mark, else with the moment before [diff]
      c                     show charts [charts]
      s                     choose a session [sessions]
      a                     make a checkpoint [create]
      T                     tag this checkpoint [tag]
      b                     begin a branch here [branch]
      R                     restore the claims of this moment [restore]
      u                     undo the last operation [undo]
      U                     redo the last undo [redo]
      y                     copy the id [copy]
      e                     write this view to a file [export]

    ? help  <esc> back  <enter> open  y copy  e export  <space> fold  q quit
    ");
    let bindings = hand.app.keymap.bindings().len();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let screen = hand.press("j").screen();
        let names = hand.app.keymap.bindings().iter().map(|binding| binding.name);
        seen.extend(names.filter(|name| screen.contains(&format!("[{name}]"))));
    }
    assert_eq!(seen.len(), bindings);
}

#[test]
fn sessions_are_listed_and_opened() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-01-01T10:00:00Z"));
    store.create_session(&act, NewSession::named("older")).unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store, 90, 12);
    assert_snapshot!(hand.press("s").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    sessions, the latest first
    > example  2025-03-11 12:11:00 +00:00, 13 checkpoints, 48 claims, 59 facts
      older  nothing yet, 0 checkpoints, 0 claims, 0 facts







    ? help  <esc> back  <enter> open  y copy  e export  q quit
    ");
    assert_snapshot!(hand.press("j <enter>").screen(), @"
    older  on main  0 checkpoints, 0 recorded
    Nothing has been recorded yet.

    Record something in another terminal; it appears here automatically:
      forge hypothesis add 'the cache is stale'
      forge checkpoint create 'before the change'
      forge import claude-code

    s lists the sessions of this store, q quits.


    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark
    ");
    hand.press("s k <enter>");
    assert_eq!(hand.app.session.name, "example");
}

#[test]
fn a_checkpoint_a_tag_and_a_branch_are_made_and_their_commands_shown() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("a").type_in("it's fixed").press("<enter>");
    assert_snapshot!(hand.screen(), @r"
    example  on monotonic-lease  14 checkpoints, 90 recorded  ● following
    >  ○ ★    now 13:11 the head of monotonic-lease: 48 cl…│HEAD (claims of #87)  2025-03-11 13:11:00 +…
       ◆ ★    now 13:11 it's fixed  manual                 │[hypotheses 6] evidence 12 beliefs 9 gaps 6
       ◇      1 h 12:11 Fix committed  [commit]  code modi…│ H4 █████ 0.98 (confirmed) The lease's dead…
       ◇      1 h 12:07 All tests pass, old workers too  […│ H6 █████ 0.95 (confirmed) A new field for …
       ◇      1 h 11:50 The fix holds at every difference …│ H1 ░░░░░ 0.04 (rejected) The acknowledgeme…
     C │ ★    1 h 11:24 Before compaction: cause confirmed…│ H2 ░░░░░ 0.05 (rejected) The test sleeps t…
     ◇─╯ •    2 h 11:10 Confirmed: one deadline, two clocks│ H3 ░░░░░ 0.03 (rejected) The bounded memor…
     ◇   •    2 h 10:57 The delay follows the difference o…│ H5 ███░░ 0.65 (archived) A runner's clock …
     ◆   ★    2 h 10:46 Reproduced: a worker 1.8 s behind …│
    ▃▁▂▃··▃···▁▂▃·▂▃▁▁▁·▁▂▂··▁▂▃▂··▁▁▃▃▃▁···▂▃·▃···▁▂··▁·▄▁▂···▃▁··▃···▂·▁▂·▂·▁▁▂···▁·▁▂·▁▂·▃··▂▂··▁·▃·▃
                                                         ✗                    C       ✗       ✗        ^
    made checkpoint #90   $ forge checkpoint create 'it'\''s fixed'
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff
    ");
    hand.press("g j T").type_in("good,-auto").press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("--add good --remove auto"));
    hand.press("j j b").type_in("other").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.contains("forge branch create other --from '#"), "{status}");
    assert!(hand.app.session.lines.iter().any(|line| line.name == "other"));
}

#[test]
fn a_restore_is_shown_first_then_done_and_undone() {
    let mut hand = Hand::on_example(100, 16);
    let before = hand.app.session.claims;
    assert_snapshot!(hand.press("j j j j R").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
    restore #76  (line 1 of 19)
    y restores the claims of that moment, as a new revision; u reverts it
    - hypotheses (2)
      ~ H5
          reason: likely, but no longer matters: leases do not depend on clocks -> nothing
          status: archived -> active
      - H6  A new field for the duration, with the old one still understood, keeps old workers working
    - evidence (1)
      - E14  Without a deadline that crosses machines the second delivery is gone, even at 30 s
    - beliefs (1)
      - B9  A lease as a duration needs no agreement of clocks
    - dependencies (1)
      - B9->B7  B9 requires B7
    do it? (y/n)   $ forge checkpoint restore '#76'
    <enter> do it  <esc> leave it  y yes  n no
    ");
    let count = hand.app.session.count;
    hand.press("n");
    assert_eq!(hand.app.session.count, count);
    hand.press("R y");
    assert_eq!(hand.app.session.count, count + 1, "{:?}", hand.app.status);
    hand.press("u y");
    assert_eq!(hand.app.session.claims, before, "{:?}", hand.app.status);
}

#[test]
fn an_id_is_copied_and_the_view_written_to_a_file() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("j y");
    assert_eq!(hand.copied, [hand.app.row().unwrap().id.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("view.txt");
    hand.press("e <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(std::fs::read_to_string(&file).unwrap().contains("Fix committed"));
    hand.press("e <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("cannot write"));
}

fn note(store: &Store, session: &str, id: &str, time: &str) {
    let act = WriteContext::asked("note add", at(time));
    let value = Value::from([("description", id.into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, id), value);
    store.session(session).unwrap().write(&act).change(change).commit().unwrap();
}

#[test]
fn new_writes_appear_and_the_cursor_stays() {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store.clone(), 100, 14);
    let tick = || BrowserAction::Tick(at("2025-03-11T13:12:00Z"));
    note(&store, "example", "N90", "2025-03-11T13:11:30Z");
    hand.act(tick());
    assert_eq!(
        hand.app.state.view.as_ref().unwrap().moved.iter().map(|(_, n)| n).sum::<usize>(),
        1
    );
    hand.press("v j j");
    let stood = hand.app.row().unwrap().clone();
    for number in 0..200 {
        note(&store, "example", &format!("M{number}"), "2025-03-11T13:11:40Z");
        if number % 50 == 0 {
            hand.act(tick());
        }
    }
    hand.act(tick());
    assert_eq!(hand.app.row().unwrap().place, stood.place);
    hand.press("g");
    assert!(hand.screen().contains("following"), "{}", hand.screen());
}

#[test]
fn a_long_history_is_never_loaded_whole_and_walked_through_without_gaps() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    store.create_session(&act, NewSession::named("long")).unwrap();
    for number in 0..750_u64 {
        note(&store, "long", &format!("N{}", number % 7), "2025-03-11T10:00:00Z");
        let value = Value::from([("description", number.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "count"), value);
        store.session("long").unwrap().write(&act).change(change).commit().unwrap();
    }
    let mut hand = Hand::on(store, 80, 30);
    let mut seen = std::collections::BTreeSet::new();
    let last = hand.app.session.count;
    for _ in 0..=last {
        seen.insert(hand.app.row().unwrap().target);
        assert!(hand.app.timeline.rows.len() <= 1400);
        hand.press("j");
    }
    assert_eq!(seen.len() as u64, last + 1);
    for _ in 0..=last {
        seen.remove(&hand.app.row().unwrap().target);
        hand.press("k");
    }
    assert!(seen.is_empty(), "{}", seen.len());
}

#[test]
fn an_empty_store_says_what_to_do_and_comes_to_life() {
    let store = Store::in_memory().unwrap();
    let mut hand = Hand::on(store.clone(), 70, 12);
    assert_snapshot!(hand.screen(), @"
    forge
    Nothing has been recorded yet.

    Record something in another terminal; it appears here automatically:
      forge hypothesis add 'the cache is stale'
      forge checkpoint create 'before the change'
      forge import claude-code

    s lists the sessions of this store, q quits.


    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to
    ");
    forge_testkit::example::fill(&store).unwrap();
    hand.act(BrowserAction::Tick(at("2025-03-11T13:12:00Z")));
    assert!(hand.screen().contains("the head of"), "{}", hand.screen());
}

#[test]
fn a_store_that_cannot_be_read_says_so_and_what_to_do() {
    use forge_tui::answer::{WorkerFailure, WorkerReply};
    use forge_tui::effect::PaneSlot;
    let mut hand = Hand::on_example(70, 10);
    let failure = WorkerFailure {
        message: "the object number 7 is damaged".to_owned(),
        advice: "other moments may be whole".to_owned(),
        damaged: true,
    };
    let reply = |hand: &Hand, slot: PaneSlot| WorkerReply {
        generation: *hand.app.asked.get(&slot).unwrap(),
        slot,
        answer: Err(failure.clone()),
    };
    let state = reply(&hand, PaneSlot::State);
    hand.act(BrowserAction::Reply(Box::new(state)));
    assert_snapshot!(hand.press("<tab>").screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  ● following
    damaged: the object number 7 is damaged
    What to do: other moments may be whole.





    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to
    ");
    hand.app.stage = forge_tui::app::AppStage::Loading;
    assert_snapshot!(hand.screen().lines().nth(2).unwrap(), @"reading the store ...");
    let page = reply(&hand, PaneSlot::Page);
    hand.act(BrowserAction::Reply(Box::new(page)));
    assert_snapshot!(hand.screen(), @"
    example  on monotonic-lease  13 checkpoints, 89 recorded
    This store is damaged.
    the object number 7 is damaged

    What to do: other moments may be whole.
    r tries again, s lists the sessions, q quits.



    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to
    ");
}

#[test]
fn wide_and_combining_letters_and_escapes_stay_in_their_cells() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("checkpoint create", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("日本語")).unwrap();
    for text in [
        "日本語のとても長いメッセージ、窓より長い",
        "e\u{301}a\u{308} \u{1b}[31mred\u{202e}",
        "🎉 done",
    ] {
        session.write(&act).checkpoint(NewCheckpoint::manual(text)).commit().unwrap();
    }
    assert_snapshot!(Hand::on(store, 40, 8).screen(), @r"
    日本語  on main  3 checkpoints, 3 recor…
    >○ ★    3 h the head of main: 0 claims …
     ◆ ★    3 h 🎉 done  manual
     ◆ ★    3 h éä \x1b[31mred\u{202e}  man…
     ◆ ★    3 h 日本語のとても長いメッセー……

    $ forge checkpoint at HEAD
    ? help  <esc> back  <enter> open
    ");
}

#[test]
fn without_unicode_and_colour_everything_is_still_shown() {
    let mut hand = Hand::on_example(100, 24);
    hand.app.theme.ascii = true;
    let screen = hand.press("v").screen();
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!(screen, @"
    example  on monotonic-lease  13 checkpoints, 89 recorded  * following
    >  @ *    1 h 12:11 the head of monotonic-lease: 48 cl~|HEAD (claims of #87)  2025-03-11 12:11:00 +~
       o      1 h 12:11 Fix committed  [commit]  code modi~|[hypotheses 6] evidence 12 beliefs 9 gaps 6
       o      1 h 12:07 All tests pass, old workers too  [~| H4 ##### 0.98 (confirmed) The lease's dead~
       ! +    1 h 12:06 hypothesis H5 is archived now: lik~| H6 ##### 0.95 (confirmed) A new field for ~
       ! +    1 h 12:06 hypothesis H6 is confirmed now: th~| H1 ..... 0.04 (rejected) The acknowledgeme~
       ! +    1 h 12:06 gap G6 is filled now: They do: fie~| H2 ..... 0.05 (rejected) The test sleeps t~
       ! +    1 h 11:56 gap G6 is filling now  import      | H3 ..... 0.03 (rejected) The bounded memor~
       .      1 h 11:56 + hypothesis H6: A new field for t~| H5 ###.. 0.65 (archived) A runner's clock ~
       .      1 h 11:56 + note N7: An old worker sends sec~|
       o      1 h 11:50 The fix holds at every difference ~|
       .      1 h 11:50 belief B9: confidence 0.9 -> 0.97 ~|
       .      1 h 11:50 + evidence E14: Without a deadline~|
       .      1 h 11:27 + dependency B9->B7: B9 requires B7|
       .      1 h 11:27 + belief B9: A lease as a duration~|
     C | *    1 h 11:24 Before compaction: cause confirmed~|
     !-' +    1 h 11:19 gap G5 is filled now: Yes: src/adm~|
     .        1 h 11:16 + note N6: Plan: the worker asks f~|
     .        1 h 11:16 + gap G6: Do old workers keep work~|
    :..:  :   ..: .:... ...  ..:.  ..:::.   .: :   ..  . :..   :.  :   . .. . ...   . .. .. :  ..  . : :
                                                         x                    C       x       x        ^
    2025-03-11 09:04 to 2025-03-11 12:11  .:# activity  blank idle (longest about 5 min 36 s)  C compac~
    showing revisions
    ? help  <esc> back  <enter> open  <tab> other side  / search  t go to  v detail  m mark  d diff
    ");
}

#[test]
fn the_mouse_stands_on_rows_tabs_and_times() {
    let mut hand = Hand::on_example(120, 30);
    hand.act(BrowserAction::Click { x: 10, y: 4 });
    assert_eq!(hand.app.timeline.cursor, 3);
    hand.act(BrowserAction::Wheel(3));
    assert_eq!(hand.app.timeline.cursor, 6);
    hand.act(BrowserAction::Click { x: 0, y: 26 });
    assert_eq!(hand.app.timeline.rows.len() - 1, hand.app.timeline.cursor);
    hand.act(BrowserAction::Click { x: 80, y: 4 });
    assert_eq!((hand.app.focus, hand.app.state.cursor), (forge_tui::app::PaneFocus::State, 1));
}
