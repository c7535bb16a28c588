//! Parses what coding agents send to their hooks, and formats the replies: five dialects, one event
//! type.
//!
//! [`HookEvent::read`] parses the standard input of a hook into one event, for every agent.
//! [`reply_budget`] returns how much text the agent accepts in reply to an event, [`answer`] writes
//! the text in the agent's own form, and [`tool_facts`] makes facts of a tool call. Nothing here
//! blocks an agent: no reply refuses, stops or asks anything.
//!
//! ```
//! use forge_agents::hook::{HookAgent, HookEvent, HookEventKind, answer, reply_budget};
//!
//! let input = r#"{"session_id": "s1", "cwd": "/w", "hook_event_name": "SessionStart",
//!     "source": "compact"}"#;
//! let event = HookEvent::read(HookAgent::Claude, "SessionStart", input.as_bytes())?;
//! assert!(matches!(event.kind, HookEventKind::SessionStart { .. }));
//! assert!(reply_budget(&event).is_some());
//! let said = answer(&event, Some("2 hypotheses are confirmed"));
//! assert!(said.contains("additionalContext"));
//! # Ok::<(), forge_agents::hook::HookInputError>(())
//! ```

mod command_end;
mod event;
mod other_tool;
mod parse_event;
mod prompt;
mod reply;
#[cfg(test)]
mod tests;
mod tool;

pub use event::{HookAgent, HookCommandEnd, HookEvent, HookEventKind, SessionStartKind, ToolUse};
pub use parse_event::{HookInputError, plain};
pub use prompt::prompt_fact;
pub use reply::{ReplyBudget, answer, reply_budget};
pub use tool::tool_facts;
