//! Pages of facts: facts recorded together and compressed together.

use super::codec::{DecodeError, pack, unpack};
use crate::model::Fact;
use serde::{Deserialize, Serialize};

/// Facts recorded together; a fact's ordinal is its index in the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactPage {
    version: u8,
    /// The source file that the texts of these facts refer to, if any.
    pub source: Option<String>,
    /// The facts.
    pub facts: Vec<Fact>,
}

const VERSION: u8 = 1;

impl FactPage {
    /// Creates a page.
    #[must_use]
    pub const fn new(source: Option<String>, facts: Vec<Fact>) -> Self {
        Self { version: VERSION, source, facts }
    }

    /// Encodes this page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        pack(self)
    }

    /// Decodes a page.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: Self = unpack("page of facts", bytes)?;
        if page.version == VERSION {
            Ok(page)
        } else {
            Err(DecodeError::new("page of facts", "unknown version"))
        }
    }
}
