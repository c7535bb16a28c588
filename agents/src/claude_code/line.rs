//! The forms of a transcript's lines, with the fields that forge reads.

use crate::lenient::{
    self, LenientBool, LenientFlag, LenientId, LenientInteger, LenientList, LenientText,
};
use crate::long_text;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line of any type. Large values stay unparsed until they are needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(crate) struct ClaudeLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: LenientText<'a>,
    pub(crate) subtype: LenientText<'a>,
    pub(crate) uuid: LenientText<'a>,
    pub(crate) parent_uuid: LenientText<'a>,
    pub(crate) logical_parent_uuid: LenientText<'a>,
    pub(crate) timestamp: LenientText<'a>,
    pub(crate) session_id: LenientText<'a>,
    pub(crate) cwd: LenientText<'a>,
    pub(crate) git_branch: LenientText<'a>,
    pub(crate) agent_id: LenientText<'a>,
    pub(crate) is_sidechain: LenientFlag,
    pub(crate) is_meta: LenientFlag,
    pub(crate) is_compact_summary: LenientFlag,
    pub(crate) is_api_error_message: LenientFlag,
    pub(crate) message: Option<&'a RawValue>,
    pub(crate) tool_use_result: Option<&'a RawValue>,
    pub(crate) data: Option<&'a RawValue>,
    #[serde(borrow, rename = "parentToolUseID")]
    pub(crate) parent_tool_use_id: LenientText<'a>,
    pub(crate) content: LenientText<'a>,
    pub(crate) duration_ms: LenientInteger,
    pub(crate) hook_count: LenientInteger,
    pub(crate) compact_metadata: Option<&'a RawValue>,
    pub(crate) microcompact_metadata: Option<&'a RawValue>,
    pub(crate) custom_title: LenientText<'a>,
    pub(crate) ai_title: LenientText<'a>,
    // Who wrote the text.
    pub(crate) origin: Option<&'a RawValue>,
    pub(crate) prompt_source: LenientText<'a>,
    pub(crate) turn_origin: LenientText<'a>,
    pub(crate) forked_from: Option<&'a RawValue>,
    #[serde(borrow, rename = "sourceToolUseID")]
    pub(crate) source_tool_use_id: LenientText<'a>,
    pub(crate) is_visible_in_transcript_only: LenientFlag,
    pub(crate) permission_mode: LenientText<'a>,
    // Why a call did not run.
    pub(crate) tool_denial_kind: LenientText<'a>,
    pub(crate) tool_denial_before_run: LenientFlag,
    pub(crate) tool_denial_after_run: LenientFlag,
    pub(crate) tool_call_ended: LenientText<'a>,
    pub(crate) permission_decision: Option<&'a RawValue>,
    // Lines that are not messages.
    pub(crate) attachment: Option<&'a RawValue>,
    pub(crate) operation: LenientText<'a>,
    pub(crate) reason: LenientText<'a>,
    pub(crate) pr_url: LenientText<'a>,
}

impl<'a> ClaudeLine<'a> {
    /// Returns the fields of the line about a call that did not run or did not end.
    pub(super) fn denial(&self) -> CallDenial<'a> {
        CallDenial {
            kind: self.tool_denial_kind.clone(),
            before_run: self.tool_denial_before_run.0 || self.tool_call_ended.is("not_started"),
            after_run: self.tool_denial_after_run.0,
            rejected: self.permission_decision.is_some_and(is_rejection),
        }
    }
}

/// The fields of a line about a call that did not run or did not end.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallDenial<'a> {
    pub(crate) kind: LenientText<'a>,
    pub(crate) before_run: bool,
    pub(crate) after_run: bool,
    /// Whether the permission to run was denied.
    pub(crate) rejected: bool,
}

/// Whether a `permissionDecision` denies the call. It is a word, or an object with the word.
fn is_rejection(raw: &RawValue) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct PermissionDecision<'a> {
        #[serde(borrow)]
        decision: LenientText<'a>,
        #[serde(borrow)]
        behavior: LenientText<'a>,
    }
    let word: LenientText<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    let fields: PermissionDecision<'_> = lenient::object(Some(raw));
    let words = [word.text(), fields.decision.text(), fields.behavior.text()];
    words
        .into_iter()
        .flatten()
        .any(|word| matches!(word, "reject" | "rejected" | "deny" | "denied"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(crate) struct CompactionMetadata<'a> {
    pub(crate) trigger: LenientText<'a>,
    pub(crate) pre_tokens: LenientInteger,
    pub(crate) tokens_saved: LenientInteger,
    pub(crate) post_tokens: LenientInteger,
    pub(crate) compacted_tool_ids: Option<LenientList<LenientId>>,
    pub(crate) preserved_messages: Option<&'a RawValue>,
}

/// The ids of the messages that a compaction kept word for word.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PreservedMessages {
    pub(crate) uuids: LenientList<LenientId>,
    pub(crate) all_uuids: LenientList<LenientId>,
}

/// The fields of attachments of all types.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(crate) struct ClaudeAttachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: LenientText<'a>,
    // A queued command.
    pub(crate) prompt: Option<&'a RawValue>,
    pub(crate) command_mode: LenientText<'a>,
    pub(crate) origin: Option<&'a RawValue>,
    pub(crate) is_meta: LenientFlag,
    // A file that another program changed.
    pub(crate) filename: LenientText<'a>,
    pub(crate) snippet: LenientText<'a>,
    // The state of a background task.
    pub(crate) task_id: LenientId,
    pub(crate) status: LenientText<'a>,
    // The diagnostics of the editor.
    pub(crate) files: Option<&'a RawValue>,
    // The goal of the session.
    pub(crate) condition: LenientText<'a>,
    pub(crate) reason: LenientText<'a>,
    pub(crate) met: LenientFlag,
    pub(crate) failed: LenientFlag,
}

/// The `data` of a progress line.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(crate) struct ProgressPayload<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: LenientText<'a>,
    pub(crate) agent_id: LenientText<'a>,
    pub(crate) prompt: Option<&'a RawValue>,
    /// The line of the sub-agent.
    pub(crate) message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(crate) struct ClaudeMessage<'a> {
    pub(crate) role: LenientText<'a>,
    pub(crate) id: LenientText<'a>,
    pub(crate) model: LenientText<'a>,
    pub(crate) usage: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}

/// The tokens that a request used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClaudeTokenUsage {
    pub(crate) input_tokens: LenientInteger,
    pub(crate) output_tokens: LenientInteger,
    pub(crate) cache_read_input_tokens: LenientInteger,
    pub(crate) cache_creation_input_tokens: LenientInteger,
}

/// A part of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(crate) struct ClaudeBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: LenientText<'a>,
    pub(crate) text: LenientText<'a>,
    pub(crate) thinking: LenientText<'a>,
    pub(crate) id: LenientText<'a>,
    pub(crate) name: LenientText<'a>,
    pub(crate) input: Option<&'a RawValue>,
    pub(crate) tool_use_id: LenientText<'a>,
    pub(crate) is_error: LenientBool,
    content: Option<&'a RawValue>,
    /// Whether the block is a plain text instead of an object.
    #[serde(skip)]
    pub(crate) plain: bool,
}

/// The content of a message or of a tool's result.
#[derive(Debug, Default)]
pub(crate) enum MessageContent<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Blocks(Vec<ClaudeBlock<'a>>),
}

/// A text, and the pointer from the content to this text: `""` for the whole content.
pub(crate) type LocatedText<'c> = (Cow<'c, str>, String);

impl<'a> ClaudeMessage<'a> {
    pub(crate) fn content(&self) -> serde_json::Result<MessageContent<'a>> {
        content(self.content)
    }
}

impl<'a> ClaudeBlock<'a> {
    /// Returns the pointer from the content to the text of this block, which has this index.
    pub(crate) fn pointer(&self, index: usize) -> String {
        if self.plain { format!("/{index}") } else { format!("/{index}/text") }
    }

    pub(crate) fn content(&self) -> serde_json::Result<MessageContent<'a>> {
        content(self.content)
    }

    /// Whether the block is a call of a tool. Calls of tools that the API runs have other types.
    pub(crate) fn is_call(&self) -> bool {
        self.kind.text().is_some_and(|kind| kind.ends_with("tool_use"))
    }

    /// Whether the block is the result of a call.
    pub(crate) fn is_result(&self) -> bool {
        self.kind.text().is_some_and(|kind| kind.ends_with("tool_result"))
    }

    /// Returns whether the call of a result failed. The API says it in the type of the content.
    pub(crate) fn error(&self) -> Option<bool> {
        let kind: LenientText<'_> = lenient::field(self.content, "type");
        let failed = kind.text().is_some_and(|kind| kind.ends_with("_tool_result_error"));
        self.is_error.0.or_else(|| failed.then_some(true))
    }
}

/// Parses a content: a text or a list of blocks. Any other JSON is no content.
///
/// # Errors
///
/// The content is a text with an invalid escape, such as a lone surrogate.
pub(crate) fn content(raw: Option<&RawValue>) -> serde_json::Result<MessageContent<'_>> {
    let Some(raw) = raw else { return Ok(MessageContent::Nothing) };
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: LenientText<'_> = serde_json::from_str(raw.get())?;
            Ok(text.0.map_or(MessageContent::Nothing, MessageContent::Text))
        }
        Some(b'[') => Ok(MessageContent::Blocks(lenient::elements(raw.get(), |element| {
            let text: LenientText<'_> = serde_json::from_str(element).ok()?;
            Some(ClaudeBlock { plain: text.0.is_some(), text, ..ClaudeBlock::default() })
        }))),
        _ => Ok(MessageContent::Nothing),
    }
}

impl<'a> MessageContent<'a> {
    pub(crate) fn blocks(&self) -> &[ClaudeBlock<'a>] {
        if let Self::Blocks(blocks) = self { blocks } else { &[] }
    }

    /// Returns all text of the content, joined; `None` if there is none. The pointer leads to the
    /// block if only one block has text, otherwise to the whole content.
    pub(crate) fn full_text(&self) -> Option<LocatedText<'_>> {
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
        let all = long_text::join(blocks.iter().filter_map(|block| block.text.0.as_deref()));
        Some((Cow::Owned(all), String::new()))
    }
}

/// Parses JSON that was left unparsed in a line; absent JSON gives the default.
///
/// # Errors
///
/// The JSON does not have the form of `T`: the error is a text for a report.
pub(crate) fn parsed<'a, T: Deserialize<'a> + Default>(
    raw: Option<&'a RawValue>,
) -> Result<T, String> {
    raw.map_or_else(|| Ok(T::default()), |raw| serde_json::from_str(raw.get()).map_err(unreadable))
}

pub(super) fn unreadable(error: impl std::fmt::Display) -> String {
    format!("has a message that cannot be read: {error}")
}
