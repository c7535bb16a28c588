//! The MCP server: forge's commands for coding agents, as tools, resources and prompts.
//!
//! * `tool`: the tools, one file per family, with typed arguments and typed answers. They run the
//!   same verbs as the command line and take their reports; nothing here stores data itself.
//! * `resource` and `prompt`: data at an address, and texts to start with.
//! * `request`: one request's context, its session, and the results of its commands.
//! * `answer`: limits results, marks stored text, and adds hints to errors.
//! * `work_queue`: the one thread that executes requests, in the order of their arrival.
//! * `server`: the protocol.
//! * `line_transport` and `http`: the two transports.

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

/// The arguments and the environment of the server, with which every request starts.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// The flags the server was started with.
    pub global: GlobalArgs,
    pub environment: Environment,
}

/// Creates a runtime with only this thread: the thread of the [`work_queue`] does the work, so more
/// threads would not help.
pub fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::io("cannot begin to serve", error))
}
