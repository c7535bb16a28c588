//! Reads one line, and the messages in it.

use super::agent;
use super::call_failure::is_refusal;
use super::line::{
    CallDenial, ClaudeLine, ClaudeMessage, ClaudeTokenUsage, CompactionMetadata, LocatedText,
    ProgressPayload, parsed, unreadable,
};
use super::line_context::{LineSpeaker, PieceBuilder, SpokenLine, fields, flag};
use super::open_call::CallRequest;
use super::tool_result::ClaudeCallResult;
use crate::inference;
use crate::long_text;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};

const INTERRUPTED: &str = "[Request interrupted";

impl PieceBuilder<'_> {
    /// Reads one line.
    pub(crate) fn read_line(&mut self, line: &ClaudeLine<'_>) -> Result<(), String> {
        self.session(line);
        let kind = line.kind.text().unwrap_or_default();
        self.line.cwd = line.cwd.text().map(str::to_owned);
        self.line.git_branch = line.git_branch.text().map(str::to_owned);
        if line.is_sidechain.0 && line.agent_id.text().is_some_and(agent::is_copy) {
            return Ok(());
        }
        match kind {
            "progress" => return self.progress(line),
            "queue-operation" | "attachment" | "pr-link" => {
                // A line without a valid time is not an event.
                if let Ok(at) = time(line.timestamp.text()) {
                    self.line.at = at;
                    self.read_other_line(kind, line);
                }
                return Ok(());
            }
            _ => {}
        }
        let found = spoken_line(line, line.timestamp.text(), line.denial())?;
        let Some((at, spoken)) = found else { return Ok(()) };
        let (speaker, uuid) = (spoken.speaker, spoken.uuid);
        self.line.at = at;
        if line.is_sidechain.0 {
            self.line.agent = Some(self.agent_of(line, &spoken));
            let value = self.read_spoken_line(&spoken);
            if speaker == LineSpeaker::User
                && let Some((text, pointer)) = spoken.content.full_text()
            {
                self.notices(&text, &format!("/message/content{pointer}"));
            }
            self.agent_spoke(&spoken, value);
            return Ok(());
        }
        self.carry.session.started_at.get_or_insert(at);
        let mut value = fields([
            ("parent", line.parent_uuid.text().into()),
            ("cwd", self.line.cwd.clone().into()),
            ("git_branch", self.line.git_branch.clone().into()),
            ("meta", flag(line.is_meta.0)),
            ("compact_summary", flag(line.is_compact_summary.0)),
            ("api_error", flag(line.is_api_error_message.0)),
        ]);
        value.extend(self.read_spoken_line(&spoken));
        if speaker == LineSpeaker::System {
            self.system(line, uuid, &mut value);
        }
        match speaker {
            _ if line.is_compact_summary.0 => self.compaction_summary(line, &spoken),
            LineSpeaker::User => self.user(line, &spoken),
            LineSpeaker::Assistant => {
                self.queue_passed();
                self.model(&spoken);
            }
            LineSpeaker::System if line.subtype.is("local_command") => {
                self.local_command(line, uuid);
            }
            LineSpeaker::System => {}
        }
        self.fact(Kind::Message, uuid, value);
        if speaker == LineSpeaker::Assistant
            && let Some((text, _)) = spoken.content.full_text()
        {
            self.infer(uuid, &text);
        }
        self.time_checkpoint(at, uuid);
        Ok(())
    }

    fn session(&mut self, line: &ClaudeLine<'_>) {
        let session = &mut self.carry.session;
        let update = |field: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| field.as_deref() != Some(value)) {
                *field = Some(value.to_owned());
            }
        };
        update(&mut session.id, line.session_id.text());
        update(&mut session.cwd, line.cwd.text());
        update(&mut session.git_branch, line.git_branch.text());
        // A title that a person gave has priority.
        update(&mut session.title, line.custom_title.text());
        update(&mut session.ai_title, line.ai_title.text());
    }

    fn progress(&mut self, line: &ClaudeLine<'_>) -> Result<(), String> {
        let Ok(progress) = parsed::<ProgressPayload<'_>>(line.data) else { return Ok(()) };
        let (true, Some(agent)) = (progress.kind.is("agent_progress"), progress.agent_id.text())
        else {
            return Ok(());
        };
        let nested: ClaudeLine<'_> = parsed(progress.message)?;
        let written_at = nested.timestamp.text().or(line.timestamp.text());
        let found = spoken_line(&nested, written_at, CallDenial::default())?;
        let Some((at, spoken)) = found else { return Ok(()) };
        self.line.at = at;
        self.line.agent = Some(agent.to_owned());
        self.line.base = "/data/message";
        self.note_agent(agent, line.parent_tool_use_id.text(), |work| {
            let prompt =
                progress.prompt.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
            prompt.map(|prompt| {
                long_text::value(&prompt, work.line.place, || "/data/prompt".to_owned())
            })
        });
        let value = self.read_spoken_line(&spoken);
        self.agent_spoke(&spoken, value);
        Ok(())
    }

    /// Reads the message of a line: returns the fields of its fact, opens the calls in it, and
    /// closes the calls that its results answer.
    fn read_spoken_line(&mut self, spoken: &SpokenLine<'_>) -> FieldMap {
        let message = &spoken.message;
        let mut value = fields([
            ("role", message.role.text().unwrap_or(spoken.speaker.name()).into()),
            ("message_id", message.id.text().into()),
            ("model", message.model.text().into()),
        ]);
        if let Ok(usage) = parsed::<ClaudeTokenUsage>(message.usage) {
            value.extend(fields([
                ("input_tokens", usage.input_tokens.0.into()),
                ("output_tokens", usage.output_tokens.0.into()),
                ("cache_read_tokens", usage.cache_read_input_tokens.0.into()),
                ("cache_creation_tokens", usage.cache_creation_input_tokens.0.into()),
            ]));
        }
        let set = |value: &mut FieldMap, name: &str, field: Value| {
            value.insert(name.to_owned(), field);
        };
        if let Some((text, pointer)) =
            spoken.content.full_text().filter(|(text, _)| !text.is_empty())
        {
            set(&mut value, "text", self.text(&text, format!("/message/content{pointer}")));
            if spoken.speaker == LineSpeaker::User && text.starts_with(INTERRUPTED) {
                set(&mut value, "interrupted", true.into());
            }
        }
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        let alone = spoken.content.blocks().iter().filter(|block| block.is_result()).count() == 1;
        for (index, block) in spoken.content.blocks().iter().enumerate() {
            let at = format!("/message/content/{index}");
            if let Some(thinking) = block.thinking.text() {
                let thinking = self.text(thinking, format!("{at}/thinking"));
                set(&mut value, "thinking", thinking);
            } else if block.is_call() {
                let (id, name) = (block.id.text(), block.name.text());
                calls.push(Value::from([("id", id.into()), ("name", name.into())]));
                if let (Some(id), Some(name)) = (id, name) {
                    if block.kind.is("tool_use") {
                        self.call(id, name, block.input, &at);
                    } else {
                        self.call_of_api(id, name, block.input, &at);
                    }
                }
            } else if block.is_result() {
                let content = block.content().unwrap_or_default();
                let id = block.tool_use_id.text().unwrap_or_default();
                let (result, denial) = if alone {
                    (spoken.result, spoken.denial.clone())
                } else {
                    (None, CallDenial::default())
                };
                let answer =
                    ClaudeCallResult::from_line(block.error(), &content, result, &at, denial);
                let call = self.carry.calls.get(id).map(|call| &call.request);
                let is_command = matches!(call, Some(CallRequest::Command { .. }));
                let own = self.result(id, &answer);
                let shown = answer.shown_to_agent.as_ref();
                let text = shown.filter(|(text, _)| !own && !text.is_empty());
                let text = text.map(|(text, pointer)| self.text(text, pointer));
                let says_so = |(text, _): &LocatedText<'_>| is_refusal(text, is_command);
                let refused = answer.error && shown.is_some_and(says_so);
                if refused {
                    set(&mut value, "refused", true.into());
                }
                let error = flag(answer.error);
                results.push(Value::from([
                    ("id", id.into()),
                    ("error", error),
                    ("text", text.into()),
                ]));
            }
        }
        for (name, list) in [("tool_calls", calls), ("tool_results", results)] {
            if !list.is_empty() {
                set(&mut value, name, Value::List(list));
            }
        }
        value
    }

    /// Adds a fact for each statement that rules find in a message of the agent, if inference is
    /// on.
    pub(crate) fn infer(&mut self, message: &str, text: &str) {
        let found = if self.infer { inference::inferences(message, text) } else { Vec::new() };
        self.facts.extend(
            found.into_iter().map(|(id, value)| self.line.fact(Kind::Inference, &id, value)),
        );
    }

    fn system(&mut self, line: &ClaudeLine<'_>, uuid: &str, value: &mut FieldMap) {
        let subtype = line.subtype.text();
        let raw = line.compact_metadata.or(line.microcompact_metadata);
        let compacted: CompactionMetadata<'_> = parsed(raw).unwrap_or_default();
        let dropped = compacted
            .compacted_tool_ids
            .as_ref()
            .map(|ids| ids.0.iter().filter_map(|id| id.0.clone()).collect::<Vec<_>>());
        value.extend(fields([
            ("subtype", subtype.into()),
            ("text", line.content.text().map(|text| self.text(text, "/content")).into()),
            ("duration_ms", line.duration_ms.0.into()),
            ("hook_count", line.hook_count.0.into()),
            ("trigger", compacted.trigger.text().into()),
            ("pre_tokens", compacted.pre_tokens.0.into()),
            ("post_tokens", compacted.post_tokens.0.into()),
            ("tokens_saved", compacted.tokens_saved.0.into()),
            ("compacted_tool_ids", dropped.into()),
        ]));
        if subtype == Some("compact_boundary") {
            self.compaction(line, uuid, &compacted);
        }
    }
}

/// Reads the message of a line that was written at this time. Returns `None` if the line has no
/// known speaker or no id.
fn spoken_line<'a>(
    line: &'a ClaudeLine<'a>,
    written_at: Option<&str>,
    denial: CallDenial<'a>,
) -> Result<Option<(Timestamp, SpokenLine<'a>)>, String> {
    let speaker = LineSpeaker::from_kind(line.kind.text().unwrap_or_default());
    let Some((speaker, uuid)) = speaker.zip(line.uuid.text()) else { return Ok(None) };
    let at = time(written_at)?;
    let message: ClaudeMessage<'_> = parsed(line.message)?;
    let content = message.content().map_err(unreadable)?;
    let result = line.tool_use_result;
    Ok(Some((at, SpokenLine { speaker, uuid, message, content, result, denial })))
}

fn time(text: Option<&str>) -> Result<Timestamp, String> {
    let text = text.ok_or("is a message without a time")?;
    Timestamp::parse_rfc3339(text).ok_or_else(|| {
        format!("has the time '{}', which is not RFC 3339", long_text::beginning(text, 40))
    })
}
