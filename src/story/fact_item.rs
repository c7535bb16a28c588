//! Makes the lines of facts that need no other fact to be understood.

use super::gist::{ITEM_CHARS, one_line};
use super::item::{FoldKey, StoryItem, StoryKind, StoryMark};
use super::project_root::{ProjectRoot, shown_text};
use super::whole_text::{TextPart, fill_from};
use crate::model::claim::{
    CommandOutcome, ExecutedCommand, FactText, FieldValue, Measurement, Message, Prompt, Task,
    VocabularyWord,
};
use crate::model::{Kind, Value};
use crate::store::{SourcedFact, entity_title};

/// Returns the line of a prompt; `None` if it has no text.
pub(super) fn prompt_item(known: &SourcedFact, root: Option<&ProjectRoot>) -> Option<StoryItem> {
    let text = Prompt::from_value(&known.fact.value).ok()?.text?;
    let item = StoryItem::loud(known.fact.at, StoryKind::Prompt, "");
    let mut item = item.about(Kind::Prompt, &known.fact.id);
    fill_from(&mut item, TextPart::Beginning, known, &text, root);
    (!item.text.is_empty()).then_some(item)
}

/// Returns a message of an assistant that has a text.
pub(super) fn assistant_message(known: &SourcedFact) -> Option<Message> {
    let role = known.fact.value.field("role").and_then(FactText::read);
    if role.as_ref().map(FactText::preview) != Some("assistant") {
        return None;
    }
    let message = Message::from_value(&known.fact.value).ok()?;
    message.text.as_ref().is_some_and(|text| !text.preview().trim().is_empty()).then_some(message)
}

/// Returns the line of an agent's message; `None` for a message without text or from another
/// author.
pub(super) fn message_item(known: &SourcedFact, root: Option<&ProjectRoot>) -> Option<StoryItem> {
    let message = assistant_message(known)?;
    let text = message.text?;
    let item = StoryItem::quiet(known.fact.at, StoryKind::Message, FoldKey::Message, "");
    let mut item = item.about(Kind::Message, &known.fact.id).by(message.agent);
    fill_from(&mut item, TextPart::Gist, known, &text, root);
    Some(item)
}

/// Returns the line of a command that delivered nothing.
pub(super) fn command_item(
    known: &SourcedFact,
    command: &ExecutedCommand,
    root: Option<&ProjectRoot>,
) -> StoryItem {
    let line = command.command.as_ref().map(FactText::shown).unwrap_or_default();
    let line = one_line(&shown_text(root, &line), ITEM_CHARS);
    let ended = match (command.exit_code, command.outcome) {
        (Some(0), _) | (None, None | Some(CommandOutcome::Finished)) => String::new(),
        (Some(code), _) => format!(" (exit {code})"),
        (None, Some(outcome)) => format!(" ({})", outcome.word().replace('_', " ")),
    };
    let failed = command.exit_code.is_some_and(|code| code != 0)
        || command.outcome == Some(CommandOutcome::Failed);
    let reason = command.reason.as_ref().map(|reason| one_line(&reason.shown(), ITEM_CHARS));
    let text = format!("$ {line}{ended}");
    StoryItem::quiet(known.fact.at, StoryKind::Command, FoldKey::Command, text)
        .marked(if failed { StoryMark::Bad } else { StoryMark::Plain })
        .detailed(reason)
        .about(Kind::Command, &known.fact.id)
        .by(command.agent.clone())
}

/// Returns the line of a measured value; `None` if it has no value.
pub(super) fn measurement_item(known: &SourcedFact) -> Option<StoryItem> {
    let measured = Measurement::from_value(&known.fact.value).ok()?;
    let name = measured.name.as_ref().map_or("", FactText::preview);
    let unit = measured.unit.as_ref().map_or("", FactText::preview);
    let value = measured.value?;
    let text = one_line(&format!("{name}: {} {unit}", plain(value.value())), ITEM_CHARS);
    let item = StoryItem::loud(known.fact.at, StoryKind::Measurement, text);
    Some(item.about(Kind::Measurement, &known.fact.id))
}

/// Returns the line of a use of a tool. It is loud if a person answered questions of the agent.
pub(super) fn tool_item(known: &SourcedFact, root: Option<&ProjectRoot>) -> StoryItem {
    let fact = &known.fact;
    let agent = fact.value.field("agent").and_then(Value::as_text).map(str::to_owned);
    let answers = fact.value.field("answers").and_then(Value::as_map).into_iter().flatten();
    let answers = answers.map(|(question, answer)| (question.as_str(), plain(answer)));
    let (questions, texts): (Vec<&str>, Vec<String>) =
        answers.filter(|(_, answer)| !answer.trim().is_empty()).unzip();
    if !texts.is_empty() {
        let text = one_line(&texts.join("; "), ITEM_CHARS);
        let item = StoryItem::loud(fact.at, StoryKind::Answer, text);
        let detail = Some(one_line(&questions.join(" "), ITEM_CHARS));
        return item.detailed(detail).about(Kind::Tool, &fact.id).by(agent);
    }
    let title = entity_title(Kind::Tool, &fact.value);
    let text = one_line(&shown_text(root, &title), ITEM_CHARS);
    StoryItem::quiet(fact.at, StoryKind::Tool, FoldKey::Tool, text)
        .about(Kind::Tool, &fact.id)
        .by(agent)
}

/// Returns the line of a task's last change; `None` if it has no subject and no description.
pub(super) fn task_item(known: &SourcedFact) -> Option<StoryItem> {
    let task = Task::from_value(&known.fact.value).ok()?;
    let subject = task.subject.as_ref().or(task.description.as_ref()).map(FactText::shown)?;
    let status = task.status.as_ref().map_or("pending", FactText::preview).replace('_', " ");
    let text = one_line(&format!("{subject}: {status}"), ITEM_CHARS);
    let item = StoryItem::quiet(known.fact.at, StoryKind::Task, FoldKey::Task, text);
    Some(item.about(Kind::Task, &known.fact.id).by(task.agent))
}

/// Returns the line of a notice.
pub(super) fn notice_item(known: &SourcedFact, root: Option<&ProjectRoot>) -> StoryItem {
    let fact = &known.fact;
    let sort = fact.value.field("type").and_then(Value::as_text).unwrap_or("notice");
    let title = entity_title(Kind::Notice, &fact.value);
    let text = one_line(&format!("{sort}: {}", shown_text(root, &title)), ITEM_CHARS);
    let agent = fact.value.field("agent").and_then(Value::as_text).map(str::to_owned);
    StoryItem::quiet(fact.at, StoryKind::Notice, FoldKey::Notice, text)
        .about(Kind::Notice, &fact.id)
        .by(agent)
}

/// Returns a value in words.
fn plain(value: &Value) -> String {
    match value {
        Value::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        other => FactText::read(other).map(|text| text.shown().into_owned()).unwrap_or_default(),
    }
}
