//! The current state of an agent's files, and their state with and without forge.

use super::agent::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
};
use super::receipt::{FileReceipt, InstallReceipt, ReceiptFolder, hash};
use super::splice::TextSplice;
use super::{OWN_MARK, detect, file, json, section, toml};
use crate::error::CommandError;
use std::path::PathBuf;

/// The steps that install forge in one agent, or uninstall it.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub agent: CodingAgent,
    pub scope: InstallScope,
    /// The project; `None` for the user scope.
    pub project: Option<PathBuf>,
    /// The binary that is called.
    pub forge: String,
    /// The files, in the order in which they are written.
    pub files: Vec<FilePlan>,
    /// The parts that cannot be installed, and why.
    pub left_out: Vec<(IntegrationPart, String)>,
}

/// The step that changes one file.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// The file as the agent names it.
    pub file: PathBuf,
    /// The parts that go into it.
    pub parts: Vec<IntegrationPart>,
    /// The current state of the file.
    pub now: file::AgentFile,
    /// The content without forge; `None` if the file would not exist.
    pub without: Option<String>,
    /// The content with forge; `None` if the file would not exist.
    pub with: Option<String>,
    /// The changes from the content without forge to the content with it.
    splices: Vec<TextSplice>,
    /// The paths of JSON objects and arrays that are empty without forge.
    empty: Vec<Vec<String>>,
    /// The paths of added members whose origin their content does not show.
    added: Vec<Vec<String>>,
    /// The entry of the file in the receipt of an earlier installation, or of another agent's if
    /// they share the file.
    noted: Option<FileReceipt>,
    /// Whether another agent's installation needs its content.
    shared: bool,
}

impl InstallPlan {
    /// Reads the files of an agent and computes their new content. Nothing is changed.
    pub fn make(
        agent: CodingAgent,
        scope: InstallScope,
        target: &InstallTarget,
        receipts: &ReceiptFolder,
    ) -> Result<Self, CommandError> {
        let project = (scope != InstallScope::User).then(|| target.project.clone());
        let receipt = receipts.find(agent, scope, project.as_deref())?;
        let others: Vec<InstallReceipt> =
            receipts.all().into_iter().filter(|other| Some(other) != receipt.as_ref()).collect();
        let mut files: Vec<(PathBuf, Vec<WantedChange>)> = Vec::new();
        for wanted in agent.wanted_changes(scope, target) {
            match files.iter_mut().find(|(file, _)| *file == wanted.file) {
                Some((_, changes)) => changes.push(wanted),
                None => files.push((wanted.file.clone(), vec![wanted])),
            }
        }
        let mut plan = Self {
            agent,
            scope,
            project,
            forge: target.forge.clone(),
            files: Vec::new(),
            left_out: Vec::new(),
        };
        for (path, wanted) in files {
            let step = plan.step(path, &wanted, target, receipt.as_ref(), &others)?;
            plan.files.push(step);
        }
        Ok(plan)
    }

    fn step(
        &mut self,
        path: PathBuf,
        wanted: &[WantedChange],
        target: &InstallTarget,
        receipt: Option<&InstallReceipt>,
        others: &[InstallReceipt],
    ) -> Result<FilePlan, CommandError> {
        // A project's file must stay in the project, a user's file in the user's directory.
        let own = [&target.home, &target.config]
            .into_iter()
            .chain(&target.claude)
            .chain(&target.codex)
            .find(|folder| path.starts_with(folder) && !path.starts_with(&target.project));
        let now = file::read(&path, own.unwrap_or(&target.project))?;
        let unusable = |error: json::UnusableSettings| {
            CommandError::invalid(format!("'{}' cannot be changed", path.display()))
                .caused_by(error)
                .hinted("nothing was changed; correct the file, or move it away")
        };
        // Several agents may read the same section: the receipt of each records how it was added.
        let section_only = wanted.iter().all(|wanted| wanted.part == IntegrationPart::Section);
        let shared_with =
            others.iter().find_map(|other| other.for_file(&now.path)).filter(|_| section_only);
        let shared = shared_with.is_some();
        let noted =
            receipt.and_then(|receipt| receipt.for_file(&now.path)).or(shared_with).cloned();
        let without = match &now.text {
            None => None,
            Some(text) => self.without(text, wanted, noted.as_ref()).map_err(unusable)?,
        };
        let mut with = without.clone();
        let mut splices = Vec::new();
        let mut parts = Vec::new();
        for wanted in wanted {
            parts.push(wanted.part);
            let before = with.clone();
            match applied(before.as_deref(), &wanted.form, &mut splices) {
                Ok(text) => with = text,
                // Permission rules are a convenience: everything else works without them.
                Err(error) if wanted.part == IntegrationPart::Permissions => {
                    parts.pop();
                    with = before;
                    self.left_out.push((wanted.part, error.to_string()));
                }
                Err(error) => return Err(unusable(error)),
            }
        }
        if without.is_none() {
            // The creation of a file counts as one change.
            splices =
                TextSplice::between("", with.as_deref().unwrap_or_default()).into_iter().collect();
        }
        let (mut empty, mut added) = (Vec::new(), Vec::new());
        for wanted in wanted {
            let WantedContent::Json(edits) = &wanted.form else { continue };
            let text = without.as_deref().unwrap_or_default();
            empty = json::empty_places(text).map_err(unusable)?;
            added.extend(json::missing_members(text, edits).map_err(unusable)?);
        }
        Ok(FilePlan { file: path, parts, now, without, with, splices, empty, added, noted, shared })
    }

    /// Returns the text without forge's entries; `None` if the file should be removed: forge
    /// created it and nothing else is in it, or only forge writes it.
    fn without(
        &self,
        text: &str,
        wanted: &[WantedChange],
        noted: Option<&FileReceipt>,
    ) -> Result<Option<String>, json::UnusableSettings> {
        let created = noted.is_some_and(|noted| noted.created);
        if let Some(original) = noted.and_then(|noted| noted.original(text))
            && self.is_clean(&original, wanted)
        {
            return Ok((!created || !original.is_empty()).then_some(original));
        }
        let mut text = text.to_owned();
        let empty = noted.map(|noted| noted.empty.as_slice()).unwrap_or_default();
        let added = noted.map(|noted| noted.added.as_slice()).unwrap_or_default();
        for wanted in wanted {
            match &wanted.form {
                WantedContent::Json(edits) => {
                    let ours = |path: &[String], value: &_| {
                        detect::is_ours(self.agent, edits, path, value)
                            || detect::is_added(added, edits, path, value)
                    };
                    text = json::without(&text, &ours, empty)?;
                }
                WantedContent::Toml(table) => {
                    text = toml::without(&text, &table.path, &detect::is_our_server)?;
                }
                WantedContent::Section(_) => text = section::remove_section(&text),
                WantedContent::Whole(_) if text.contains(OWN_MARK) => return Ok(None),
                WantedContent::Whole(_) => {
                    let path = wanted.file.display().to_string();
                    return Err(json::UnusableSettings::Taken { path });
                }
            }
        }
        let empty = match wanted.first().map(|wanted| &wanted.form) {
            Some(WantedContent::Json(_)) => {
                json::values(&text)?.as_object().is_none_or(|it| it.is_empty())
            }
            _ => text.trim().is_empty(),
        };
        Ok((!created || !empty).then_some(text))
    }

    /// Returns whether a text can be parsed and has no entry of forge.
    fn is_clean(&self, text: &str, wanted: &[WantedChange]) -> bool {
        wanted.iter().all(|wanted| match &wanted.form {
            WantedContent::Json(edits) => {
                let ours =
                    |path: &[String], value: &_| detect::is_ours(self.agent, edits, path, value);
                text.is_empty() || json::without(text, &ours, &[]).is_ok_and(|left| left == text)
            }
            WantedContent::Toml(table) => toml::without(text, &table.path, &detect::is_our_server)
                .is_ok_and(|left| left == text),
            WantedContent::Section(_) => section::find_section(text).is_none(),
            WantedContent::Whole(_) => text.is_empty(),
        })
    }

    /// Whether everything is installed already.
    pub fn is_installed(&self) -> bool {
        self.files.iter().all(FilePlan::is_installed)
    }

    /// Writes the files with forge.
    ///
    /// # Errors
    ///
    /// If the receipt cannot be written: then no file is changed. If a file cannot be written: then
    /// those before it are restored.
    pub fn install(&self, receipts: &ReceiptFolder) -> Result<(), CommandError> {
        let mut receipt = self.receipt();
        receipt.files = self.files.iter().filter_map(FilePlan::changed).collect();
        // Recorded first: an entry that is recorded but missing can be recognised, one that exists
        // but is not recorded cannot.
        receipts.keep(&receipt)?;
        let all = self.files.iter().map(|step| (step, step.with.as_deref()));
        write_all(all.filter(|(step, _)| !step.is_installed()))
    }

    /// Writes the files without forge. Returns how many of them changed.
    ///
    /// # Errors
    ///
    /// If a file cannot be written: then those before it are restored.
    pub fn uninstall(&self, receipts: &ReceiptFolder) -> Result<usize, CommandError> {
        let steps: Vec<&FilePlan> =
            self.files.iter().filter(|step| step.has_own_entries()).collect();
        write_all(steps.iter().map(|step| (*step, step.without.as_deref())))?;
        for step in &steps {
            if let (None, Some(noted)) = (&step.without, &step.noted) {
                file::remove_empty(&noted.directories);
            }
        }
        receipts.keep(&self.receipt())?;
        Ok(steps.len())
    }

    /// Creates a receipt without changes.
    fn receipt(&self) -> InstallReceipt {
        InstallReceipt::new(self.agent, self.scope, self.project.as_deref(), &self.forge)
    }
}

impl FilePlan {
    /// Whether the file has its wanted content.
    pub fn is_installed(&self) -> bool {
        self.now.text == self.with
    }

    /// Whether the file has entries of forge that no other installation needs.
    pub fn has_own_entries(&self) -> bool {
        !self.shared && self.now.text != self.without
    }

    /// Returns the receipt of the file; `None` if the file would not exist.
    fn changed(&self) -> Option<FileReceipt> {
        let with = self.with.as_deref()?;
        if self.splices.is_empty() {
            return self.noted.clone();
        }
        let directories = match &self.noted {
            Some(noted) => noted.directories.clone(),
            None => file::missing_directories(&self.now.path),
        };
        Some(FileReceipt {
            path: self.now.path.clone(),
            created: self.without.is_none(),
            directories,
            after: hash(with),
            splices: self.splices.clone(),
            empty: self.empty.clone(),
            added: self.added.clone(),
        })
    }
}

/// Returns the text with the wanted content, and appends each change to `splices`; none after an
/// error.
fn applied(
    text: Option<&str>,
    form: &WantedContent,
    splices: &mut Vec<TextSplice>,
) -> Result<Option<String>, json::UnusableSettings> {
    let mut now = text.unwrap_or_default().to_owned();
    let noted = splices.len();
    let mut step = |next: String, now: &mut String| {
        splices.extend(TextSplice::between(now, &next));
        *now = next;
    };
    let outcome = match form {
        WantedContent::Json(edits) => {
            if text.is_none() {
                step("{}\n".to_owned(), &mut now);
            }
            edits
                .iter()
                .try_for_each(|edit| json::apply_edit(&now, edit).map(|next| step(next, &mut now)))
        }
        WantedContent::Toml(table) => {
            toml::apply_edit(&now, table).map(|next| step(next, &mut now))
        }
        WantedContent::Section(section) => {
            step(section::add_section(&now, section), &mut now);
            Ok(())
        }
        WantedContent::Whole(whole) => {
            step(whole.clone(), &mut now);
            Ok(())
        }
    };
    if let Err(error) = outcome {
        splices.truncate(noted);
        return Err(error);
    }
    Ok(Some(now))
}

/// Writes all of these files, or none.
fn write_all<'s>(
    steps: impl Iterator<Item = (&'s FilePlan, Option<&'s str>)>,
) -> Result<(), CommandError> {
    let mut done: Vec<(&FilePlan, Option<&str>, Vec<PathBuf>)> = Vec::new();
    for (step, text) in steps {
        let folders = file::missing_directories(&step.now.path);
        if let Err(error) = file::replace(&step.now, text) {
            for (step, text, folders) in done.iter().rev() {
                let written =
                    file::AgentFile { path: step.now.path.clone(), text: text.map(str::to_owned) };
                // The first error is the one to report; a file that was changed since then keeps
                // the change.
                let _ = file::replace(&written, step.now.text.as_deref());
                file::remove_empty(folders);
            }
            file::remove_empty(&folders);
            return Err(error);
        }
        done.push((step, text, folders));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
