//! Settings.

use crate::config::{ConfigLayer, IgnoredSetting};
use crate::output::{Report, Screen, TextTable, Tone, cells};
use serde::Serialize;

/// All settings.
#[derive(Debug, Serialize)]
pub struct ConfigListReport {
    /// Each known setting.
    pub settings: Vec<SettingReport>,
    /// The settings of the project that are ignored, because they were not allowed.
    pub ignored: Vec<IgnoredSetting>,
}

#[derive(Debug, Serialize)]
pub struct SettingReport {
    /// Its name.
    pub key: &'static str,
    /// Its value, as in a settings file; null if it is not set and has no default.
    pub value: Option<String>,
    /// The layer that the value comes from.
    pub from: ConfigLayer,
}

impl Report for ConfigListReport {
    fn human(&self, screen: &mut Screen) {
        let mut table = TextTable::new(&["Setting", "Value", "From"]).flexible(1);
        for setting in &self.settings {
            let from = if setting.from == ConfigLayer::Default { Tone::Dim } else { Tone::Plain };
            table.row(cells![
                setting.key, setting.value.as_deref().unwrap_or("-"), (from): &setting.from,
            ]);
        }
        screen.table(&table);
    }
}

impl Report for SettingReport {
    fn human(&self, screen: &mut Screen) {
        if let Some(value) = &self.value {
            screen.plain(value);
        }
    }
}

/// A setting that was changed.
#[derive(Debug, Serialize)]
pub struct ConfigSetReport {
    /// Its name.
    pub key: &'static str,
    /// Its new value.
    pub value: String,
    /// The layer in which it was changed.
    pub to: ConfigLayer,
    /// The layer with a higher priority whose other value is used, if there is one.
    pub overridden: Option<ConfigLayer>,
}

impl Report for ConfigSetReport {
    fn human(&self, screen: &mut Screen) {
        let scope = scope(self.to);
        screen.plain(&format!("Set {} to {} {scope}", self.key, self.value));
        if let Some(layer) = self.overridden {
            let wins = match layer {
                ConfigLayer::Flag => "a flag",
                ConfigLayer::Environment => "an environment variable",
                _ => "the project's file",
            };
            screen.warning(&format!("It has no effect here: {wins} sets another value."));
        }
    }
}

/// Says for which projects a file of this layer sets something.
const fn scope(layer: ConfigLayer) -> &'static str {
    match layer {
        ConfigLayer::User => "for you",
        _ => "for this project",
    }
}

/// A setting that was removed from a file.
#[derive(Debug, Serialize)]
pub struct ConfigUnsetReport {
    /// The layer from which it was removed.
    pub unset_in: ConfigLayer,
    /// The setting as it is now.
    #[serde(flatten)]
    pub now: SettingReport,
}

impl Report for ConfigUnsetReport {
    fn human(&self, screen: &mut Screen) {
        let SettingReport { key, value, from } = &self.now;
        screen.plain(&format!("Unset {key} {}", scope(self.unset_in)));
        screen.plain(&match value {
            Some(value) => format!("  it is {value} now ({from})"),
            None => "  it has no value now".to_owned(),
        });
    }
}

/// The result of allowing a project its ignored settings, or of revoking what was allowed.
#[derive(Debug, Serialize)]
pub struct ConfigTrustReport {
    /// The folder of its store.
    pub store: String,
    /// The target of the link that leads out of the project to the store, if there is one.
    pub link: Option<String>,
    /// The settings that were ignored before and are allowed now.
    pub settings: Vec<IgnoredSetting>,
    /// Whether everything that was allowed was revoked.
    pub forgotten: bool,
}

impl Report for ConfigTrustReport {
    fn human(&self, screen: &mut Screen) {
        let store = &self.store;
        if self.forgotten {
            return screen.plain(&format!("{store} may no longer weaken any of your settings"));
        }
        if let Some(target) = &self.link {
            screen.plain(&format!("Allowed {store} to lead to {target}"));
        }
        for setting in &self.settings {
            screen.plain(&format!("Allowed {} = {} in {store}", setting.key, setting.value));
        }
        if self.link.is_none() && self.settings.is_empty() {
            screen.plain("There was nothing to allow: no setting is ignored");
        }
    }
}
