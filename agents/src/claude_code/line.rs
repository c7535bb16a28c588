//! The lines of a transcript, as far as they are read.

use crate::lenient::{self, Flag, List, Name, Whole, Word};
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
    // Who spoke.
    #[serde(borrow)]
    pub(crate) origin: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) prompt_source: Word<'a>,
    #[serde(borrow)]
    pub(crate) forked_from: Option<&'a RawValue>,
    #[serde(borrow, rename = "sourceToolUseID")]
    pub(crate) source_tool_use_id: Word<'a>,
    pub(crate) is_visible_in_transcript_only: Flag,
    #[serde(borrow)]
    pub(crate) permission_mode: Word<'a>,
    // Why a call did not run.
    #[serde(borrow)]
    pub(crate) tool_denial_kind: Word<'a>,
    pub(crate) tool_denial_before_run: Flag,
    pub(crate) tool_denial_after_run: Flag,
    #[serde(borrow)]
    pub(crate) tool_call_ended: Word<'a>,
    // Lines that are no messages.
    #[serde(borrow)]
    pub(crate) attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) operation: Word<'a>,
    #[serde(borrow)]
    pub(crate) reason: Word<'a>,
    #[serde(borrow)]
    pub(crate) pr_url: Word<'a>,
}

impl<'a> Line<'a> {
    /// What the line says of a call that did not run or did not end.
    pub(super) fn denial(&self) -> Denial<'a> {
        Denial {
            kind: self.tool_denial_kind.clone(),
            before_run: self.tool_denial_before_run.0 || self.tool_call_ended.is("not_started"),
            after_run: self.tool_denial_after_run.0,
        }
    }
}

/// What a line says of a call that did not run or did not end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denial<'a> {
    pub(crate) kind: Word<'a>,
    pub(crate) before_run: bool,
    pub(crate) after_run: bool,
}

/// What a compaction boundary says of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Compacted<'a> {
    #[serde(borrow)]
    pub(crate) trigger: Word<'a>,
    pub(crate) pre_tokens: Whole,
    pub(crate) tokens_saved: Whole,
    pub(crate) post_tokens: Whole,
    pub(crate) compacted_tool_ids: Option<List<Name>>,
    #[serde(borrow)]
    pub(crate) preserved_messages: Option<&'a RawValue>,
}

/// The messages that a compaction kept word for word.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Preserved {
    pub(crate) uuids: List<Name>,
    pub(crate) all_uuids: List<Name>,
}

/// Who or what spoke.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Source<'a> {
    #[serde(borrow)]
    pub(crate) kind: Word<'a>,
}

/// What an attachment holds, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Word<'a>,
    // A queued command.
    #[serde(borrow)]
    pub(crate) prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) command_mode: Word<'a>,
    #[serde(borrow)]
    pub(crate) origin: Option<&'a RawValue>,
    pub(crate) is_meta: Flag,
    // A file that was changed from outside.
    #[serde(borrow)]
    pub(crate) filename: Word<'a>,
    #[serde(borrow)]
    pub(crate) snippet: Word<'a>,
    // The state of a background task.
    pub(crate) task_id: Name,
    #[serde(borrow)]
    pub(crate) status: Word<'a>,
    // What the editor finds wrong.
    #[serde(borrow)]
    pub(crate) files: Option<&'a RawValue>,
    // The goal of the session.
    #[serde(borrow)]
    pub(crate) condition: Word<'a>,
    #[serde(borrow)]
    pub(crate) reason: Word<'a>,
    pub(crate) met: Flag,
    pub(crate) failed: Flag,
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
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The tokens that a request used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Whole,
    pub(crate) output_tokens: Whole,
    pub(crate) cache_read_input_tokens: Whole,
    pub(crate) cache_creation_input_tokens: Whole,
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
    /// It is a plain text, not an object.
    #[serde(skip)]
    pub(crate) plain: bool,
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
    /// Leads from the content to the text of this block, which is the one with this number.
    pub(crate) fn pointer(&self, index: usize) -> String {
        if self.plain { format!("/{index}") } else { format!("/{index}/text") }
    }

    pub(crate) fn content(&self) -> serde_json::Result<Content<'a>> {
        content(self.content)
    }
}

/// What a text or a list of content blocks says.
///
/// # Errors
///
/// It is neither.
pub(crate) fn content(raw: Option<&RawValue>) -> serde_json::Result<Content<'_>> {
    let Some(raw) = raw else { return Ok(Content::Nothing) };
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: Word<'_> = serde_json::from_str(raw.get())?;
            Ok(text.0.map_or(Content::Nothing, Content::Text))
        }
        Some(b'[') => Ok(Content::Blocks(lenient::elements(raw.get(), |element| {
            let text: Word<'_> = serde_json::from_str(element).ok()?;
            Some(Block { plain: text.0.is_some(), text, ..Block::default() })
        }))),
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
            let pointer = blocks.get(index).map_or_else(String::new, |block| block.pointer(index));
            return Some((Cow::Borrowed(first), pointer));
        }
        let all = text::join(blocks.iter().filter_map(|block| block.text.0.as_deref()));
        Some((Cow::Owned(all), String::new()))
    }
}
