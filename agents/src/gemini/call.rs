//! Calls of Gemini CLI's tools, with their results.

use crate::claude_code::call::{commits, hash};
use crate::claude_code::command::{REFUSED, Ran, merged};
use crate::claude_code::scene::{Scene, Work, fields, flag};
use crate::lenient::{Name, Word};
use crate::verification::Verification;
use forge_store::model::{Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A call as it is recorded.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Call<'a> {
    id: Name,
    #[serde(borrow)]
    name: Word<'a>,
    #[serde(borrow)]
    status: Word<'a>,
    #[serde(borrow)]
    timestamp: Word<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    result_display: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments<'a> {
    #[serde(borrow)]
    command: Word<'a>,
    #[serde(borrow)]
    description: Word<'a>,
    #[serde(borrow)]
    dir_path: Word<'a>,
    #[serde(borrow)]
    directory: Word<'a>,
    #[serde(borrow)]
    file_path: Word<'a>,
    todos: Vec<Todo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Todo {
    description: String,
    status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Display<'a> {
    #[serde(borrow)]
    file_diff: Word<'a>,
    #[serde(borrow)]
    original_content: Word<'a>,
    #[serde(borrow)]
    file_path: Word<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResultPart<'a> {
    #[serde(borrow)]
    function_response: FunctionResponse<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionResponse<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    output: Word<'a>,
    #[serde(borrow)]
    error: Word<'a>,
}

/// The calls of a message.
pub(super) fn read(raw: Option<&RawValue>) -> Vec<Call<'_>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl Call<'_> {
    /// What a message says of it.
    pub(super) fn named(&self) -> Value {
        Value::from([("id", self.id.0.clone().into()), ("name", self.name.text().into())])
    }
}

/// Tells of a call that has ended, once. `base` leads to it.
pub(super) fn done(work: &mut Work<'_>, scene: &Scene<'_>, call: &Call<'_>, base: &str) {
    let status = call.status.text().unwrap_or_default();
    let (Some(id), "success" | "error" | "cancelled") = (call.id.0.as_deref(), status) else {
        return;
    };
    let Some(arguments) = call.args else { return };
    let Ok(arguments) = serde_json::from_str::<Arguments<'_>>(arguments.get()) else { return };
    let at = call.timestamp.text().and_then(Timestamp::parse_rfc3339).unwrap_or(scene.at);
    let scene = Scene { at, agent: None, ..*scene };
    let name = call.name.text().unwrap_or_default();
    let counts = match name {
        "run_shell_command" => true,
        "replace" | "write_file" | "edit" | "write_todos" => status == "success",
        _ => false,
    };
    if !counts || work.carry.other.tell(id) {
        return;
    }
    match name {
        "run_shell_command" => command(work, &scene, id, call, &arguments, status, base),
        "write_todos" => {
            let items = arguments.todos.iter().enumerate().map(|(index, todo)| {
                let pointer = format!("{base}/args/todos/{index}/description");
                let subject = scene.text(&todo.description, pointer);
                let task = fields([("subject", subject), ("status", todo.status.as_str().into())]);
                (hash(&todo.description), task)
            });
            work.todos(&scene, &items.collect());
        }
        _ => edit(work, &scene, id, call, &arguments, base),
    }
}

fn command(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    call: &Call<'_>,
    arguments: &Arguments<'_>,
    status: &str,
    base: &str,
) {
    let line = arguments.command.text().unwrap_or_default();
    let parts: Vec<ResultPart<'_>> =
        call.result.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let response = parts.first().map(|part| &part.function_response.response);
    let output = response.and_then(|it| it.output.text());
    let (told, name) = match (output, response.and_then(|it| it.error.text())) {
        (Some(output), _) => (output, "output"),
        (None, Some(error)) => (error, "error"),
        (None, None) => ("", "output"),
    };
    let said = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let code = said("Exit Code:").and_then(|code| code.parse::<i64>().ok());
    let background = said("Background PIDs:").is_some_and(|pids| pids != "(none)");
    let (outcome, exit_code) = match (status, code) {
        ("cancelled", _) => (REFUSED, None),
        (_, Some(0)) => ("finished", code),
        (_, Some(_)) => ("failed", code),
        ("error", None) => ("failed", None),
        (_, None) if background => ("background", None),
        // It names the code only where that is not 0.
        (_, None) => ("finished", Some(0)),
    };
    let (start, end) = output_part(told);
    let directory = arguments.dir_path.text().or(arguments.directory.text()).or(scene.cwd);
    let mut more = fields([
        ("working_dir", directory.into()),
        ("interrupted", flag(told.starts_with("Command was cancelled"))),
    ]);
    let pointer = format!("{base}/result/0/functionResponse/response/{name}");
    more.extend(merged(scene, outcome, told, start..end, &pointer));
    let description = arguments.description.text();
    let verification = Verification::of(line);
    let ran = Ran {
        command: scene.text(line, format!("{base}/args/command")),
        description: description
            .map_or(Value::Null, |it| scene.text(it, format!("{base}/args/description"))),
        exit_code,
        outcome,
        more,
        output: told.get(start..end).unwrap_or_default(),
        verification: verification.as_ref(),
        commits: commits(line) && outcome == "finished",
    };
    work.ran(scene, id, ran);
}

/// Where the output stands in what the model was told: behind `Output: `, up to the next of its fields.
fn output_part(told: &str) -> (usize, usize) {
    const LABEL: &str = "Output: ";
    const NEXT: [&str; 5] = [
        "\nError: ",
        "\nExit Code: ",
        "\nSignal: ",
        "\nBackground PIDs: ",
        "\nProcess Group PGID: ",
    ];
    let start = match (told.starts_with(LABEL), told.find("\nOutput: ")) {
        (true, _) => LABEL.len(),
        (_, Some(at)) => at + 1 + LABEL.len(),
        (_, None) => return (0, told.len()),
    };
    let rest = told.get(start..).unwrap_or_default();
    // The last of each, since the output may hold such lines itself.
    let end = NEXT.iter().filter_map(|next| rest.rfind(next)).min().unwrap_or(rest.len());
    (start, start + end)
}

fn edit(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    call: &Call<'_>,
    arguments: &Arguments<'_>,
    base: &str,
) {
    let display: Display<'_> = call
        .result_display
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let patch = display.file_diff.text();
    let count = |sign: char, header: &str| {
        let lines = patch.unwrap_or_default().lines();
        lines.filter(|line| line.starts_with(sign) && !line.starts_with(header)).count() as u64
    };
    let shown = |name: &str, text: Option<&str>| {
        Value::from(text.map(|text| scene.text(text, format!("{base}/resultDisplay/{name}"))))
    };
    let value = fields([
        ("tool", call.name.text().into()),
        ("path", arguments.file_path.text().or(display.file_path.text()).into()),
        ("patch", shown("fileDiff", patch)),
        ("lines_added", count('+', "+++").into()),
        ("lines_removed", count('-', "---").into()),
        ("original_file", shown("originalContent", display.original_content.text())),
        ("cwd", scene.cwd.into()),
    ]);
    work.facts.push(scene.fact(Kind::Code, id, value));
}
