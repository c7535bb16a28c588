//! Records claims about a broken build in a store in the given folder, and reads an earlier state.

use forge_store::admin::{VerifyDepth, VerifyOutcome};
use forge_store::{
    Belief, Confidence, ErrorKind, Evidence, ExecutedCommand, Hypothesis, NewCheckpoint,
    NewSession, Note, Options, Store, Strength, Timestamp, WriteContext,
};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let store = Store::open_or_create(&folder, Options::default())?;
    let context = WriteContext::asked("outside", Timestamp::now());
    let session = store.create_session(&context, NewSession::named("broken build"))?;

    let cause = Hypothesis {
        description: Some("the cache is stale".to_owned()),
        confidence: Some(Confidence::EVEN),
        ..Hypothesis::default()
    };
    let (cause, _) = session.add(&context, cause)?;
    session
        .write(&context)
        .checkpoint(NewCheckpoint::manual("one suspect").tags(["suspect"]))
        .commit()?;
    let evidence = Evidence { strength: Strength::new(0.8), ..Evidence::default() };
    let report = session
        .write(&context)
        .add("clean-build", evidence.hypothesis(&*cause))
        .add("cache", Belief::default().hypothesis(&*cause))
        .commit()?;
    println!("revision {:?}", report.revision.map(|(number, _)| number));
    session.add(&context, Note::default().description("ask Mira"))?;
    session.add(&context, ExecutedCommand::default().command("make clean all"))?;

    let then = session.at("suspect", Timestamp::now())?;
    let (before, now) = (session.state(&then)?, session.state(&session.head()?)?);
    println!(
        "{} and {} pieces of evidence",
        before.all::<Evidence>()?.len(),
        now.all::<Evidence>()?.len()
    );
    println!("{} commands", now.all::<ExecutedCommand>()?.len());
    let confidence = |hypothesis: Option<Hypothesis>| {
        hypothesis.and_then(|one| one.confidence).map(Confidence::value)
    };
    println!("{:?} before", confidence(before.get(&cause)?));
    println!("more now: {}", confidence(now.get(&cause)?) > Some(0.8));
    println!("{}", session.compare(&then, &session.head()?)?.summary);

    let unknown = session.at("no such tag", Timestamp::now()).err().map(|error| error.kind());
    println!(
        "unknown: {}",
        unknown.is_some_and(|kind| matches!(kind, ErrorKind::NotFound | ErrorKind::Invalid))
    );
    let report = Store::verify(&folder, VerifyDepth::ReadData, Timestamp::now(), None)?;
    println!("sound: {}", report.outcome == VerifyOutcome::Clean);
    println!("{store:?}\n{session:?}\n{now:?}");
    Ok(())
}
