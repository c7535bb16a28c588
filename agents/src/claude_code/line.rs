//! The lines of a transcript, as far as they are read.

use crate::lenient::{Flag, Name, Whole, Word};
use crate::text;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line of any type. What is large is left unread until it is known to matter.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'a>,
    #[serde(borrow)]
    pub(super) subtype: Word<'a>,
    #[serde(borrow)]
    pub(super) uuid: Word<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: Word<'a>,
    #[serde(borrow)]
    pub(super) logical_parent_uuid: Word<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Word<'a>,
    #[serde(borrow)]
    pub(super) session_id: Word<'a>,
    #[serde(borrow)]
    pub(super) cwd: Word<'a>,
    #[serde(borrow)]
    pub(super) git_branch: Word<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Word<'a>,
    pub(super) is_sidechain: Flag,
    pub(super) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_api_error_message: Flag,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow, rename = "parentToolUseID")]
    pub(super) parent_tool_use_id: Word<'a>,
    #[serde(borrow)]
    pub(super) content: Word<'a>,
    pub(super) duration_ms: Whole,
    pub(super) hook_count: Whole,
    #[serde(borrow)]
    pub(super) compact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) microcompact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) custom_title: Word<'a>,
    #[serde(borrow)]
    pub(super) ai_title: Word<'a>,
}

/// What a compaction boundary says of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Compacted<'a> {
    #[serde(borrow)]
    pub(super) trigger: Word<'a>,
    pub(super) pre_tokens: Whole,
    pub(super) tokens_saved: Whole,
    pub(super) compacted_tool_ids: Option<Vec<Name>>,
}

/// The `data` of a progress line.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Progress<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Word<'a>,
    #[serde(borrow)]
    pub(super) prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
}

/// A sub-agent's line inside a progress line.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Nested<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'a>,
    #[serde(borrow)]
    pub(super) uuid: Word<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Word<'a>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_result: Option<&'a RawValue>,
}

/// What was said.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Word<'a>,
    #[serde(borrow)]
    pub(super) id: Word<'a>,
    #[serde(borrow)]
    pub(super) model: Word<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'a>,
    #[serde(borrow)]
    pub(super) text: Word<'a>,
    #[serde(borrow)]
    pub(super) thinking: Word<'a>,
    #[serde(borrow)]
    pub(super) id: Word<'a>,
    #[serde(borrow)]
    pub(super) name: Word<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Word<'a>,
    pub(super) is_error: Flag,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The content of a message or of a tool's result.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// A text and where it stands below the content: `""` if it is the whole.
pub(super) type Said<'c> = (Cow<'c, str>, String);

impl<'a> Message<'a> {
    pub(super) fn content(&self) -> serde_json::Result<Content<'a>> {
        content(self.content)
    }
}

impl<'a> Block<'a> {
    pub(super) fn content(&self) -> serde_json::Result<Content<'a>> {
        content(self.content)
    }
}

fn content(raw: Option<&RawValue>) -> serde_json::Result<Content<'_>> {
    let Some(raw) = raw else { return Ok(Content::Nothing) };
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: Word<'_> = serde_json::from_str(raw.get())?;
            Ok(text.0.map_or(Content::Nothing, Content::Text))
        }
        Some(b'[') => serde_json::from_str(raw.get()).map(Content::Blocks),
        _ => Ok(Content::Nothing),
    }
}

impl<'a> Content<'a> {
    pub(super) fn blocks(&self) -> &[Block<'a>] {
        if let Self::Blocks(blocks) = self { blocks } else { &[] }
    }

    /// All its text.
    pub(super) fn said(&self) -> Option<Said<'_>> {
        let blocks = match self {
            Self::Nothing => return None,
            Self::Text(text) => return Some((Cow::Borrowed(text), String::new())),
            Self::Blocks(blocks) => blocks,
        };
        let mut texts = blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| Some((index, block.text.0.as_deref()?)));
        let (index, first) = texts.next()?;
        if texts.next().is_none() {
            return Some((Cow::Borrowed(first), format!("/{index}/text")));
        }
        let all = text::join(blocks.iter().filter_map(|block| block.text.0.as_deref()));
        Some((Cow::Owned(all), String::new()))
    }
}
