//! The code of a recovery point: shown first, and restored in git after consent.

use super::RecoverArgs;
use crate::context::Context;
use crate::error::CommandError;
use crate::git::UNFILTERED;
use crate::git::restore::{
    CodePatch, CodeToRestore, ObjectDestination, RestoreRepository, RestoredCommit, UnrestoredFile,
};
use crate::report::recover::{CodeRecoverReport, RecoveredCode};
use crate::session_reader::SessionReader;
use crate::text::TextLength;
use forge_store::model::Value;
use forge_store::model::text::{NewlineMode, sanitise};
use forge_store::shell::quoted;
use forge_store::store::RecoverySummary;
use forge_store::story::{PatchLineKind, patch_lines};
use std::path::{Path, PathBuf};

/// Returns the recorded state of the code, and what restoring it here would result in. The git
/// objects that are written to find that out are discarded.
///
/// # Errors
///
/// The errors of a read. If the code cannot be restored here, the result says why.
pub(super) fn step(
    reading: &SessionReader,
    found: &RecoverySummary,
    context: &Context,
) -> Result<RecoveredCode, CommandError> {
    let Some(known) = &found.code else { return Ok(RecoveredCode::default()) };
    let mut code = RecoveredCode {
        id: Some(known.fact.id.clone()),
        at: Some(known.fact.at),
        ..RecoveredCode::default()
    };
    let text =
        |name: &str| known.fact.value.field(name).and_then(Value::as_text).map(str::to_owned);
    (code.commit, code.git_branch) = (text("commit"), text("branch"));
    code.edits = found.edits.len();
    let tried = repository(context).and_then(|place| {
        let wanted = code_to_restore(reading, found, &place, context)?;
        place.restore(&wanted.0, ObjectDestination::Discarded).map(|made| (made, wanted.1))
    });
    match tried {
        Ok((made, left)) => {
            (code.files, code.not_restored) = (made.files, [left, made.left].concat());
        }
        Err(error) => code.not_here = Some(error.message().to_owned()),
    }
    Ok(code)
}

/// Restores the code on a branch of its own, and in a worktree of its own if requested.
///
/// # Errors
///
/// Not found if no state of the code was recorded, or its commit is not here; invalid if it was not
/// confirmed; the errors of git.
pub(super) fn restore(
    args: &RecoverArgs,
    reading: &SessionReader,
    found: &RecoverySummary,
    context: &mut Context,
) -> Result<CodeRecoverReport, CommandError> {
    let Some(known) = &found.code else {
        return Err(CommandError::not_found("no state of the code was recorded up to then")
            .hinted("hooks record it; by hand 'forge code capture' does"));
    };
    let place = repository(context)?;
    let (wanted, before) = code_to_restore(reading, found, &place, context)?;
    let agreed = args.yes || {
        let preview = step(reading, found, context)?;
        context.out.ask("Restore this in git?", |screen| preview.print(screen))?
    };
    if !agreed {
        return Err(CommandError::invalid("nothing was restored: you did not confirm")
            .hinted("'forge recover' shows what would be restored; '--yes' restores it"));
    }
    let RestoredCommit { commit, files, left } =
        place.restore(&wanted, ObjectDestination::Repository)?;
    let name = match &args.branch {
        Some(name) => name.clone(),
        None => format!("forge/recovered-{}", commit.get(..10).unwrap_or(&commit)),
    };
    let is_new = place.branch(&name, &commit)?;
    let worktree = args.worktree.as_ref().map(|path| {
        place.worktree(&context.cwd.join(path), &name).inspect_err(|_| {
            if is_new {
                place.delete_branch(&name, &commit);
            }
        })
    });
    let worktree = worktree.transpose()?;
    let is_unfiltered = worktree.as_ref().is_some_and(|made| !made.unfiltered.is_empty());
    let worktree = worktree.map(|made| made.path);
    let not_restored = [before, left].concat();
    let mut undo = Vec::new();
    if let Some(path) = &worktree {
        undo.push(format!("git worktree remove --force {}", quoted(&path.display().to_string())));
    }
    undo.push(format!("git branch -D {}", quoted(&name)));
    let checkpoint = found.checkpoint.as_ref();
    Ok(CodeRecoverReport {
        restored_to: checkpoint.map(|one| one.id.to_string()),
        timestamp: found.time,
        message: checkpoint.map(|one| one.message.clone()).unwrap_or_default(),
        recovery_complete: not_restored.is_empty(),
        session: found.brief.session.clone(),
        state: known.fact.id.clone(),
        commit: wanted.base,
        git_commit: commit,
        git_branch: name,
        worktree: worktree.map(|path| path.display().to_string()),
        redacted: wanted.patches.iter().map(redacted_count).sum(),
        files,
        not_restored,
        warnings: is_unfiltered.then(|| UNFILTERED.to_owned()).into_iter().collect(),
        undo,
    })
}

/// The repository around the current directory.
fn repository(context: &Context) -> Result<RestoreRepository, CommandError> {
    RestoreRepository::around(&context.cwd, &context.store_directory()?)
}

/// Counts the redacted values in what a patch adds.
fn redacted_count(patch: &CodePatch) -> usize {
    let lines = patch_lines(patch.text.as_deref().unwrap_or_default());
    let added = lines.filter(|(kind, _)| *kind == PatchLineKind::Added);
    added.map(|(_, line)| line.matches("[redacted:").count()).sum()
}

/// Returns the last captured state with the edits after it, and the files that cannot be restored:
/// too large to be kept, or not in this checkout.
fn code_to_restore(
    reading: &SessionReader,
    found: &RecoverySummary,
    place: &RestoreRepository,
    context: &Context,
) -> Result<(CodeToRestore, Vec<UnrestoredFile>), CommandError> {
    let mut wanted = CodeToRestore::default();
    let mut left = Vec::new();
    let mut texts = reading.texts(TextLength::Whole);
    let Some(known) = &found.code else { return Ok((wanted, left)) };
    let value = texts.resolve(known.source.as_deref(), known.fact.value.clone())?;
    wanted.base = value.field("commit").and_then(Value::as_text).map(str::to_owned);
    wanted.time = found.time.unwrap_or(known.fact.at);
    let listed = |name: &str| {
        let list = value.field(name).and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(Value::as_text).map(str::to_owned).collect::<Vec<_>>()
    };
    wanted.patches = listed("patches").iter().map(|text| CodePatch::captured(text)).collect();
    for path in listed("left_out") {
        left.push(UnrestoredFile { path, why: "its changes were too large to be kept".to_owned() });
    }
    let tops = checkout_tops(place, context);
    for known in &found.edits {
        let value = texts.resolve(known.source.as_deref(), known.fact.value.clone())?;
        let text = |name: &str| value.field(name).and_then(Value::as_text);
        let path = text("path").unwrap_or_default();
        match path_in_checkout(&tops, path) {
            Some(inside) => {
                wanted.patches.push(CodePatch::edit(&inside, text("patch").unwrap_or_default()));
            }
            None => left.push(UnrestoredFile {
                path: path.to_owned(),
                why: "it is not in this checkout".to_owned(),
            }),
        }
    }
    let session = sanitise(&found.brief.session, NewlineMode::Escape).into_owned();
    wanted.message = format!(
        "forge: code of {session} at {}\n\nRestored by 'forge recover' from what was recorded; it \
        was not tested.",
        wanted.time
    );
    Ok((wanted, left))
}

/// Returns the folders that may have been the top of the checkout when the edits were recorded.
fn checkout_tops(place: &RestoreRepository, context: &Context) -> Vec<PathBuf> {
    let mut tops = vec![place.top().to_owned()];
    if let Ok(store) = context.store_directory()
        && let Some(project) = store.parent()
    {
        tops.push(project.to_owned());
    }
    tops
}

fn path_in_checkout(tops: &[PathBuf], path: &str) -> Option<String> {
    let path = Path::new(path);
    if path.is_relative() {
        return path.to_str().map(str::to_owned);
    }
    let inside = tops.iter().find_map(|top| path.strip_prefix(top).ok())?;
    inside.to_str().map(str::to_owned)
}
