//! Lines that say something.

use super::line::{Compacted, Denial, Line, Message, Nested, Progress, Usage};
use super::outcome::Answer;
use super::refusal::is_refusal;
use super::scene::{Scene, Speaker, Spoken, Work, fields, flag};
use crate::inference;
use crate::text::{self, Place};
use forge_store::model::{Kind, Map, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

const INTERRUPTED: &str = "[Request interrupted";

impl Work<'_> {
    /// Reads one line.
    pub(crate) fn line(
        &mut self,
        line: &Line<'_>,
        place: Place,
        recorded_at: Timestamp,
    ) -> Result<(), String> {
        self.session(line);
        let kind = line.kind.text().unwrap_or_default();
        let scene = |at, agent, base| Scene {
            place,
            at,
            recorded_at,
            agent,
            base,
            cwd: line.cwd.text(),
            git_branch: line.git_branch.text(),
        };
        match kind {
            "progress" => return self.progress(line, scene),
            "queue-operation" | "attachment" | "pr-link" => {
                // Without a time it is no event.
                if let Ok(at) = time(line.timestamp.text()) {
                    self.beside(kind, line, &scene(at, None, ""));
                }
                return Ok(());
            }
            _ => {}
        }
        let (Some(speaker), Some(uuid)) = (Speaker::of(kind), line.uuid.text()) else {
            return Ok(());
        };
        let at = time(line.timestamp.text())?;
        let message: Message<'_> = parsed(line.message)?;
        let content = message.content().map_err(unreadable)?;
        let (result, denial) = (line.tool_use_result, line.denial());
        let spoken = Spoken { speaker, uuid, message, content, result, denial };
        if line.is_sidechain.0 {
            let agent = self.agent_of(line, &spoken);
            let scene = scene(at, Some(agent), "");
            let value = self.said(&scene, &spoken);
            if speaker == Speaker::User
                && let Some((text, pointer)) = spoken.content.said()
            {
                self.notices(&scene, &text, &format!("/message/content{pointer}"));
            }
            self.agent_spoke(&scene, &spoken, value);
            return Ok(());
        }
        let scene = scene(at, None, "");
        self.carry.session.started_at.get_or_insert(at);
        let mut value = fields([
            ("parent", line.parent_uuid.text().into()),
            ("cwd", scene.cwd.into()),
            ("git_branch", scene.git_branch.into()),
            ("meta", flag(line.is_meta.0)),
            ("compact_summary", flag(line.is_compact_summary.0)),
            ("api_error", flag(line.is_api_error_message.0)),
        ]);
        value.append(&mut self.said(&scene, &spoken));
        if speaker == Speaker::System {
            self.system(&scene, line, uuid, &mut value);
        }
        match speaker {
            _ if line.is_compact_summary.0 => self.compaction_summary(&scene, &spoken),
            Speaker::User => self.user(&scene, line, &spoken),
            Speaker::Assistant => {
                self.queue_passed(&scene);
                self.model(&scene, &spoken);
            }
            Speaker::System => {}
        }
        self.facts.push(scene.fact(Kind::Message, uuid, value));
        if self.infer && speaker == Speaker::Assistant {
            self.infer(&scene, &spoken);
        }
        self.time_checkpoint(at, uuid);
        Ok(())
    }

    fn session(&mut self, line: &Line<'_>) {
        let session = &mut self.carry.session;
        let update = |field: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| field.as_deref() != Some(value)) {
                *field = Some(value.to_owned());
            }
        };
        update(&mut session.id, line.session_id.text());
        update(&mut session.cwd, line.cwd.text());
        update(&mut session.git_branch, line.git_branch.text());
        // A title that a person gave stays.
        update(&mut session.title, line.custom_title.text());
        if session.title.is_none() {
            update(&mut session.title, line.ai_title.text());
        }
    }

    fn progress<'l>(
        &mut self,
        line: &Line<'l>,
        scene: impl FnOnce(Timestamp, Option<String>, &'static str) -> Scene<'l>,
    ) -> Result<(), String> {
        let Ok(progress) = parsed::<Progress<'_>>(line.data) else { return Ok(()) };
        let (true, Some(agent)) = (progress.kind.is("agent_progress"), progress.agent_id.text())
        else {
            return Ok(());
        };
        let nested: Nested<'_> = parsed(progress.message)?;
        let (Some(speaker), Some(uuid)) =
            (Speaker::of(nested.kind.text().unwrap_or_default()), nested.uuid.text())
        else {
            return Ok(());
        };
        let at = time(nested.timestamp.text().or(line.timestamp.text()))?;
        let message: Message<'_> = parsed(nested.message)?;
        let content = message.content().map_err(unreadable)?;
        let (result, denial) = (nested.tool_use_result, Denial::default());
        let spoken = Spoken { speaker, uuid, message, content, result, denial };
        let scene = scene(at, Some(agent.to_owned()), "/data/message");
        self.meet(agent, line.parent_tool_use_id.text(), at, || {
            let prompt =
                progress.prompt.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
            prompt.map(|prompt| text::value(&prompt, scene.place, || "/data/prompt".to_owned()))
        });
        let value = self.said(&scene, &spoken);
        self.agent_spoke(&scene, &spoken, value);
        Ok(())
    }

    /// What any speaking line says; its calls are opened, its results closed.
    fn said(&mut self, scene: &Scene<'_>, spoken: &Spoken<'_>) -> Map {
        let message = &spoken.message;
        let mut value = fields([
            ("role", message.role.text().unwrap_or(spoken.speaker.name()).into()),
            ("message_id", message.id.text().into()),
            ("model", message.model.text().into()),
        ]);
        if let Ok(usage) = parsed::<Usage>(message.usage) {
            value.append(&mut fields([
                ("input_tokens", usage.input_tokens.0.into()),
                ("output_tokens", usage.output_tokens.0.into()),
                ("cache_read_tokens", usage.cache_read_input_tokens.0.into()),
                ("cache_creation_tokens", usage.cache_creation_input_tokens.0.into()),
            ]));
        }
        let set = |value: &mut Map, name: &str, field: Value| {
            value.insert(name.to_owned(), field);
        };
        if let Some((text, pointer)) = spoken.content.said().filter(|(text, _)| !text.is_empty()) {
            set(&mut value, "text", scene.text(&text, format!("/message/content{pointer}")));
            if spoken.speaker == Speaker::User && text.starts_with(INTERRUPTED) {
                set(&mut value, "interrupted", true.into());
            }
        }
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        let alone =
            spoken.content.blocks().iter().filter(|block| block.kind.is("tool_result")).count()
                == 1;
        for (index, block) in spoken.content.blocks().iter().enumerate() {
            let at = format!("/message/content/{index}");
            if let Some(thinking) = block.thinking.text() {
                let thinking = scene.text(thinking, format!("{at}/thinking"));
                set(&mut value, "thinking", thinking);
            } else if block.kind.is("tool_use") {
                let (id, name) = (block.id.text(), block.name.text());
                calls.push(Value::from([("id", id.into()), ("name", name.into())]));
                if let (Some(id), Some(name)) = (id, name) {
                    self.call(scene, id, name, block.input, &at);
                }
            } else if block.kind.is("tool_result") {
                let content = block.content().unwrap_or_default();
                let id = block.tool_use_id.text().unwrap_or_default();
                let (result, denial) = if alone {
                    (spoken.result, spoken.denial.clone())
                } else {
                    (None, Denial::default())
                };
                let answer = Answer::of(block.is_error.0, &content, result, &at, denial);
                let own = self.result(scene, id, &answer);
                let said = content.said().filter(|(text, _)| !own && !text.is_empty());
                let text =
                    said.map(|(text, pointer)| scene.text(&text, format!("{at}/content{pointer}")));
                let refused =
                    block.is_error.0 && content.said().is_some_and(|(text, _)| is_refusal(&text));
                if refused {
                    set(&mut value, "refused", true.into());
                }
                let error = flag(block.is_error.0);
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

    /// What the sentences state, as facts of their own.
    fn infer(&mut self, scene: &Scene<'_>, spoken: &Spoken<'_>) {
        let Some((text, _)) = spoken.content.said() else { return };
        for (number, found) in inference::read(&text).into_iter().enumerate() {
            let value = fields([
                ("rule", found.rule.into()),
                ("message", spoken.uuid.into()),
                ("description", found.sentence.into()),
                ("found", Value::from([("kind", found.kind.name().into())])),
            ]);
            let id = format!("{}.{}", spoken.uuid, number + 1);
            self.facts.push(scene.fact(Kind::Inference, &id, value));
        }
    }

    fn system(&mut self, scene: &Scene<'_>, line: &Line<'_>, uuid: &str, value: &mut Map) {
        let subtype = line.subtype.text();
        let raw = line.compact_metadata.or(line.microcompact_metadata);
        let compacted: Compacted<'_> = parsed(raw).unwrap_or_default();
        let dropped = compacted
            .compacted_tool_ids
            .as_ref()
            .map(|ids| ids.0.iter().filter_map(|id| id.0.clone()).collect::<Vec<_>>());
        value.append(&mut fields([
            ("subtype", subtype.into()),
            ("text", line.content.text().map(|text| scene.text(text, "/content")).into()),
            ("duration_ms", line.duration_ms.0.into()),
            ("hook_count", line.hook_count.0.into()),
            ("trigger", compacted.trigger.text().into()),
            ("pre_tokens", compacted.pre_tokens.0.into()),
            ("post_tokens", compacted.post_tokens.0.into()),
            ("tokens_saved", compacted.tokens_saved.0.into()),
            ("compacted_tool_ids", dropped.into()),
        ]));
        if subtype == Some("compact_boundary") {
            self.compaction(scene, line, uuid, &compacted);
        }
    }
}

fn time(text: Option<&str>) -> Result<Timestamp, String> {
    let text = text.ok_or("is a message without a time")?;
    Timestamp::parse_rfc3339(text).ok_or_else(|| {
        format!("has the time '{}', which is not RFC 3339", text::beginning(text, 40))
    })
}

/// The JSON left unread in a line, read now; nothing reads as nothing.
pub(crate) fn parsed<'a, T: Deserialize<'a> + Default>(
    raw: Option<&'a RawValue>,
) -> Result<T, String> {
    raw.map_or_else(|| Ok(T::default()), |raw| serde_json::from_str(raw.get()).map_err(unreadable))
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("has a message that cannot be read: {error}")
}
