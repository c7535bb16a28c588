//! Reports about installations in coding agents.

use crate::error::{EXIT_NO, EXIT_OK};
use crate::integration::agent::{CodingAgent, InstallScope, IntegrationPart};
use crate::integration::fault::InstallationFault;
use crate::output::{Report, Screen, Tone};
use serde::Serialize;

/// An installation that was made, or already existed, or that the user did not agree to.
#[derive(Debug, Serialize)]
pub struct HooksInstallReport {
    pub agent: CodingAgent,
    pub scope: InstallScope,
    /// The forge binary that the installation calls.
    pub forge: String,
    pub outcome: InstallOutcome,
    pub parts: Vec<PartChange>,
    /// The parts that were not installed, with the reasons.
    pub left_out: Vec<OmittedPart>,
    /// Notes for a person.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallOutcome {
    Now,
    /// Everything was installed already.
    Already,
    /// The user did not agree: nothing was changed.
    Not,
}

#[derive(Debug, Serialize)]
pub struct PartChange {
    pub part: IntegrationPart,
    pub file: String,
    pub new_file: bool,
    /// Whether the file had the wanted content already.
    pub unchanged: bool,
    /// A description of the content, in lines.
    pub contents: Vec<String>,
}

/// A part that is not installed.
#[derive(Debug, Serialize)]
pub struct OmittedPart {
    pub part: IntegrationPart,
    pub reason: String,
}

/// Prints what an installation changes.
pub fn print_plan(report: &HooksInstallReport, screen: &mut Screen) {
    let (title, whom) = (report.agent.title(), scope_words(report.scope));
    screen.plain(&format!("forge for {title}, {whom}:"));
    for change in &report.parts {
        screen.gap();
        screen.put(Tone::Heading, &crate::text::capitalised(change.part.title()));
        screen.put(Tone::Plain, " in ");
        screen.put(Tone::Id, &change.file);
        let what = match (change.unchanged, change.new_file) {
            (true, _) => " (there already)",
            (_, true) => " (a new file)",
            _ => "",
        };
        screen.dim(what);
        for line in &change.contents {
            screen.paragraph(Tone::Plain, 2, line);
        }
    }
    print_notes(report, screen);
}

fn print_notes(report: &HooksInstallReport, screen: &mut Screen) {
    for left_out in &report.left_out {
        screen.gap();
        let part = left_out.part.title();
        screen.paragraph(Tone::Warning, 0, &format!("No {part}: {}.", left_out.reason));
    }
    for note in &report.notes {
        screen.gap();
        screen.paragraph(Tone::Warning, 0, note);
    }
}

fn scope_words(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::Local => "for you in this project",
        InstallScope::Project => "for everybody in this project",
        InstallScope::User => "for you in all projects",
    }
}

impl Report for HooksInstallReport {
    fn exit_code(&self) -> u8 {
        if self.outcome == InstallOutcome::Not { EXIT_NO } else { EXIT_OK }
    }

    fn human(&self, screen: &mut Screen) {
        let title = self.agent.title();
        match self.outcome {
            InstallOutcome::Already => {
                screen.plain(&format!("All of it is there already for {title}."));
                print_notes(self, screen);
            }
            InstallOutcome::Now => {
                screen.good(&format!("Installed for {title}, {}:", scope_words(self.scope)));
                for change in &self.parts {
                    screen.plain(&format!("  {} in {}", change.part.title(), change.file));
                }
                print_notes(self, screen);
                screen.gap();
                screen.dim(&format!(
                    "'forge doctor' says whether it works, 'forge hooks uninstall {} --{}' \
                         removes all of it.",
                    self.agent.name(),
                    self.scope.name()
                ));
            }
            InstallOutcome::Not => {
                print_plan(self, screen);
                screen.gap();
                screen.plain("Nothing was changed; '--yes' does it.");
            }
        }
    }
}

/// The state of all installations.
#[derive(Debug, Serialize)]
pub struct HooksStatusReport {
    /// Whether there is a store here; without one, hooks do nothing.
    pub store: bool,
    /// The running binary.
    pub forge: String,
    pub installed: Vec<ScopeStatus>,
    /// The agents without an installation.
    pub not_installed: Vec<CodingAgent>,
}

/// One installation.
#[derive(Debug, Serialize)]
pub struct ScopeStatus {
    pub agent: CodingAgent,
    pub scope: InstallScope,
    pub parts: Vec<PartStatus>,
}

/// One part of an installation.
#[derive(Debug, Serialize)]
pub struct PartStatus {
    pub part: IntegrationPart,
    pub file: String,
    /// Whether it exists.
    pub installed: bool,
    /// Whether it calls the running binary, or no binary.
    pub current: bool,
    pub binaries: Vec<String>,
    /// The binaries among them that are missing or not executable.
    pub missing_binaries: Vec<String>,
    /// Its faults.
    pub faults: Vec<InstallationFault>,
    /// Why the file could not be examined.
    pub error: Option<String>,
}

impl Report for HooksStatusReport {
    fn human(&self, screen: &mut Screen) {
        for status in &self.installed {
            screen.gap();
            let (title, whom) = (status.agent.title(), scope_words(status.scope));
            screen.line(Tone::Heading, &format!("{title}, {whom}"));
            for part in &status.parts {
                part.print(screen);
            }
            if !self.store && status.scope == InstallScope::User {
                screen.warning("  does nothing here: this project has no store");
            }
        }
        let others: Vec<&str> = self.not_installed.iter().map(|agent| agent.title()).collect();
        if !others.is_empty() {
            screen.gap();
            screen.paragraph(Tone::Dim, 0, &format!("Not installed: {}.", others.join(", ")));
        }
        if !self.store {
            screen.gap();
            screen.paragraph(
                Tone::Warning,
                0,
                "There is no store here: until 'forge init' makes one, hooks do nothing.",
            );
        }
    }
}

impl PartStatus {
    fn print(&self, screen: &mut Screen) {
        let (tone, state) = match (&self.error, self.installed) {
            (Some(error), _) => (Tone::Bad, format!("unknown: {error}")),
            (None, false) => (Tone::Dim, "not there".to_owned()),
            (None, true) if !self.missing_binaries.is_empty() => {
                let missing = self.missing_binaries.join(", ");
                (Tone::Bad, format!("calls {missing}, which is not there"))
            }
            (None, true) if !self.current => {
                let binaries = self.binaries.join(", ");
                (Tone::Warning, format!("calls {binaries}, not this forge"))
            }
            (None, true) if self.faults.iter().any(|fault| fault.remedy.is_none()) => {
                (Tone::Warning, "installed by an earlier forge".to_owned())
            }
            (None, true) => (Tone::Good, "installed".to_owned()),
        };
        screen.put(Tone::Plain, &format!("  {} in {}: ", self.part.title(), self.file));
        screen.line(tone, &state);
        for fault in &self.faults {
            screen.paragraph(Tone::Warning, 4, &fault.what);
        }
    }
}

/// An installation that was removed.
#[derive(Debug, Serialize)]
pub struct HooksUninstallReport {
    pub agent: CodingAgent,
    pub scope: InstallScope,
    /// The files from which it was removed.
    pub files: Vec<String>,
    /// The scopes in which another installation remains.
    pub elsewhere: Vec<InstallScope>,
}

impl Report for HooksUninstallReport {
    fn human(&self, screen: &mut Screen) {
        let title = self.agent.title();
        if self.files.is_empty() {
            let whom = scope_words(self.scope);
            screen.plain(&format!("Nothing is installed for {title}, {whom}."));
        } else {
            let files = self.files.join(", ");
            screen.paragraph(Tone::Plain, 0, &format!("Removed for {title}: {files}"));
        }
        for scope in &self.elsewhere {
            screen.dim(&format!(
                "There is another installation: 'forge hooks uninstall {} --{}'.",
                self.agent.name(),
                scope.name()
            ));
        }
    }
}
