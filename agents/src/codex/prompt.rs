//! Decides who wrote a user message: the person, or Codex in the person's name.

use super::state::ForkCopyState;
use crate::claude_code::line_context::{PieceBuilder, fields};
use crate::lenient::{LenientList, LenientText, field};
use crate::long_text;
use crate::text_hash::text_hash;
use forge_store::model::{Kind, Timestamp};
use serde_json::value::RawValue;
use std::ops::Range;

/// The kinds of lines that report a prompt, one bit each.
pub(super) mod source {
    /// The message as the model receives it.
    pub(crate) const MESSAGE: u8 = 1;
    /// An event for the screen.
    pub(crate) const EVENT: u8 = 2;
    /// A completed item.
    pub(crate) const ITEM: u8 = 4;
}

/// The headings that an editor writes before the person's request.
const REQUESTS: [&str; 2] = ["## My request for Codex:", "## My request:"];
/// The beginnings of the context that an editor or the desktop app writes. Only after one of them
/// is the short heading theirs.
const EDITOR: [&str; 16] = [
    "# Context from my IDE setup:",
    "# Files mentioned by the user:",
    "# Applications mentioned by the user:",
    "# Selected text:",
    "# Response annotations:",
    "# Diff comments:",
    "# Browser comments:",
    "# MCP app context:",
    "# Failing PR checks:",
    "# Pull request merge conflict:",
    "# Chrome tabs:",
    "# In app browser:",
    "# Worktree instructions:",
    "## Prior conversation with Codex:",
    "## Referenced chats with Codex:",
    "## Referenced ChatGPT conversation:",
];
/// The element in which the desktop app writes the state of its browser before the person's text.
const BROWSER: &str = "in-app-browser-context";

/// The elements that Codex itself writes as user messages. They count only if the whole text
/// consists of them.
const INJECTED: [&str; 23] = [
    "user_instructions", "environment_context", "turn_aborted", "user_shell_command",
    "user_action", "subagent_notification", "hook_prompt", "skill", "goal_context",
    "permissions instructions", "collaboration_mode", "model_switch", "personality_spec",
    "ide_context", "realtime_conversation", "INSTRUCTIONS", BROWSER, "app-context", "heartbeat",
    "multi_agent_mode", "multi_agent_role", "realtime_delegation", "recommended_plugins",
];

/// Warnings that older versions added to the conversation as user messages, the texts before the
/// summary of a compacted conversation, and the requests for a summary or a review.
const WARNINGS: [&str; 9] = [
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged",
    "Another language model started to solve this problem and produced a summary",
    "You were originally given instructions from a user over one or more turns.",
    "You have exceeded the maximum number of tokens, please stop coding",
    "You are performing a CONTEXT CHECKPOINT COMPACTION.",
    "The following is the Codex agent history whose request action you are assessing",
    "The following is the Codex agent history added since your last approval assessment",
];

/// Whether Codex itself wrote this text in the person's name. A `<` at its beginning proves
/// nothing.
pub(super) fn is_injected(text: &str) -> bool {
    let mut text = text.trim();
    loop {
        if text.starts_with("# AGENTS.md instructions") {
            return text.ends_with("</INSTRUCTIONS>") || text.contains("\n<INSTRUCTIONS>");
        }
        if WARNINGS.iter().any(|warning| text.starts_with(warning)) {
            return true;
        }
        let Some(name) = injected_element(text) else { return false };
        let closing = format!("</{name}>");
        if text.ends_with(&closing) {
            return true;
        }
        let Some((_, after)) = text.split_once(&closing) else { return false };
        text = after.trim_start();
    }
}

/// Returns the name of the element at the beginning of a text if Codex writes such elements.
fn injected_element(text: &str) -> Option<&str> {
    let (tag, _) = text.strip_prefix('<')?.split_once('>')?;
    let name = INJECTED.into_iter().find(|name| {
        tag.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    let word = tag.split(' ').next().unwrap_or_default();
    let is_instructions = || {
        let ends = ["_instructions", "_context", "_notification"];
        word.starts_with("external_") || ends.iter().any(|end| word.ends_with(end))
    };
    name.or_else(|| is_instructions().then_some(word))
}

/// Whether a text takes the place of an image that Codex could not read.
fn is_unread_image(text: &str) -> bool {
    let text = text.trim();
    let forms = [
        ("Codex could not read the local image at `", "`: "),
        ("Codex cannot attach image at `", "`: unsupported image "),
        ("Image located at `", "` is invalid: "),
    ];
    !text.contains('\n')
        && forms.iter().any(|(begin, middle)| text.starts_with(begin) && text.contains(middle))
}

/// Whether a text only frames an attachment.
fn is_frame(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text == "<image>"
        || (text.starts_with("<image name=") && text.ends_with('>'))
}

/// Returns the part of a text that the person wrote: the text after the context that the desktop
/// app or an editor wrote, otherwise all.
fn request(text: &str) -> Range<usize> {
    let begin = text.trim_start();
    let browser = begin.strip_prefix('<').is_some_and(|tag| tag.starts_with(BROWSER));
    let closing = format!("</{BROWSER}>");
    let after_browser = begin.split_once(closing.as_str()).filter(|_| browser);
    let rest = after_browser.map_or(begin, |(_, rest)| rest.trim_start());
    let by_editor = after_browser.is_some() || EDITOR.iter().any(|it| rest.starts_with(it));
    let typed = match (after_heading(rest, by_editor), after_browser) {
        (Some(after), _) => after,
        (None, Some(_)) => rest,
        (None, None) => return 0..text.len(),
    };
    let start = text.len() - typed.trim_start().len();
    start..start + typed.trim().len()
}

/// Returns the text after the editor's heading, if the text is an editor's context with a heading
/// on a line of its own. If `by_editor`, the heading may be the short one.
fn after_heading(text: &str, by_editor: bool) -> Option<&str> {
    let headings = REQUESTS.iter().take(if by_editor { REQUESTS.len() } else { 1 });
    let ends = headings.filter_map(|heading| {
        let mut found = text.match_indices(heading).map(|(at, _)| at);
        let at = found.find(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'))?;
        Some(at + heading.len())
    });
    let end = ends.min().filter(|_| text.starts_with('#'))?;
    text.get(end..)
}

/// Returns the part of a text that the person wrote, if nothing says who wrote the text; `None` if
/// the person wrote nothing.
pub(crate) fn typed_part(text: &str) -> Option<&str> {
    let typed = text.get(request(text)).filter(|typed| !typed.trim().is_empty())?;
    (!is_injected(text)).then_some(typed)
}

/// Returns what the person wrote in a user message: a text, the range in it, and the pointer to the
/// text. `None` if Codex wrote the whole message.
pub(super) fn typed_in_message(
    content: Option<&RawValue>,
    metadata: Option<&RawValue>,
) -> Option<(String, Range<usize>, String)> {
    let raw = content?;
    let kinds: LenientList<LenientText<'_>> = field(metadata, "content_item_kinds");
    let kinds = kinds.0;
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        let (text, pointer) = long_text::content_text(Some(raw), "/content")?;
        let range = request(&text);
        return (!is_injected(&text)).then_some((text, range, pointer));
    };
    let known = kinds.len() == items.len();
    let mut texts: Vec<(usize, String, String)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some((text, pointer)) =
            long_text::content_text(Some(item), &format!("/content/{index}"))
        else {
            continue;
        };
        let kind = kinds.get(index).and_then(LenientText::text).filter(|_| known);
        let by_person = match kind {
            Some(kind) if kind != "unknown" => kind == "user" || kind.starts_with("user."),
            _ => !is_injected(&text),
        };
        // A person can ask about such a text, but then it is the only block.
        let added = is_frame(&text) || (items.len() > 1 && is_unread_image(&text));
        if by_person && !added && !text.trim().is_empty() {
            texts.push((index, text, pointer));
        }
    }
    if let [_] = texts.as_slice() {
        let (_, text, pointer) = texts.pop()?;
        let range = request(&text);
        return Some((text, range, pointer));
    }
    let (first, last) = (texts.first()?.0, texts.last()?.0);
    // Several parts: a range of the whole content, from the first to the last of them.
    let before = joined_text(items.get(..first).unwrap_or_default());
    let parts = joined_text(items.get(first..=last).unwrap_or_default());
    let (whole, pointer) = long_text::content_text(Some(raw), "/content")?;
    let start = if before.is_empty() { 0 } else { before.len() + 1 };
    let range = start..(start + parts.len()).min(whole.len());
    let inner = request(whole.get(range.clone())?);
    let range = range.start + inner.start..range.start + inner.end;
    Some((whole, range, pointer))
}

/// Joins the texts of content blocks as [`long_text::content_text`] does for all blocks.
fn joined_text(items: &[&RawValue]) -> String {
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| long_text::content_text(Some(item), "").map(|(text, _)| text))
        .collect();
    long_text::join(texts.iter().map(String::as_str))
}

/// Adds a prompt if the person typed it in this session and it was not reported before. `part` is
/// the range of `text` that the person wrote.
pub(super) fn push_prompt(
    work: &mut PieceBuilder<'_>,
    id: &str,
    (text, part, pointer): (&str, Range<usize>, &str),
    source: u8,
) {
    let prompt_text = text.get(part.clone()).unwrap_or_default();
    let state = &mut work.carry.other.codex;
    if prompt_text.trim().is_empty() || state.sub_agent {
        return;
    }
    // The kinds of lines differ in how they join the parts of a prompt, and only the text of a
    // message has the frames of the images between the parts.
    let own = prompt_text.lines().filter(|line| !is_frame(line));
    let same: String = own.flat_map(str::split_whitespace).collect();
    if !state.is_news(text_hash(&same), source, work.line.at) {
        return;
    }
    work.carry.session.note_prompt(prompt_text);
    let value = fields([
        ("text", work.part(text, part, pointer)),
        ("cwd", work.line.cwd.clone().into()),
        ("git_branch", work.line.git_branch.clone().into()),
    ]);
    work.fact(Kind::Prompt, id, value);
}

/// Adds a prompt that an event reports as one text. The event itself shows that a person wrote it,
/// whatever the text looks like.
pub(super) fn push_event_prompt(
    work: &mut PieceBuilder<'_>,
    id: &str,
    text: &str,
    pointer: &str,
    source: u8,
) {
    push_prompt(work, id, (text, request(text), pointer), source);
}

/// The fields by which a line copied from another session is recognised.
#[derive(Debug)]
pub(super) struct LineOrigin<'a> {
    pub(super) at: Timestamp,
    pub(super) ordinal: Option<i64>,
    pub(super) turn: Option<&'a str>,
    /// Whether the line itself says that it was inherited.
    pub(super) inherited: bool,
}

impl LineOrigin<'_> {
    /// Whether the line is a copy from the session that this one was forked from: the line says so,
    /// or its number is less than that of the fork's first own line. Without numbers, copies follow
    /// the first line of the fork, and its own lines begin with a new turn or after a pause.
    pub(super) fn is_copied(&self, work: &mut PieceBuilder<'_>) -> bool {
        let state = &mut work.carry.other.codex;
        if self.inherited {
            return true;
        }
        if let (Some(own), Some(ordinal)) = (state.own_from, self.ordinal) {
            return ordinal < own;
        }
        let Some(copying) = &mut state.copying else { return false };
        let began = state.began;
        let own = match self.turn.and_then(made_at) {
            Some(made) => began.is_some_and(|began| made >= began),
            None => self.at.micros_since(copying.last) > ForkCopyState::PAUSE_MICROS,
        };
        let before = began.is_some_and(|began| self.at < began);
        if own && !before {
            state.copying = None;
            return false;
        }
        copying.last = self.at;
        true
    }
}

impl ForkCopyState {
    /// Copies are written without a pause; a person needs longer to type.
    const PAUSE_MICROS: i64 = 5_000_000;

    /// The state before any copy was seen: only a line older than the fork is a copy.
    pub(super) fn before(began: Timestamp) -> Self {
        Self { last: began.plus_micros(-2 * Self::PAUSE_MICROS) }
    }
}

/// Returns the creation time of a UUID of version 7, which begins with the milliseconds since 1970
/// (RFC 9562).
fn made_at(id: &str) -> Option<Timestamp> {
    let digits: String = id.chars().filter(|character| *character != '-').collect();
    let is_seven = digits.len() == 32 && digits.as_bytes().get(12) == Some(&b'7');
    let millis = i64::from_str_radix(digits.get(..12).filter(|_| is_seven)?, 16).ok()?;
    Some(Timestamp::from_micros(millis.saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_from_codex_only_as_a_whole_known_element() {
        for own in [
            "<environment_context>\n<cwd>/w</cwd>\n</environment_context>",
            "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>",
            "<hook_prompt hook_run_id=\"h1\">go on</hook_prompt>",
            "<apps_instructions>x</apps_instructions>",
            "<in-app-browser-context source=\"ambient-ui-state\">x</in-app-browser-context>",
            "<heartbeat>\n<instructions>look</instructions>\n</heartbeat>",
            // Regression: this element before the first prompt became the title.
            "<recommended_plugins>\n- a\n</recommended_plugins>",
            "<recommended_plugins>\n- a\n</recommended_plugins>\n# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n<environment_context>\n</environment_context>",
            "<turn_aborted>\nThe user interrupted\n</turn_aborted>",
            "Another language model started to solve this problem and produced a summary of it.",
            "You were originally given instructions from a user over one or more turns. Here they are",
            "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary",
            "The following is the Codex agent history whose request action you are assessing.",
        ] {
            assert!(is_injected(own), "{own}");
        }
        for typed in [
            "<div> does not render",
            "<div>all of it</div>",
            "<environment_context> is written twice, why?",
            "<environment_context>\n</environment_context>\nis written twice, why?",
            "# AGENTS.md instructions are ignored",
            "# AGENTS.md instructions\nwhat does <INSTRUCTIONS> mean?",
            "a < b",
            "<",
        ] {
            assert!(!is_injected(typed), "{typed}");
        }
    }

    #[test]
    fn the_editors_context_is_left_out() {
        for (text, expected) in [
            (
                "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nfix it\n",
                "fix it",
            ),
            (
                "# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\n\nlook",
                "look",
            ),
            (
                "what does ## My request for Codex: mean?",
                "what does ## My request for Codex: mean?",
            ),
            (
                "# Context from my IDE setup:\nis all I see",
                "# Context from my IDE setup:\nis all I see",
            ),
            ("# Context from my IDE setup:\n## My request for Codex:\n", ""),
            ("# Context from my IDE setup:\n## Tabs\n\n## My request:\nfix it", "fix it"),
            // Regression: the desktop app's context was kept before the short heading.
            ("# Response annotations:\n[{}]\n\n## My request:\nfix it", "fix it"),
            ("# Chrome tabs:\n- a\n\n## My request:\nfix it", "fix it"),
            ("## Prior conversation with Codex:\na\n\n## My request:\nfix it", "fix it"),
            ("# Response annotations:\nof my own", "# Response annotations:\nof my own"),
            ("## My request for Codex:\nfix it", "fix it"),
            ("# Task\n## My request:\nfix it", "# Task\n## My request:\nfix it"),
            (
                "<in-app-browser-context source=\"ambient-ui-state\">\na\n</in-app-browser-context>\n\n## My request for Codex:\nfix it\n",
                "fix it",
            ),
            (
                "<in-app-browser-context>\na\n</in-app-browser-context>\nwhy is # b here?",
                "why is # b here?",
            ),
            ("<in-app-browser-context> is in my title", "<in-app-browser-context> is in my title"),
        ] {
            assert_eq!(&text[request(text)], expected);
        }
    }

    #[test]
    fn an_identifier_of_version_7_contains_its_creation_time() {
        let made = made_at("01a213d0-25e7-7de1-a77d-50419e41fc0a").unwrap();
        assert!(made.to_string().starts_with("2026-11-25T17:45:38"), "{made}");
        assert_eq!(made_at("t1"), None);
        assert_eq!(made_at("01a213d0-25e7-4de1-a77d-50419e41fc0a"), None);
    }
}
