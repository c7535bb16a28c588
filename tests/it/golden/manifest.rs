//! Everything that a store returns, as JSON, to be compared with its content when it was made.

use forge_store::error::Result;
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{CheckpointFilter, LogItem, ResolvedMoment, Session, Store};
use serde_json::{Value, json};

/// Everything that a store returns and that does not depend on the current time.
pub(crate) fn manifest(store: &Store) -> Result<Value> {
    let mut sessions = Vec::new();
    for summary in store.sessions()? {
        let session = store.session(&summary.info.name)?;
        sessions.push(json!({
            "info": summary.info,
            "current": summary.current,
            "branch": summary.branch,
            "checkpoints": summary.checkpoints,
            "claims": summary.claims,
            "facts": summary.facts,
            "sources": summary.sources,
            "schedule": summary.schedule_micros,
            "moments": moments(&session)?,
            "full_states": session.full_states()?,
            "listed": session.checkpoints(&CheckpointFilter::default())?,
            "operations": operations(&session)?,
            "bytes": sources(&session, &summary.sources)?,
        }));
    }
    Ok(
        json!({ "id": store.hash_key().iter().map(|byte| u32::from(*byte)).sum::<u32>(), "sessions": sessions }),
    )
}

/// The state at every number, and at the head.
fn moments(session: &Session) -> Result<Vec<Value>> {
    let mut moments = Vec::new();
    for item in session.records(1, usize::MAX)? {
        let what = match &item {
            LogItem::Revision(entry) => json!({
                "revision": entry.id.to_string(), "verb": entry.verb, "reset": entry.reset_to,
            }),
            LogItem::Lost(lost) => json!({ "lost": lost.sequence }),
            LogItem::Checkpoint(checkpoint) => json!({ "checkpoint": checkpoint.id.to_string() }),
        };
        let state = state(session, &session.at_sequence(item.sequence())?)?;
        moments.push(json!({ "number": item.sequence(), "what": what, "state": state }));
    }
    moments.push(json!({ "number": "head", "state": state(session, &session.head()?)? }));
    Ok(moments)
}

/// Replaces values that are too long to print by short hashes.
fn short(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= 400 {
        return value.clone();
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    json!(format!("{} bytes, FNV-1a {hash:016x}", text.len()))
}

fn state(session: &Session, moment: &ResolvedMoment) -> Result<Value> {
    session.check_digest(moment)?;
    let state = session.state(moment)?;
    let mut claims = Vec::new();
    for entry in state.claims().entries() {
        let (key, entry) = entry?;
        claims.push(json!([key.to_string(), entry.added_at, entry.value]));
    }
    let mut facts = Vec::new();
    for kind in Kind::facts() {
        for known in state.facts_of(kind)? {
            facts.push(json!([known.fact, known.source.as_deref()]));
        }
    }
    let branches: Vec<_> = state
        .branches()?
        .into_iter()
        .map(|branch| json!([branch.name, branch.base, branch.revision, branch.status]))
        .collect();
    let time: Option<Timestamp> = state.time()?;
    Ok(json!({
        "time": time,
        "branch": state.current_branch()?,
        "claims": claims.len(),
        "all_claims": short(&Value::Array(claims)),
        "facts": short(&Value::Array(facts)),
        "branches": branches,
    }))
}

fn operations(session: &Session) -> Result<Vec<Value>> {
    let operations = session.operations(usize::MAX)?.into_iter();
    Ok(operations
        .map(|one| json!([one.id.to_string(), one.verb, one.effects, one.taken_back]))
        .collect())
}

fn sources(session: &Session, sources: &[(String, u64)]) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    for (source, _) in sources {
        let mut bytes = Vec::new();
        session.write_source::<forge_store::error::Error>(source, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        kept.push(json!([source, short(&json!(String::from_utf8_lossy(&bytes)))]));
    }
    Ok(kept)
}
