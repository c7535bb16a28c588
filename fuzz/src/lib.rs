//! The fuzz targets. Each is a function of bytes that panics if a property is violated. `targets/`
//! passes them to libFuzzer; `docs/reliability.md` lists the runs.

mod agent;
mod bundle;
mod bytes;
mod chance;
mod history;
mod journal;
mod merge;
mod stream;
mod text;

#[path = "../../systems/tests/it/thread/rules/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod rules;

pub use agent::{claude_code, codex, gemini, hook};
pub use bundle::bundle;
pub use bytes::{
    delta, object, record, remote_marker, remote_notice, remote_pack, remote_ref, rows,
};
pub use chance::getrandom;
pub use history::thread;
pub use journal::journal;
pub use merge::merge;
pub use stream::{events, progress};
pub use text::{moment, redact, screen, template};

use forge_store::model::Timestamp;

/// The present time in all fuzz targets.
const NOW: Timestamp = Timestamp::from_micros(1_770_000_000_000_000);
