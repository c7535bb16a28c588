//! Programs of several agents: the race in which a program's checkpoint is outdated before it is
//! used.

use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Store, WriteContext};
use forge_systems::program::{CheckpointReference, MessageFate, Program};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn act(second: i64) -> WriteContext {
    WriteContext::asked(
        "program",
        Timestamp::from_micros(1_767_261_600_000_000 + second * 1_000_000),
    )
}

/// Agents, their program, and a clock.
struct Play {
    store: Store,
    program: Program,
    second: i64,
    made: BTreeMap<String, u64>,
}

impl Play {
    fn new(agents: &[&str]) -> Self {
        let store = Store::in_memory().unwrap();
        for agent in agents {
            store.create_session(&act(0), NewSession::imported(*agent)).unwrap();
        }
        let program = Program::open_or_create(&store, &act(0), "negotiation").unwrap();
        Self { store, program, second: 0, made: BTreeMap::new() }
    }

    fn act(&mut self) -> WriteContext {
        self.second += 1;
        act(self.second)
    }

    /// The agent's next checkpoint, with the agent's own name for it: `1000_ckpt_3`.
    fn checkpoint(&mut self, agent: &str) -> String {
        let act = self.act();
        let count = self.made.entry(agent.to_owned()).or_default();
        *count += 1;
        let name = format!("{agent}_ckpt_{count}");
        let session = self.store.session(agent).unwrap();
        let value = Value::from([("description", name.as_str().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "state"), value);
        let wanted = NewCheckpoint::manual("waiting").tags([name.clone()]);
        session.write(&act).change(change).checkpoint(wanted).commit().unwrap();
        name
    }

    fn reference(&self, agent: &str, checkpoint: &str) -> CheckpointReference {
        let session = self.store.session(agent).unwrap();
        let query = forge_store::store::TemporalQuery {
            tag_filter: Some(checkpoint.to_owned()),
            ..Default::default()
        };
        CheckpointReference::from_moment(&session.query(&query).unwrap())
    }

    /// The program's next checkpoint.
    fn program(&mut self, agents: &[(&str, &str)]) -> u64 {
        let act = self.act();
        let agents =
            agents.iter().map(|(agent, at)| ((*agent).to_owned(), self.reference(agent, at)));
        let done = self.program.checkpoint(&act, &agents.collect(), None).unwrap();
        done.revision.unwrap().0
    }

    fn resumed(&self, exact: bool) -> Vec<(String, String, Option<String>)> {
        let resume = self.program.resume(&self.program.session().head().unwrap(), exact).unwrap();
        resume
            .agents
            .iter()
            .map(|one| (one.agent.clone(), one.at.reference.checkpoint.clone(), one.notice()))
            .collect()
    }
}

/// The timeline of the original failure: while agent 1000 waits at its checkpoint 3, agent 1001
/// continues, and the program is checkpointed after each of its steps. Then 1000 continues to 7
/// without another program checkpoint. Resuming from the program's checkpoint restarted the
/// negotiation.
#[test]
fn an_agent_ahead_of_the_program_checkpoint_is_resumed_at_its_latest_checkpoint() {
    let mut play = Play::new(&["1000", "1001"]);
    for _ in 0..3 {
        play.checkpoint("1000");
        play.checkpoint("1001");
    }
    let mut last = 0;
    for at in 4..=9 {
        play.checkpoint("1001");
        last = play.program(&[("1000", "1000_ckpt_3"), ("1001", &format!("1001_ckpt_{at}"))]);
    }
    for _ in 4..=7 {
        play.checkpoint("1000");
    }
    let head = play.program.session().head().unwrap();
    let saved = play.program.at(&head).unwrap();
    assert_eq!(saved.number, last);
    assert_eq!(saved.agents["1000"].checkpoint, "1000_ckpt_3", "what was saved is out of date");
    let notice =
        "using latest checkpoint 1000_ckpt_7 for agent 1000 (program checkpoint had 1000_ckpt_3)";
    assert_eq!(
        play.resumed(false),
        [
            ("1000".to_owned(), "1000_ckpt_7".to_owned(), Some(notice.to_owned())),
            ("1001".to_owned(), "1001_ckpt_9".to_owned(), None),
        ]
    );
    let exact: Vec<String> = play.resumed(true).into_iter().map(|(_, at, _)| at).collect();
    assert_eq!(exact, ["1000_ckpt_3", "1001_ckpt_9"]);
}

/// A later program checkpoint fixes one reference and is outdated again.
#[test]
fn an_older_program_checkpoint_is_readable_and_resumes_later_checkpoints_of_its_agents() {
    let mut play = Play::new(&["1000", "1001"]);
    for _ in 0..3 {
        play.checkpoint("1000");
        play.checkpoint("1001");
    }
    play.checkpoint("1001");
    let tenth = play.program(&[("1000", "1000_ckpt_3"), ("1001", "1001_ckpt_4")]);
    play.checkpoint("1001");
    // Only the agent that moved is named; the other keeps its checkpoint.
    play.program(&[("1001", "1001_ckpt_5")]);
    play.checkpoint("1000");
    play.program(&[("1000", "1000_ckpt_4")]);
    let session = play.program.session();
    let vector = |moment| {
        let at = play.program.at(&moment).unwrap();
        at.agents.into_values().map(|one| one.checkpoint).collect::<Vec<_>>()
    };
    assert_eq!(vector(session.head().unwrap()), ["1000_ckpt_4", "1001_ckpt_5"]);
    assert_eq!(vector(session.at_sequence(tenth).unwrap()), ["1000_ckpt_3", "1001_ckpt_4"]);
    let old = play.program.resume(&session.at_sequence(tenth).unwrap(), false).unwrap();
    assert_eq!(old.agents[0].at.reference.checkpoint, "1000_ckpt_4");
}

#[test]
fn an_agent_without_a_session_keeps_its_reference_and_is_missing() {
    let mut play = Play::new(&["a"]);
    play.checkpoint("a");
    let act = play.act();
    let agents = BTreeMap::from([
        ("a".to_owned(), play.reference("a", "a_ckpt_1")),
        ("gone".to_owned(), CheckpointReference::from_name("gone_ckpt_5")),
    ]);
    play.program.checkpoint(&act, &agents, Some("both")).unwrap();
    let resume = play.program.resume(&play.program.session().head().unwrap(), false).unwrap();
    assert_eq!((resume.agents.len(), resume.missing.len()), (1, 1));
    assert_eq!(resume.missing[0].had.checkpoint, "gone_ckpt_5");
    assert_eq!(resume.checkpoint.message.as_deref(), Some("both"));
    play.store.create_session(&act, NewSession::imported("gone")).unwrap();
    play.checkpoint("gone");
    let resume = play.program.resume(&play.program.session().head().unwrap(), false).unwrap();
    assert_eq!(resume.agents[1].at.reference.checkpoint, "gone_ckpt_1", "now it has one");
    let none = Program::open(&play.store, "other");
    assert!(none.is_err_and(|error| error.kind() == ErrorKind::NotFound));
}

#[test]
fn messages_show_what_the_latest_checkpoints_would_lose_or_repeat() {
    let mut play = Play::new(&["buyer", "seller"]);
    play.checkpoint("buyer");
    play.checkpoint("seller");
    let send = |play: &mut Play, id: &str, from: &str, to: &str| {
        let act = play.act();
        play.program.send(&act, id, from, to, None).unwrap();
    };
    let receive = |play: &mut Play, id: &str| {
        let act = play.act();
        play.program.receive(&act, id, None).unwrap();
    };
    // The seller has checkpointed receiving a message, and the buyer has not checkpointed sending
    // it.
    send(&mut play, "offer", "buyer", "seller");
    receive(&mut play, "offer");
    send(&mut play, "counter", "seller", "buyer");
    play.checkpoint("seller");
    play.program(&[("buyer", "buyer_ckpt_1"), ("seller", "seller_ckpt_2")]);
    let resume = play.program.resume(&play.program.session().head().unwrap(), false).unwrap();
    let fates: Vec<(&str, MessageFate)> =
        resume.torn.iter().map(|torn| (torn.message.id.as_str(), torn.fate)).collect();
    assert_eq!(fates, [("offer", MessageFate::Twice), ("counter", MessageFate::Lost)]);
    let cut = resume.consistent.unwrap();
    let at = |place: usize| cut[place].reference.as_ref().unwrap().checkpoint.as_str();
    assert_eq!((at(0), at(1)), ("buyer_ckpt_1", "seller_ckpt_1"));
    assert!(resume.redeliver.is_empty());
    // Once the buyer has made a checkpoint, no agent must go back, and the counter offer must be
    // delivered again.
    play.checkpoint("buyer");
    let resume = play.program.resume(&play.program.session().head().unwrap(), false).unwrap();
    assert_eq!((resume.consistent, resume.redeliver.len()), (None, 1));
    let act = play.act();
    let twice = play.program.send(&act, "offer", "buyer", "seller", None).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Invalid);
    assert_eq!(play.program.receive(&act, "none", None).unwrap_err().kind(), ErrorKind::NotFound);
}

#[derive(Clone, Debug)]
enum Step {
    Checkpoint(usize),
    /// The program's checkpoint begins: it reads the agents' positions.
    Look,
    /// It is saved, with the positions read at its beginning.
    Save,
    Send(usize, usize),
    Receive(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Step::Checkpoint),
        2 => Just(Step::Look),
        2 => Just(Step::Save),
        2 => (0..3_usize, 0..3_usize).prop_map(|(from, to)| Step::Send(from, to)),
        2 => (0..8_usize).prop_map(Step::Receive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// For every interleaving of the agents and the program's checkpoints: every agent resumes from
    /// its latest checkpoint, never from one older than the program's; and the consistent cut loses
    /// and repeats no message that it does not report.
    #[test]
    fn in_any_interleaving_every_agent_is_resumed_at_its_latest_checkpoint(steps in prop::collection::vec(step(), 1..25)) {
        let names = ["a", "b", "c"];
        let mut play = Play::new(&names);
        for name in names {
            play.checkpoint(name);
        }
        let mut looked: BTreeMap<String, CheckpointReference> = BTreeMap::new();
        let mut saved = BTreeMap::new();
        // By id: from, to, the sender's checkpoint count then, and the receiver's.
        let mut sent: Vec<(usize, usize, u64, Option<u64>)> = Vec::new();
        let look = |play: &Play| -> BTreeMap<String, CheckpointReference> {
            names.iter().map(|name| ((*name).to_owned(), play.reference(name, &format!("{name}_ckpt_{}", play.made[*name])))).collect()
        };
        for step in steps {
            match step {
                Step::Checkpoint(agent) => drop(play.checkpoint(names[agent])),
                Step::Look => looked = look(&play),
                Step::Save if looked.is_empty() => {}
                Step::Save => {
                    let act = play.act();
                    play.program.checkpoint(&act, &looked, None).unwrap();
                    saved.clone_from(&looked);
                }
                Step::Send(from, to) if from != to => {
                    let act = play.act();
                    play.program.send(&act, &format!("{}", sent.len()), names[from], names[to], None).unwrap();
                    sent.push((from, to, play.made[names[from]], None));
                }
                Step::Send(..) => {}
                Step::Receive(id) => if let Some((_, to, _, received @ None)) = sent.get_mut(id) {
                    let act = play.act();
                    play.program.receive(&act, &format!("{id}"), None).unwrap();
                    *received = Some(play.made[names[*to]]);
                }
            }
        }
        let head = play.program.session().head().unwrap();
        if saved.is_empty() {
            prop_assert_eq!(play.program.resume(&head, false).unwrap_err().kind(), ErrorKind::NotFound);
            return Ok(());
        }
        let resume = play.program.resume(&head, false).unwrap();
        prop_assert!(resume.missing.is_empty());
        for one in &resume.agents {
            prop_assert_eq!(&one.at.reference.checkpoint, &format!("{}_ckpt_{}", one.agent, play.made[&one.agent]));
            prop_assert!(one.at.reference.sequence >= saved[&one.agent].sequence);
            prop_assert_eq!(one.notice().is_some(), one.at.reference != saved[&one.agent]);
        }
        for one in play.program.resume(&head, true).unwrap().agents {
            prop_assert_eq!(&one.at.reference, &saved[&one.agent]);
        }
        // The fates of messages at a cut, computed by counting checkpoints.
        let fates = |cut: &BTreeMap<&str, u64>| -> Vec<(String, MessageFate)> {
            let fate = |(id, (from, to, at, received)): (usize, &(usize, usize, u64, Option<u64>))| {
                let is_sent = *at < cut[names[*from]];
                let is_received = received.is_some_and(|received| received < cut[names[*to]]);
                let fate = match (is_sent, is_received) {
                    (true, false) => MessageFate::Lost,
                    (false, true) => MessageFate::Twice,
                    _ => return None,
                };
                Some((id.to_string(), fate))
            };
            let mut fates: Vec<_> = sent.iter().enumerate().filter_map(fate).collect();
            fates.sort_by(|a, b| a.0.cmp(&b.0));
            fates
        };
        let latest = names.iter().map(|name| (*name, play.made[*name])).collect();
        let mut actual: Vec<_> = resume.torn.iter().map(|torn| (torn.message.id.clone(), torn.fate)).collect();
        actual.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(actual, fates(&latest));
        let counted = |reference: &Option<CheckpointReference>| -> u64 {
            reference.as_ref().map_or(0, |one| one.checkpoint.rsplit('_').next().unwrap().parse().unwrap())
        };
        let cut: BTreeMap<&str, u64> = match &resume.consistent {
            None => latest,
            Some(agents) => agents.iter().map(|one| (names[names.iter().position(|name| *name == one.agent).unwrap()], counted(&one.reference))).collect(),
        };
        let left = fates(&cut);
        prop_assert!(left.iter().all(|(_, fate)| *fate == MessageFate::Lost), "{left:?}");
        if !sent.is_empty() {
            let mut redeliver: Vec<String> = resume.redeliver.iter().map(|one| one.id.clone()).collect();
            redeliver.sort();
            prop_assert_eq!(redeliver, left.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
        }
    }
}
