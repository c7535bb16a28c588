//! Calls of Codex's tools: commands in a shell, patches, the plan.

use super::Scene;
use crate::claude_code::call::{commits, hash};
use crate::claude_code::carry::{Asked, OpenCall, PatchedFile};
use crate::claude_code::scene::{Work, fields};
use crate::lenient::Word;
use crate::text;
use crate::verification::Verification;
use forge_store::model::Value;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments<'a> {
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    cmd: Word<'a>,
    #[serde(borrow)]
    input: Word<'a>,
    #[serde(borrow)]
    workdir: Word<'a>,
    #[serde(borrow)]
    working_directory: Word<'a>,
    #[serde(borrow)]
    justification: Word<'a>,
    #[serde(borrow)]
    plan: Vec<Step<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step<'a> {
    #[serde(borrow)]
    step: Word<'a>,
    #[serde(borrow)]
    status: Word<'a>,
}

/// What a call asks for, and the directory it names.
pub(super) type Call = (Option<Asked>, Option<String>);

/// Reads a call. Its arguments are JSON in a string, its action an object, its input a patch.
pub(super) fn asked(
    scene: &Scene<'_>,
    name: &str,
    arguments: Option<&str>,
    input: Option<&str>,
    action: Option<&RawValue>,
) -> Call {
    if name == "apply_patch"
        && let Some(input) = input
    {
        return (patch(scene, input, "/input"), None);
    }
    let (json, at) = match (arguments, action) {
        (Some(arguments), _) => (arguments, "/arguments#json"),
        (None, Some(action)) => (action.get(), "/action"),
        (None, None) => return (None, None),
    };
    let Ok(arguments) = serde_json::from_str::<Arguments<'_>>(json) else { return (None, None) };
    let directory = arguments.workdir.text().or(arguments.working_directory.text());
    let directory = directory.map(str::to_owned);
    let asked = match name {
        "apply_patch" => {
            arguments.input.text().and_then(|input| patch(scene, input, &format!("{at}/input")))
        }
        "update_plan" => Some(plan(scene, &arguments.plan, at)),
        "shell" | "shell_command" | "exec_command" | "local_shell" | "container.exec" => {
            command(scene, &arguments, at)
        }
        _ => None,
    };
    (asked, directory)
}

/// Keeps a call until its result comes; a plan is carried out at once, since nothing refuses it.
pub(super) fn keep(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    tool: &str,
    (asked, directory): Call,
) {
    match asked {
        None => {}
        Some(Asked::Todos { items }) => work.todos(scene, &items),
        Some(asked) => {
            let cwd = directory.or_else(|| scene.cwd.map(str::to_owned));
            let call = OpenCall { called_at: scene.at, cwd, tool: tool.to_owned(), asked };
            work.carry.calls.insert(id.to_owned(), call);
        }
    }
}

fn command(scene: &Scene<'_>, arguments: &Arguments<'_>, at: &str) -> Option<Asked> {
    let (line, pointer) = if let Some(line) = arguments.cmd.text() {
        (line.to_owned(), format!("{at}/cmd"))
    } else {
        let raw = arguments.command?.get();
        match serde_json::from_str::<Vec<String>>(raw) {
            Err(_) => (serde_json::from_str::<String>(raw).ok()?, format!("{at}/command")),
            Ok(words) => match words.as_slice() {
                [name, text] if name == "apply_patch" || name == "applypatch" => {
                    return patch(scene, text, &format!("{at}/command/1"));
                }
                [shell, flag, line]
                    if shell.ends_with("sh") && flag.starts_with('-') && flag.contains('c') =>
                {
                    (line.clone(), format!("{at}/command/2"))
                }
                // The words of a long line cannot be pointed at in one piece.
                words => (words.join(" "), String::new()),
            },
        }
    };
    if let Some(start) = line.find("*** Begin Patch")
        && line.trim_start().starts_with("apply_patch")
    {
        return patch(scene, line.get(start..)?, "");
    }
    let told = if pointer.is_empty() {
        text::beginning(&line, text::INLINE_BYTES).into()
    } else {
        scene.text(&line, pointer)
    };
    let why = arguments.justification.text();
    Some(Asked::Command {
        command: told,
        description: why.map_or(Value::Null, |why| scene.text(why, format!("{at}/justification"))),
        background: false,
        commit: commits(&line),
        verification: Verification::of(&line),
    })
}

fn plan(scene: &Scene<'_>, steps: &[Step<'_>], at: &str) -> Asked {
    let items = steps.iter().enumerate().filter_map(|(index, step)| {
        let text = step.step.text()?;
        let subject = scene.text(text, format!("{at}/plan/{index}/step"));
        let status = step.status.text().unwrap_or("pending");
        Some((hash(text), fields([("subject", subject), ("status", status.into())])))
    });
    Asked::Todos { items: items.collect() }
}

/// A patch in Codex's own form, file by file. Without a pointer to it long parts are cut.
fn patch(scene: &Scene<'_>, patch: &str, pointer: &str) -> Option<Asked> {
    const HEADS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    let mut files: Vec<(PatchedFile, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive('\n') {
        let text = line.trim_end();
        if let Some(path) = HEADS.iter().find_map(|head| text.strip_prefix(head)) {
            let file = PatchedFile {
                path: path.trim().to_owned(),
                moved_to: None,
                patch: Value::Null,
                added: 0,
                removed: 0,
            };
            files.push((file, at, at));
        } else if let Some((file, ..)) = files.last_mut() {
            if let Some(path) = text.strip_prefix("*** Move to: ") {
                file.moved_to = Some(path.trim().to_owned());
            } else if !text.starts_with("*** ") {
                file.added += u64::from(text.starts_with('+'));
                file.removed += u64::from(text.starts_with('-'));
            }
        }
        at += line.len();
        if let (Some((_, _, end)), false) = (files.last_mut(), text.starts_with("*** End Patch")) {
            *end = at;
        }
    }
    let files: Vec<PatchedFile> = files
        .into_iter()
        .map(|(mut file, start, end)| {
            file.patch = if pointer.is_empty() {
                let part = patch.get(start..end).unwrap_or_default();
                text::beginning(part, text::INLINE_BYTES).into()
            } else {
                text::part(patch, start..end, scene.place, || format!("{}{pointer}", scene.base))
            };
            file
        })
        .collect();
    (!files.is_empty()).then_some(Asked::Patch { files })
}
