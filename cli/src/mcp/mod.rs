//! The MCP server: what forge's commands do, offered to coding agents as tools, resources and prompts.
//!
//! * `tool`: the tools, one file a family: typed arguments in, a typed answer out. They run the same commands as the
//!   command line does; nothing here knows how to store.
//! * `resource` and `prompt`: what can be read by an address, and texts to begin with.
//! * `visit`: one request's context, the session it lands in, and what its commands found.
//! * `answer`: how results are bounded, how stored text is shown, how errors say the next step.
//! * `desk`: the one thread that does the work, in the order in which it was asked for.
//! * `server`: the protocol's side of all this.
//! * `line` and `http`: the two ways in.

mod answer;
mod cursor;
pub mod http;
pub mod line_transport;
mod prompt;
mod request;
mod resource;
mod schema;
pub mod server;
mod session_choice;
pub mod tool;
pub mod work_queue;

pub use server::ForgeServer;

use crate::args::GlobalArgs;
use crate::context::Environment;
use crate::error::CommandError;

/// What every request starts from: the server's own arguments and environment.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// The flags the server was started with.
    pub global: GlobalArgs,
    /// Its environment.
    pub environment: Environment,
}

/// A runtime of this thread alone: the work is done at the [`work_queue`], so nothing is won by more.
///
/// # Errors
///
/// If the system gives none.
pub fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::io("cannot begin to serve", error))
}
