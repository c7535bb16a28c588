//! `forge checkpoint prune`, and automatic pruning.

use crate::args::value::{self, NameArg, to_micros};
use crate::config::{Config, key};
use crate::context::Context;
use crate::doctor::store::disk_usage;
use crate::error::CommandError;
use crate::report::prune::{CheckpointPruneReport, FreedSpace};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::error::Error;
use forge_store::model::{RetentionPolicy, SessionKind, Timestamp};
use forge_store::store::{self, Session, Store, WriteContext};
use std::collections::BTreeSet;
use std::time::Duration;

/// The greatest number: a rule without a number has no limit.
const ALL: &str = "18446744073709551615";

#[derive(Debug, clap::Args)]
pub struct CheckpointPruneArgs {
    /// Keep the newest N; with 0 this rule keeps none, as with every rule
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u64>,

    /// Keep the newest of each of the last N hours that have any (UTC); of all hours without N
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = ALL)]
    pub keep_hourly: Option<u64>,

    /// Keep the newest of each of the last N days that have any (UTC); of all days without N
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = ALL)]
    pub keep_daily: Option<u64>,

    /// Keep the newest of each of the last N weeks that have any, from Monday (UTC); of all weeks
    /// without N
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = ALL)]
    pub keep_weekly: Option<u64>,

    /// Keep all that are younger than this, such as 36h
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration)]
    pub keep_within: Option<Duration>,

    /// Keep all of the last N days
    #[arg(long, value_name = "N")]
    pub keep_days: Option<u64>,

    /// Keep those with one of these tags; can be repeated
    #[arg(long, value_name = "TAG,...")]
    pub keep_tag: Vec<NameArg>,

    /// Also remove manual checkpoints, unless a rule keeps them
    #[arg(long)]
    pub drop_manual: bool,

    /// Also remove significant checkpoints, unless a rule keeps them
    #[arg(long)]
    pub drop_significant: bool,

    /// Keep revisions without a checkpoint that are younger than this, instead of 7d
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration)]
    pub keep_revisions: Option<Duration>,

    /// Age: transcripts and outputs of sessions that ended longer ago are removed; facts stay, with
    /// the beginnings of their texts
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration)]
    pub transcripts: Option<Duration>,

    /// Age: debugging sessions that ended longer ago are removed, with all their data
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration)]
    pub sessions: Option<Duration>,

    /// Prune every debugging session
    #[arg(long)]
    pub all_sessions: bool,

    /// Show what would be removed and why the rest stays, without changing anything
    #[arg(long)]
    pub dry_run: bool,

    /// Free the space at once, also of earlier prunings: they cannot be undone
    #[arg(long, requires = "yes", conflicts_with = "dry_run")]
    pub now: bool,

    /// Confirm what cannot be undone
    #[arg(long)]
    pub yes: bool,
}

impl Verb for CheckpointPruneArgs {
    const NAME: &'static str = "checkpoint prune";
    type Opened = OpenedStore;
    type Report = CheckpointPruneReport;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let retention = retention(self, &context.config)?;
        let mut one = |session: &Session, retention: &RetentionPolicy| match self.dry_run {
            true => session.prune_preview(retention, context.now),
            false => session.prune(&opened.write_context, retention),
        };
        let found = with_reserve(store, self.now, &mut || {
            if self.all_sessions {
                return prune_each_session(store, &retention, &mut one);
            }
            let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
            Ok(vec![(session.summary()?.info.name, one(&session, &retention)?)])
        })?;
        let mut report = CheckpointPruneReport::new(found, (self.dry_run, self.now));
        if !self.dry_run {
            let undo = if self.now { Duration::ZERO } else { undo_window(&context.config) };
            let mut freed = || sweep_dropped(store, context.now, undo, self.now);
            report.freed = Some(with_reserve(store, self.now, &mut freed)?);
            if self.now {
                store.keep_reserve()?;
            }
        }
        Ok(report)
    }
}

/// Runs a step. If `now` is set and the disk is full, deletes the reserve and runs the step again.
/// If the disk is still full, the error does not advise to prune.
fn with_reserve<T>(
    store: &Store,
    now: bool,
    step: &mut dyn FnMut() -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let done = match step() {
        Err(error) if now && error.is_disk_full() && store.give_up_reserve()? => step(),
        done => done,
    };
    done.map_err(|error| match now && error.is_disk_full() {
        true => error.with_only_hint(
            "pruning needs some room too: remove other files from the disk, then prune again; \
            reading still works",
        ),
        false => error,
    })
}

/// Sweeps what can no longer be undone; with `compact`, also compacts the index.
pub fn sweep_dropped(
    store: &Store,
    now: Timestamp,
    undo: Duration,
    compact: bool,
) -> Result<FreedSpace, CommandError> {
    let size = || store.path().map_or(0, |path| disk_usage(path).0);
    let before = size();
    let swept = store.sweep(now, now.plus_micros(-to_micros(undo)))?;
    if compact {
        store.maintain(0)?;
        store.compact()?;
    }
    Ok(FreedSpace {
        prunings: swept.prunings,
        values: swept.values,
        bytes_before: before,
        bytes: size(),
    })
}

/// Returns how long a pruning can be undone.
pub fn undo_window(config: &Config) -> Duration {
    config.duration(key::KEEP_UNDO).expect("it has a default")
}

/// Prunes every debugging session by the rules of the settings, if automatic pruning is enabled and
/// the last pruning is at least a day old.
pub fn prune_automatically(context: &Context, store: &Store) -> Result<(), CommandError> {
    let day = context.now.plus_micros(-to_micros(days(1)));
    if !context.config.is_on(key::PRUNE_AUTOMATIC) || store.pruned_since(day)? {
        return Ok(());
    }
    let retention = configured_retention(&context.config)?;
    let act = WriteContext::hook("checkpoint prune", context.now);
    prune_each_session(store, &retention, &mut |session, retention| {
        session.prune_unmeasured(&act, retention)
    })?;
    Ok(())
}

/// Prunes each debugging session, the current one first. With the first one, the ended sessions and
/// transcripts of the whole store are dropped too. A session that was dropped is skipped.
fn prune_each_session(
    store: &Store,
    retention: &RetentionPolicy,
    one: &mut dyn FnMut(&Session, &RetentionPolicy) -> Result<store::PruneReport, Error>,
) -> Result<Vec<(String, store::PruneReport)>, CommandError> {
    let mut sessions = store.sessions()?;
    sessions.retain(|summary| summary.info.kind == SessionKind::Debug);
    sessions.sort_by_key(|summary| !summary.current);
    let mut retention = retention.clone();
    let (mut found, mut pruned_names) = (Vec::with_capacity(sessions.len()), BTreeSet::new());
    for summary in sessions {
        if pruned_names.contains(&summary.info.name) {
            continue;
        }
        let pruned = one(&store.session(&summary.info.id.to_string())?, &retention)?;
        pruned_names.extend(pruned.sessions.iter().map(|ended| ended.session.clone()));
        found.push((summary.info.name, pruned));
        (retention.texts, retention.sessions) = (None, None);
    }
    Ok(found)
}

fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(24 * 3600))
}

/// The retention rules for checkpoints; `None` is a rule that was not given. A rule that is zero
/// keeps nothing.
struct KeepRules {
    last: Option<u64>,
    within: Option<Duration>,
    days: Option<u64>,
    hourly: Option<u64>,
    daily: Option<u64>,
    weekly: Option<u64>,
    tags: BTreeSet<String>,
}

/// Returns the tags in a text. A tag contains neither a comma nor a space, so both separate tags.
/// An empty one is no tag of a checkpoint, but shows that the rule was given.
fn tags_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|next: char| next == ',' || next.is_whitespace()).map(str::to_owned)
}

impl KeepRules {
    fn from_args(args: &CheckpointPruneArgs) -> Self {
        Self {
            last: args.keep_last,
            within: args.keep_within,
            days: args.keep_days,
            hourly: args.keep_hourly,
            daily: args.keep_daily,
            weekly: args.keep_weekly,
            tags: args.keep_tag.iter().flat_map(|tags| tags_in(tags.as_str())).collect(),
        }
    }

    fn from_config(config: &Config) -> Self {
        Self {
            last: config.count(key::KEEP_LAST),
            within: config.duration(key::KEEP_WITHIN),
            days: config.count(key::KEEP_DAYS),
            hourly: config.count(key::KEEP_HOURLY),
            daily: config.count(key::KEEP_DAILY),
            weekly: config.count(key::KEEP_WEEKLY),
            tags: config.words(key::KEEP_TAGS).iter().flat_map(|tags| tags_in(tags)).collect(),
        }
    }

    /// Returns the retention policy; `None` if no rule was given.
    ///
    /// # Errors
    ///
    /// Invalid if each given rule is zero: no checkpoint would stay, which is probably a mistake.
    fn retention(self, place: &str) -> Result<Option<RetentionPolicy>, CommandError> {
        let counts = [self.last, self.days, self.hourly, self.daily, self.weekly];
        let is_given = counts.iter().any(Option::is_some) || self.within.is_some();
        let days = self.days.map(days);
        let rules = RetentionPolicy {
            last: self.last.unwrap_or(0),
            within: self.within.max(days).map_or(0, to_micros),
            hourly: self.hourly.unwrap_or(0),
            daily: self.daily.unwrap_or(0),
            weekly: self.weekly.unwrap_or(0),
            tags: self.tags,
            ..RetentionPolicy::none()
        };
        if rules != RetentionPolicy::none() {
            return Ok(Some(rules));
        }
        if !is_given {
            return Ok(None);
        }
        let error =
            CommandError::invalid(format!("each rule {place} is zero: none keeps a checkpoint"));
        Err(error.hinted("make one greater than zero, such as '--keep-last 1', or leave them out"))
    }
}

/// The rules on the command line, or else the rules of the settings.
fn retention(args: &CheckpointPruneArgs, config: &Config) -> Result<RetentionPolicy, CommandError> {
    let given = KeepRules::from_args(args).retention("on the command line")?;
    let chosen = match given {
        Some(rules) => with_configured_ages(rules, config),
        None => configured_retention(config)?,
    };
    Ok(RetentionPolicy {
        manual: !args.drop_manual,
        significant: !args.drop_significant,
        revisions: args.keep_revisions.map_or(chosen.revisions, to_micros),
        texts: args.transcripts.map(to_micros).or(chosen.texts),
        sessions: args.sessions.map(to_micros).or(chosen.sessions),
        ..chosen
    })
}

/// The rules of the settings, or else the default ones.
fn configured_retention(config: &Config) -> Result<RetentionPolicy, CommandError> {
    let given = KeepRules::from_config(config).retention("in the settings (keep.*)")?;
    Ok(with_configured_ages(given.unwrap_or_default(), config))
}

/// Sets the ages of revisions, transcripts and ended sessions in these rules from the settings.
fn with_configured_ages(rules: RetentionPolicy, config: &Config) -> RetentionPolicy {
    let revisions = config.duration(key::KEEP_REVISIONS).expect("it has a default");
    let texts = config.duration(key::KEEP_TRANSCRIPTS).map(to_micros);
    let sessions = config.duration(key::KEEP_SESSIONS).map(to_micros);
    RetentionPolicy { revisions: to_micros(revisions), texts, sessions, ..rules }
}
