//! The kinds of entities.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The error for a word that names no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind '{0}': the kinds are {names}", names = names())]
pub struct UnknownKind(pub String);

fn names() -> String {
    Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal, $plural:literal;)*) => {
        /// The kind of an entity. Claims are held and are on branches; facts happened and belong to
        /// the session.
        ///
        /// The order of the kinds is the order of entities in a state. Codes are stored, so they
        /// never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $variant = $code,)* }

        impl Kind {
            /// All kinds, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the singular word for this kind.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the plural word: the key of its array in the JSON of a state.
            #[must_use]
            pub const fn plural(self) -> &'static str {
                match self { $(Self::$variant => $plural,)* }
            }

            /// Returns the kind with this durable code.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

kinds! {
    /// What might explain the problem.
    Hypothesis = 1, "hypothesis", "hypotheses";
    /// What speaks for or against a hypothesis.
    Evidence = 2, "evidence", "evidence";
    /// What is held to be true.
    Belief = 3, "belief", "beliefs";
    /// That one belief rests on another.
    Dependency = 4, "dependency", "dependencies";
    /// What is not known and should be.
    Gap = 5, "gap", "gaps";
    /// A free remark.
    Note = 6, "note", "notes";
    /// The output of a step of a run for an item.
    Output = 7, "output", "outputs";
    /// An item that a run takes through its steps.
    Item = 8, "item", "items";
    /// How far a long pipeline has come.
    Progress = 9, "progress", "progress";
    /// A message of an LLM agent's thread.
    ThreadMessage = 10, "thread_message", "thread_messages";
    /// A program of several agents: the checkpoints of its agents at one moment.
    Program = 11, "program", "programs";
    /// A workflow run as a whole.
    Run = 12, "run", "runs";
    /// A message thread of an LLM agent: its form, its writer, its pending calls.
    Thread = 13, "thread", "threads";
    /// The latest step of a graph of an agent framework, in one namespace.
    GraphStep = 14, "graph_step", "graph_steps";
    /// A channel of a graph: how its value is divided into elements.
    Channel = 15, "channel", "channels";
    /// A part of a channel's value.
    ChannelElement = 16, "channel_element", "channel_elements";
    /// A value that a memory holds under a key.
    MemoryItem = 17, "memory_item", "memory_items";
    /// A message of a conversation.
    Message = 32, "message", "messages";
    /// A person's instruction or question to an agent.
    Prompt = 33, "prompt", "prompts";
    /// A command that was run.
    Command = 34, "command", "commands";
    /// An edit with its patch, or a captured state of the code.
    Code = 35, "code", "code";
    /// A test, build or check and its result.
    Verification = 36, "verification", "verifications";
    /// A named value with unit and source.
    Measurement = 37, "measurement", "measurements";
    /// An entry of an agent's own task list.
    Task = 38, "task", "tasks";
    /// A sub-agent.
    Agent = 39, "agent", "agents";
    /// What rules read in a message.
    Inference = 40, "inference", "inferences";
    /// A use of a tool that is not a command, edit, task or sub-agent: reading a file, a search,
    /// fetching a page.
    Tool = 41, "tool", "tools";
    /// Something the session received that no person typed and no tool returned: a diagnostic, a
    /// link, a limit.
    Notice = 42, "notice", "notices";
    /// What tasks of a graph wrote after a step, before the next one.
    GraphWrite = 43, "graph_write", "graph_writes";
}

impl Kind {
    /// Returns the durable code of this kind.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns whether entities of this kind are claims (held, on a branch) rather than facts
    /// (happened, in the session).
    #[must_use]
    pub const fn is_claim(self) -> bool {
        self.code() < Self::Message.code()
    }

    /// Returns the letter before the number in new ids of claims of this kind: `H` in `H1`. Kinds
    /// without a letter of their own have `X`.
    #[must_use]
    pub const fn id_prefix(self) -> &'static str {
        match self {
            Self::Hypothesis => "H",
            Self::Evidence => "E",
            Self::Belief => "B",
            Self::Gap => "G",
            Self::Note => "N",
            _ => "X",
        }
    }

    /// Returns the kinds whose entities are claims.
    pub fn claims() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_claim())
    }

    /// Returns the kinds whose entities are facts.
    pub fn facts() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| !kind.is_claim())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    /// Parses the singular or plural word of a kind.
    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == text || kind.plural() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.name())
        } else {
            serializer.serialize_u8(self.code())
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
        } else {
            let code = u8::deserialize(deserializer)?;
            Self::from_code(code)
                .ok_or_else(|| de::Error::custom(format!("unknown kind code {code}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_code_name_and_plural() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.plural().parse(), Ok(kind));
        }
        assert_eq!("theory".parse::<Kind>(), Err(UnknownKind("theory".to_owned())));
    }
}
