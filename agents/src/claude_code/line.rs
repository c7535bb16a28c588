//! The lines of a transcript, as far as they are read.

use crate::lenient::{Flag, Name, Whole, Word};
use crate::text;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line of any type. What is large is left unread until it is known to matter.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Word<'a>,
    #[serde(borrow)]
    pub(crate) subtype: Word<'a>,
    #[serde(borrow)]
    pub(crate) uuid: Word<'a>,
    #[serde(borrow)]
    pub(crate) parent_uuid: Word<'a>,
    #[serde(borrow)]
    pub(crate) logical_parent_uuid: Word<'a>,
    #[serde(borrow)]
    pub(crate) timestamp: Word<'a>,
    #[serde(borrow)]
    pub(crate) session_id: Word<'a>,
    #[serde(borrow)]
    pub(crate) cwd: Word<'a>,
    #[serde(borrow)]
    pub(crate) git_branch: Word<'a>,
    #[serde(borrow)]
    pub(crate) agent_id: Word<'a>,
    pub(crate) is_sidechain: Flag,
    pub(crate) is_meta: Flag,
    pub(crate) is_compact_summary: Flag,
    pub(crate) is_api_error_message: Flag,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) data: Option<&'a RawValue>,
    #[serde(borrow, rename = "parentToolUseID")]
    pub(crate) parent_tool_use_id: Word<'a>,
    #[serde(borrow)]
    pub(crate) content: Word<'a>,
    pub(crate) duration_ms: Whole,
    pub(crate) hook_count: Whole,
    #[serde(borrow)]
    pub(crate) compact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) microcompact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) custom_title: Word<'a>,
    #[serde(borrow)]
    pub(crate) ai_title: Word<'a>,
}

/// What a compaction boundary says of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Compacted<'a> {
    #[serde(borrow)]
    pub(crate) trigger: Word<'a>,
    pub(crate) pre_tokens: Whole,
    pub(crate) tokens_saved: Whole,
    pub(crate) compacted_tool_ids: Option<Vec<Name>>,
}

/// The `data` of a progress line.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Progress<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Word<'a>,
    #[serde(borrow)]
    pub(crate) agent_id: Word<'a>,
    #[serde(borrow)]
    pub(crate) prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
}

/// A sub-agent's line inside a progress line.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Nested<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Word<'a>,
    #[serde(borrow)]
    pub(crate) uuid: Word<'a>,
    #[serde(borrow)]
    pub(crate) timestamp: Word<'a>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_result: Option<&'a RawValue>,
}

/// What was said.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Word<'a>,
    #[serde(borrow)]
    pub(crate) id: Word<'a>,
    #[serde(borrow)]
    pub(crate) model: Word<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Word<'a>,
    #[serde(borrow)]
    pub(crate) text: Word<'a>,
    #[serde(borrow)]
    pub(crate) thinking: Word<'a>,
    #[serde(borrow)]
    pub(crate) id: Word<'a>,
    #[serde(borrow)]
    pub(crate) name: Word<'a>,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Word<'a>,
    pub(crate) is_error: Flag,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The content of a message or of a tool's result.
#[derive(Debug, Default)]
pub(crate) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// A text and where it stands below the content: `""` if it is the whole.
pub(crate) type Said<'c> = (Cow<'c, str>, String);

impl<'a> Message<'a> {
    pub(crate) fn content(&self) -> serde_json::Result<Content<'a>> {
        content(self.content)
    }
}

impl<'a> Block<'a> {
    pub(crate) fn content(&self) -> serde_json::Result<Content<'a>> {
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
    pub(crate) fn blocks(&self) -> &[Block<'a>] {
        if let Self::Blocks(blocks) = self { blocks } else { &[] }
    }

    /// All its text.
    pub(crate) fn said(&self) -> Option<Said<'_>> {
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
