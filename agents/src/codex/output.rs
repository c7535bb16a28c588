//! Results of calls: how commands ended, and whether a patch was applied.

use super::Scene;
use crate::claude_code::carry::{Asked, OpenCall};
use crate::claude_code::command::{REFUSED, Ran, merged};
use crate::claude_code::scene::{Work, fields, flag};
use crate::text;
use forge_store::model::Kind;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What the model was told of a command.
#[derive(Debug, Default, PartialEq)]
struct Told {
    exit_code: Option<i64>,
    outcome: &'static str,
    duration_ms: Option<i64>,
    /// Where the output begins in the text.
    start: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Structured {
    output: Option<String>,
    content: Option<String>,
    success: Option<bool>,
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    exit_code: Option<i64>,
    duration_seconds: Option<f64>,
}

/// Closes the call that a result belongs to.
pub(super) fn result(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, raw: Option<&RawValue>) {
    let Some(call) = work.carry.calls.remove(id) else { return };
    let Some((text, pointer, told)) = read(raw) else { return };
    match &call.asked {
        Asked::Command { .. } => command(work, scene, id, &call, &text, &pointer, &told),
        Asked::Patch { files } => {
            if told.outcome != "finished" {
                return;
            }
            for (number, file) in files.iter().enumerate() {
                let value = fields([
                    ("tool", call.tool.as_str().into()),
                    ("path", file.path.as_str().into()),
                    ("moved_to", file.moved_to.clone().into()),
                    ("patch", file.patch.clone()),
                    ("lines_added", file.added.into()),
                    ("lines_removed", file.removed.into()),
                    ("cwd", call.cwd.clone().into()),
                    ("git_branch", scene.git_branch.into()),
                ]);
                let id = if number == 0 { id.to_owned() } else { format!("{id}/{}", number + 1) };
                work.facts.push(scene.fact(Kind::Code, &id, value));
            }
        }
        _ => {}
    }
}

fn command(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    call: &OpenCall,
    text: &str,
    pointer: &str,
    told: &Told,
) {
    let Asked::Command { command, description, commit, verification, .. } = &call.asked else {
        return;
    };
    let output = text.get(told.start..).unwrap_or_default();
    let mut more = fields([
        ("working_dir", call.cwd.clone().into()),
        ("called_at", call.called_at.to_string().into()),
        ("duration_ms", told.duration_ms.into()),
        ("interrupted", flag(told.outcome == "interrupted")),
    ]);
    more.extend(merged(scene, told.outcome, text, told.start..text.len(), pointer));
    let ran = Ran {
        command: command.clone(),
        description: description.clone(),
        exit_code: told.exit_code,
        outcome: told.outcome,
        more,
        output,
        verification: verification.as_ref(),
        commits: *commit && told.outcome == "finished",
    };
    work.ran(scene, id, ran);
}

/// The text of a result, the pointer to it, and what it says of the run.
fn read(raw: Option<&RawValue>) -> Option<(String, String, Told)> {
    let json = raw?.get();
    let Ok(text) = serde_json::from_str::<String>(json) else {
        // Newer ones hold a list of blocks, or an object with the text and whether it went well.
        let (text, pointer) = match serde_json::from_str::<Structured>(json) {
            Ok(Structured { content: Some(text), success, .. }) => {
                let mut told = told(&text);
                if success == Some(false) && told.outcome == "finished" {
                    told.outcome = "failed";
                }
                return Some((text, "/output/content".to_owned(), told));
            }
            _ => text::of_content(raw, "/output")?,
        };
        let told = told(&text);
        return Some((text, pointer, told));
    };
    // The first shells answered in JSON.
    if let Ok(Structured { output: Some(output), metadata, .. }) =
        serde_json::from_str::<Structured>(&text)
    {
        let told = Told {
            exit_code: metadata.exit_code,
            outcome: outcome(metadata.exit_code),
            duration_ms: metadata.duration_seconds.map(milliseconds),
            start: 0,
        };
        return Some((output, "/output#json/output".to_owned(), told));
    }
    let told = told(&text);
    Some((text, "/output".to_owned(), told))
}

fn outcome(exit_code: Option<i64>) -> &'static str {
    match exit_code {
        Some(0) | None => "finished",
        Some(_) => "failed",
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float to whole number saturates")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Reads what stands above `Output:`: the exit code, the time it took, or that it still runs.
fn told(text: &str) -> Told {
    let begin = text.trim_start();
    let refusals = ["exec command rejected by user", "patch rejected by user", "rejected by user"];
    if refusals.iter().any(|it| begin.starts_with(it)) {
        return Told { outcome: REFUSED, ..Told::default() };
    }
    if begin.starts_with("aborted by user") || begin.starts_with("command aborted by user") {
        return Told { outcome: "interrupted", ..Told::default() };
    }
    let (head, start) = match text.find("Output:\n") {
        Some(at) if at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n') => {
            (text.get(..at).unwrap_or_default(), at + "Output:\n".len())
        }
        _ => ("", 0),
    };
    let after = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
    };
    let number = |text: String| text.parse::<i64>().ok();
    let exit_code =
        after("Exit code:").or_else(|| after("Process exited with code")).and_then(number);
    let seconds = after("Wall time:").and_then(|it| it.split(' ').next()?.parse::<f64>().ok());
    let runs = exit_code.is_none() && after("Process running with session ID").is_some();
    let failed = start == 0
        && ["failed to ", "execution error", "apply_patch verification failed"]
            .iter()
            .any(|it| begin.starts_with(it));
    Told {
        exit_code,
        outcome: match (runs, failed) {
            (true, _) => "background",
            (_, true) => "failed",
            _ => outcome(exit_code),
        },
        duration_ms: seconds.map(milliseconds),
        start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_above_the_output_say_how_it_ended() {
        for (text, exit_code, outcome, duration_ms, rest) in [
            (
                "Exit code: 1\nWall time: 0.5 seconds\nOutput:\nno\n",
                Some(1),
                "failed",
                Some(500),
                "no\n",
            ),
            (
                "Chunk ID: 1a\nWall time: 2.0000 seconds\nProcess exited with code 0\nOutput:\nok",
                Some(0),
                "finished",
                Some(2000),
                "ok",
            ),
            (
                "Wall time: 10 seconds\nProcess running with session ID 7\nOutput:\n",
                None,
                "background",
                Some(10_000),
                "",
            ),
            (
                "exec command rejected by user",
                None,
                "refused",
                None,
                "exec command rejected by user",
            ),
            ("aborted by user after 3.1s", None, "interrupted", None, "aborted by user after 3.1s"),
            ("plain", None, "finished", None, "plain"),
            (
                "failed to parse function arguments: x",
                None,
                "failed",
                None,
                "failed to parse function arguments: x",
            ),
        ] {
            let told = told(text);
            assert_eq!(
                (told.exit_code, told.outcome, told.duration_ms),
                (exit_code, outcome, duration_ms)
            );
            assert_eq!(&text[told.start..], rest);
        }
    }
}
