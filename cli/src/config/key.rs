//! The known settings.

use crate::args::{ColorMode, value};
use crate::error::CommandError;
use SettingType::{Bool, Color, Count, Duration, Seconds, SessionKinds, Text, Words};
use forge_store::model::SessionKind;
use std::fmt;
use std::time;
use strsim::levenshtein;

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// `true` or `false`.
    Bool,
    /// A whole number from 0.
    Count,
    /// A number of seconds.
    Seconds,
    /// A number with a unit: `10m`.
    Duration,
    /// When to use colour.
    Color,
    /// Any text.
    Text,
    /// Words with spaces between them.
    Words,
    /// Kinds of sessions with spaces between them.
    SessionKinds,
}

/// Whether a project's file may set a setting. Projects may come from other people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectPermission {
    /// Every project may set it.
    Free,
    /// Every project may set it, but a value that weakens the user's protection is ignored, unless
    /// the user created the project or allowed the value.
    IfAllowed,
    /// No project may set it: it makes forge run a program, send what is recorded elsewhere, or
    /// wait.
    Never,
}

/// A known setting.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name, with dots.
    pub name: &'static str,
    /// The type of its value.
    pub shape: SettingType,
    /// Its default value, if it has one.
    pub default: Option<&'static str>,
    /// The environment variable that sets it.
    pub variable: Option<&'static str>,
    /// Whether a project's file may set it.
    pub in_project: ProjectPermission,
    /// What it does.
    pub about: &'static str,
}

/// Declares settings: the constant of the name, if it has one, the name, whether a project may set
/// it, its type, its default value, the environment variable that sets it, and what it does.
macro_rules! settings {
    ($($($constant:ident =)? $name:literal: $in_project:ident $shape:ident
        [$($default:literal)?] $([$variable:literal])? $about:literal;)+) => {
        $($(
            #[doc = concat!("`", $name, "`: ", $about, ".")]
            pub const $constant: &str = $name;
        )?)+

        static KEYS: &[SettingKey] = &[$(SettingKey {
            name: $name,
            shape: $shape,
            default: settings!(@option $($default)?),
            variable: settings!(@option $($variable)?),
            in_project: ProjectPermission::$in_project,
            about: $about,
        }),+];
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
}

settings! {
    LOCK_TIMEOUT = "lock_timeout": Free Seconds ["5"] ["FORGE_LOCK_TIMEOUT"]
        "how many seconds to wait for a lock";
    COLOR = "color": Free Color ["auto"] ["FORGE_COLOR"] "when to use colour: auto, always, never";
    PAGER = "pager": Never Text [] ["FORGE_PAGER"]
        "the program that shows long output; empty for none";
    REDACT_ENABLED = "redact.enabled": IfAllowed Bool ["true"]
        "whether secrets are removed before storing";
    REDACT_ALLOW = "redact.allow": IfAllowed Words []
        "secrets that are let through: parts of them, or kind:NAME, separated by spaces";
    REDACT_VARIABLES = "redact.variables": IfAllowed Words []
        "environment variables whose values are kept, separated by spaces; a name can end with *";
    INFERENCE_ENABLED = "inference.enabled": Free Bool ["true"]
        "whether rules look for inferences in an agent's messages";
    SCHEDULE_EVERY = "schedule.every": Free Duration []
        "how often to make a checkpoint, such as 10m";
    KEEP_LAST = "keep.last": IfAllowed Count [] "how many of the newest checkpoints prune keeps";
    KEEP_WITHIN = "keep.within": IfAllowed Duration []
        "for how long prune keeps every checkpoint, such as 1h";
    KEEP_DAYS = "keep.days": IfAllowed Count [] "for how many days prune keeps checkpoints";
    KEEP_HOURLY = "keep.hourly": IfAllowed Count []
        "for how many hours prune keeps the newest checkpoint";
    KEEP_DAILY = "keep.daily": IfAllowed Count []
        "for how many days prune keeps the newest checkpoint";
    KEEP_WEEKLY = "keep.weekly": IfAllowed Count []
        "for how many weeks prune keeps the newest checkpoint";
    KEEP_TAGS = "keep.tags": IfAllowed Words []
        "tags whose checkpoints prune keeps, separated by spaces";
    KEEP_REVISIONS = "keep.revisions": IfAllowed Duration ["7d"]
        "for how long prune keeps revisions without a checkpoint";
    KEEP_SESSIONS = "keep.sessions": IfAllowed Duration []
        "for how long after its end a debugging session stays";
    KEEP_TRANSCRIPTS = "keep.transcripts": IfAllowed Duration []
        "for how long after its end the transcripts and outputs of a session stay";
    KEEP_UNDO = "keep.undo": IfAllowed Duration ["14d"] "for how long a pruning can be undone";
    PRUNE_AUTOMATIC = "prune.automatic": IfAllowed Bool ["false"]
        "whether 'forge maintain' and the end of an agent's session prune by these rules";
    PUSH_KINDS = "push.kinds": Never SessionKinds ["debug"]
        "the kinds of sessions that push --all and sync --all push, separated by spaces";
    SYNC_HOOKS = "sync.hooks": Never Bool ["true"]
        "whether hooks exchange an agent's session with the remote";
    SYNC_WAIT = "sync.wait": Never Bool ["false"]
        "whether the end of an agent's session waits, at most 10 s, until it is pushed";
    "auto_checkpoint.enabled": Free Bool ["true"] "whether events make checkpoints at all";
    "auto_checkpoint.significant_time": Free Duration ["5m"]
        "how much time since the last checkpoint is significant";
    "auto_checkpoint.hypothesis_status_change": Free Bool ["true"]
        "whether a hypothesis that changes its status makes one";
    "auto_checkpoint.new_contradiction_detected": Free Bool ["true"]
        "whether a contradiction makes one";
    "auto_checkpoint.verification_complete": Free Bool ["true"]
        "whether a finished verification makes one";
    "auto_checkpoint.branch_switch": Free Bool ["true"] "whether another branch makes one";
    "auto_checkpoint.gap_filled": Free Bool ["true"] "whether a filled gap makes one";
    "auto_checkpoint.code_modified": Free Bool ["true"] "whether changed source code makes one";
    "auto_checkpoint.significant_time_passed": Free Bool ["true"]
        "whether significant time makes one";
    "auto_checkpoint.context_compaction_warning": Free Bool ["true"]
        "whether an agent about to lose its context makes one";
}

impl SettingKey {
    /// Every setting.
    pub fn all() -> &'static [Self] {
        KEYS
    }

    /// Finds the setting with this name.
    ///
    /// # Errors
    ///
    /// Invalid if there is none; the hint names the nearest one.
    pub fn find(name: &str) -> Result<&'static Self, CommandError> {
        KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
            let error = CommandError::invalid(format!("there is no setting '{name}'"));
            error.hinted(match nearest_name(name) {
                Some(known) => format!("did you mean '{known}'?"),
                None => "'forge config list' names them all".to_owned(),
            })
        })
    }

    pub fn parse(&self, text: &str) -> Result<SettingValue, CommandError> {
        let value = match self.shape {
            Bool => {
                text.parse().map(SettingValue::Bool).map_err(|_| "must be true or false".into())
            }
            Count => {
                text.parse().map(SettingValue::Count).map_err(|_| "must be a whole number".into())
            }
            Seconds => value::parse_seconds(text).map(SettingValue::Seconds),
            Duration => value::parse_duration(text)
                .map(SettingValue::Duration)
                .map_err(|_| "must be a duration such as 90s, 10m or 7d".into()),
            Color => <ColorMode as clap::ValueEnum>::from_str(text, false)
                .map(SettingValue::Color)
                .map_err(|_| "must be auto, always or never".into()),
            Text => Ok(SettingValue::Text(text.to_owned())),
            Words => Ok(SettingValue::Words(text.split_whitespace().map(str::to_owned).collect())),
            SessionKinds => session_kinds(text).map(SettingValue::Words),
        };
        value.map_err(|must: String| {
            CommandError::invalid(format!("'{}' {must}, not '{text}'", self.name))
        })
    }

    /// Whether a project that sets this value needs the user's permission.
    pub fn weakens(&self, value: &SettingValue) -> bool {
        let is_safe = match (self.name, value) {
            (REDACT_ENABLED, SettingValue::Bool(on)) => *on,
            (PRUNE_AUTOMATIC, SettingValue::Bool(on)) => !on,
            (REDACT_ALLOW | REDACT_VARIABLES, SettingValue::Words(words)) => words.is_empty(),
            _ => false,
        };
        self.in_project != ProjectPermission::Free && !is_safe
    }

    /// The error for a project's file that sets what only the user may set.
    pub fn refused_in_project(&self) -> CommandError {
        let reason = match self.name {
            PAGER => "it runs a program",
            SYNC_WAIT => "it makes the end of a session wait",
            _ => "it says what is sent to a remote",
        };
        CommandError::invalid(format!("a project may not set '{}', as {reason}", self.name))
            .hinted(format!("'forge config set --user {} VALUE' sets it for you", self.name))
    }
}

/// Reads the names of kinds of sessions.
fn session_kinds(text: &str) -> Result<Vec<String>, String> {
    let known = SessionKind::ALL.map(SessionKind::name);
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() || words.iter().any(|word| !known.contains(&word.as_str())) {
        return Err(format!("must be kinds of sessions out of {}", known.join(", ")));
    }
    Ok(words)
}

#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Count(u64),
    /// Seconds, written as a plain number.
    Seconds(time::Duration),
    /// A duration, written with units.
    Duration(time::Duration),
    /// When to use colour.
    Color(ColorMode),
    Text(String),
    /// Words, written with spaces between them.
    Words(Vec<String>),
}

impl SettingValue {
    /// Formats the value as TOML.
    pub fn to_toml(&self) -> String {
        match self {
            Self::Bool(_) | Self::Count(_) | Self::Seconds(_) => self.to_string(),
            _ => toml::Value::String(self.to_string()).to_string(),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(out, "{value}"),
            Self::Count(count) => write!(out, "{count}"),
            Self::Seconds(duration) => write!(out, "{}", duration.as_secs_f64()),
            Self::Duration(duration) => write_units(out, duration.as_secs()),
            Self::Color(ColorMode::Auto) => out.write_str("auto"),
            Self::Color(ColorMode::Always) => out.write_str("always"),
            Self::Color(ColorMode::Never) => out.write_str("never"),
            Self::Text(text) => out.write_str(text),
            Self::Words(words) => out.write_str(&words.join(" ")),
        }
    }
}

fn write_units(out: &mut fmt::Formatter<'_>, seconds: u64) -> fmt::Result {
    if seconds == 0 {
        return out.write_str("0s");
    }
    let mut rest = seconds;
    for (unit, unit_seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if rest >= unit_seconds {
            write!(out, "{}{unit}", rest / unit_seconds)?;
            rest %= unit_seconds;
        }
    }
    Ok(())
}

/// Returns the known name with the fewest edits from this one; `None` if they are more than a third
/// of its characters.
fn nearest_name(name: &str) -> Option<&'static str> {
    let last_part = |text: &'static str| text.rsplit('.').next().unwrap_or(text);
    let distances = KEYS.iter().map(|key| {
        let whole = levenshtein(name, key.name);
        // The name may lack its table: `gap_filled` means `auto_checkpoint.gap_filled`.
        let part = levenshtein(name, last_part(key.name));
        (whole.min(part), key.name)
    });
    let (edits, known) = distances.min_by_key(|(edits, _)| *edits)?;
    (edits <= (name.chars().count() / 3).max(1)).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_settings_are_valid_and_printed_as_they_are_written() {
        for key in SettingKey::all() {
            if let Some(text) = key.default {
                assert_eq!(key.parse(text).unwrap().to_string(), text, "{}", key.name);
            }
        }
    }

    #[test]
    fn the_nearest_known_setting_is_named() {
        assert_eq!(nearest_name("lock_timout"), Some("lock_timeout"));
        assert_eq!(nearest_name("gap_filled"), Some("auto_checkpoint.gap_filled"));
        assert_eq!(nearest_name("colour"), Some("color"));
        assert_eq!(nearest_name("editor"), None);
    }

    #[test]
    fn every_trigger_has_its_setting() {
        use forge_store::model::AutoTrigger::*;
        for trigger in [
            HypothesisStatusChange, NewContradictionDetected, VerificationComplete, BranchSwitch,
            GapFilled, CodeModified, SignificantTimePassed, ContextCompactionWarning,
        ] {
            let name = serde_json::to_value(trigger).unwrap();
            let name = format!("auto_checkpoint.{}", name.as_str().unwrap());
            assert_eq!(SettingKey::find(&name).unwrap().shape, Bool);
        }
    }
}
