//! Moments: everything that a person can name as a position in the history.

use super::ambiguous_name::{AmbiguousName, IdPrefix, is_long_id, is_name, is_word};
use super::error::{MomentError, TimeError, quoted};
use super::month_date::is_whole_date;
use super::parse_time::parse_time;
use super::resolved_time::ResolvedTime;
use super::text_cursor::TextCursor;
use crate::model::claim::{GapStatus, HypothesisStatus, VocabularyWord};
use crate::model::{Kind, Timestamp};
use chrono::TimeZone;

/// Maximum length of a moment, in bytes.
const MAX_MOMENT_BYTES: usize = 1000;

/// A parsed moment; the engine resolves it in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentExpression {
    /// The starting position.
    pub base: MomentBase,
    /// The number of revisions to go back from there, along first parents.
    pub back: u64,
}

/// A moment without the steps back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MomentBase {
    /// `HEAD`, `@`: everything recorded on the current branch.
    Head,
    /// `#42`: the revision or checkpoint with that sequence number.
    Sequence(u64),
    /// A time, on the branch that was current then.
    Time(ResolvedTime),
    /// `main@{10m}`: that branch at a time; without a name, the branch that is current now.
    BranchAt {
        /// The branch's name; `None` for the current one.
        branch: Option<String>,
        /// The time on that branch.
        time: ResolvedTime,
    },
    /// A word that can be a tag, a branch or an id prefix.
    Name(AmbiguousName),
    /// `tag:NAME`: the newest checkpoint with this tag.
    Tag(String),
    /// `branch:NAME`: the head of this branch.
    Branch(String),
    /// `id:HEX`: the checkpoint or revision with this id prefix.
    Id(IdPrefix),
    /// `start`, `first`: the first event of the session.
    Start,
    /// `last compaction`: the last compaction of an agent's context.
    LastCompaction,
    /// `before last compaction`: just before the last compaction.
    BeforeLastCompaction,
    /// `when H3 was rejected`, `when G2 was filled`: the last time a claim changed to a status.
    ClaimBecame {
        /// The kind of the claim: a hypothesis or a gap.
        kind: Kind,
        /// The id of the claim.
        id: String,
        /// The word of a [`HypothesisStatus`] or [`GapStatus`].
        status: &'static str,
    },
    /// `commit 1a2b3c4`: when this commit was made.
    Commit(IdPrefix),
    /// `before commit 1a2b3c4`: just before this commit was made.
    BeforeCommit(IdPrefix),
}

/// Parses a moment as people write it. All forms are in `docs/time.md`.
///
/// A word that can be a time or a name is a time, except a number such as `20250120` and a long
/// hexadecimal word: they are names that have a time as their last meaning. A word that only begins
/// like a time is a name. The prefixes `tag:`, `branch:`, `id:` and `time:` force an
/// interpretation.
///
/// ```
/// use forge_store::model::Timestamp;
/// use forge_store::model::time_grammar::{MomentBase, parse_moment};
///
/// let now = Timestamp::parse_rfc3339("2025-06-18T16:45:30Z").unwrap();
/// let moment = parse_moment("before last compaction~2", now, &chrono::Utc)?;
/// assert_eq!(moment.base, MomentBase::BeforeLastCompaction);
/// assert_eq!(moment.back, 2);
/// # Ok::<(), forge_store::model::time_grammar::MomentError>(())
/// ```
///
/// # Errors
///
/// If the text is not a moment, or is an invalid time ([`parse_time`]). The error suggests what to
/// write instead.
pub fn parse_moment<Tz: TimeZone>(
    text: &str,
    now: Timestamp,
    zone: &Tz,
) -> Result<MomentExpression, MomentError> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(MomentError::Empty);
    }
    if text.len() > MAX_MOMENT_BYTES {
        return Err(MomentError::Unreadable { text: quoted(text) });
    }
    let (base, back) = read_steps(text)?;
    let base = read_base(base, text, now, zone)?;
    Ok(MomentExpression { base, back })
}

fn impossible(text: &str, problem: impl Into<String>, instead: &str) -> MomentError {
    MomentError::Impossible {
        text: quoted(text),
        problem: problem.into(),
        instead: instead.to_owned(),
    }
}

/// Strips all `~3` and `~` from the end. Returns the rest, and how many revisions they go back.
fn read_steps(text: &str) -> Result<(&str, u64), MomentError> {
    let (mut base, mut back) = (text, 0_u64);
    while let Some((front, digits)) = base.rsplit_once('~')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        let steps = if digits.is_empty() { Some(1) } else { digits.parse().ok() };
        back = steps
            .and_then(|steps: u64| back.checked_add(steps))
            .ok_or_else(|| impossible(text, "it goes back too many steps", "'HEAD~3'"))?;
        base = front.trim_ascii_end();
    }
    if base.is_empty() {
        return Err(impossible(text, "there is nothing to go back from", "'HEAD~3' or '#42~'"));
    }
    Ok((base, back))
}

fn read_base<Tz: TimeZone>(
    base: &str,
    text: &str,
    now: Timestamp,
    zone: &Tz,
) -> Result<MomentBase, MomentError> {
    if is_head(base) {
        return Ok(MomentBase::Head);
    }
    if let Some(digits) = base.strip_prefix('#') {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        return is_number
            .then(|| digits.parse().ok())
            .flatten()
            .map(MomentBase::Sequence)
            .ok_or_else(|| impossible(text, "'#' is followed by a sequence number", "'#42'"));
    }
    if base.ends_with('}')
        && let Some((branch, time)) = base.split_once("@{")
    {
        return read_branch_at(branch, &time[..time.len() - 1], text, now, zone);
    }
    if let Some(forced) = read_forced(base, text, now, zone) {
        return forced;
    }
    if let Some(anchor) = read_anchor(base, text)? {
        return Ok(anchor);
    }
    let id = IdPrefix::parse(base);
    let is_number = base.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = is_word(base) && is_whole_date(base);
    let time_error = match parse_time(base, now, zone) {
        // A decimal number or a long hexadecimal word is more often a name than a time, and a day
        // such as '20-Jan-2025' can be a name too.
        Ok(time) if is_number || is_day || is_long_id(base) => {
            let (name, time) = (base.to_owned(), Some(time));
            return Ok(MomentBase::Name(AmbiguousName { name, id, time, time_error: None }));
        }
        Ok(time) => return Ok(MomentBase::Time(time)),
        Err(error) if error.is_unread() || is_day || id.is_some() => error,
        Err(error) => return Err(error.into()),
    };
    if !is_word(base) {
        return Err(match time_error {
            TimeError::Unreadable { rest: Some(_), .. } => time_error.into(),
            _ => MomentError::Unreadable { text: quoted(text) },
        });
    }
    let begins_like_time = !matches!(time_error, TimeError::Unreadable { rest: None, .. });
    let time_error = begins_like_time.then_some(time_error);
    Ok(MomentBase::Name(AmbiguousName { name: base.to_owned(), id, time: None, time_error }))
}

fn is_head(text: &str) -> bool {
    text == "@" || text.eq_ignore_ascii_case("HEAD")
}

fn read_branch_at<Tz: TimeZone>(
    branch: &str,
    time: &str,
    text: &str,
    now: Timestamp,
    zone: &Tz,
) -> Result<MomentBase, MomentError> {
    let time = parse_time(time, now, zone)?;
    let forced = branch.strip_prefix("branch:");
    if forced.is_none() && (branch.is_empty() || is_head(branch)) {
        return Ok(MomentBase::BranchAt { branch: None, time });
    }
    // 'tag:x@{10m}' does not mean a branch 'tag:x', and a tag has no state at a time.
    let is_branch = forced.map_or_else(|| is_name(branch) && !branch.contains(':'), is_name);
    let branch = forced.unwrap_or(branch);
    if !is_branch {
        let problem = format!("'{}' cannot name a branch", quoted(branch));
        return Err(impossible(text, problem, "'main@{10m}' or '@{yesterday 14:30}'"));
    }
    Ok(MomentBase::BranchAt { branch: Some(branch.to_owned()), time })
}

/// Parses `tag:`, `branch:`, `id:` and `time:` with the text that follows.
fn read_forced<Tz: TimeZone>(
    base: &str,
    text: &str,
    now: Timestamp,
    zone: &Tz,
) -> Option<Result<MomentBase, MomentError>> {
    let (prefix, rest) = base.split_once(':')?;
    let rest = rest.trim_ascii();
    let name = |what: &str, instead| {
        let problem = format!("'{}' cannot name a {what}", quoted(rest));
        if is_name(rest) { Ok(rest.to_owned()) } else { Err(impossible(text, problem, instead)) }
    };
    Some(match prefix.to_ascii_lowercase().as_str() {
        "tag" => name("tag", "'tag:baseline'").map(MomentBase::Tag),
        "branch" => name("branch", "'branch:main'").map(MomentBase::Branch),
        "id" => IdPrefix::parse(rest).map(MomentBase::Id).ok_or_else(|| {
            impossible(text, "an id has 4 to 64 hexadecimal digits", "'id:1a2b3c4'")
        }),
        "time" => parse_time(rest, now, zone).map(MomentBase::Time).map_err(MomentError::from),
        _ => return None,
    })
}

fn read_anchor(base: &str, text: &str) -> Result<Option<MomentBase>, MomentError> {
    let mut cursor = TextCursor::new(base);
    let word = |cursor: &mut TextCursor<'_>, word: &str| {
        cursor.skip_spaces();
        cursor.eat_word(word)
    };
    if (word(&mut cursor, "start") || word(&mut cursor, "first")) && cursor.is_end() {
        return Ok(Some(MomentBase::Start));
    }
    let mut cursor = TextCursor::new(base);
    if word(&mut cursor, "when") && cursor.rest().starts_with(' ') {
        return read_became(cursor, text).map(Some);
    }
    let mut cursor = TextCursor::new(base);
    let is_before = word(&mut cursor, "before");
    word(&mut cursor, "the");
    let mut after = cursor;
    if word(&mut after, "last") && word(&mut after, "compaction") && after.is_end() {
        return Ok(Some(if is_before {
            MomentBase::BeforeLastCompaction
        } else {
            MomentBase::LastCompaction
        }));
    }
    if word(&mut cursor, "commit") && cursor.rest().starts_with(' ') {
        let commit = IdPrefix::parse(cursor.rest().trim_ascii()).ok_or_else(|| {
            impossible(text, "a commit has 4 to 64 hexadecimal digits", "'before commit 1a2b3c4'")
        })?;
        return Ok(Some(if is_before {
            MomentBase::BeforeCommit(commit)
        } else {
            MomentBase::Commit(commit)
        }));
    }
    Ok(None)
}

/// Parses `H3 was rejected`.
fn read_became(mut cursor: TextCursor<'_>, text: &str) -> Result<MomentBase, MomentError> {
    let wrong = |problem: String| {
        impossible(text, problem, "'when H3 was rejected' or 'when G2 was filled'")
    };
    cursor.skip_spaces();
    let id = cursor.take_while(|next| !next.is_whitespace());
    cursor.skip_spaces();
    let is_verb = ["was", "became", "is", "got", "went"].iter().any(|verb| cursor.eat_word(verb));
    if id.is_empty() || id.chars().any(char::is_control) || !is_verb {
        let problem = "'when' is followed by a hypothesis or a gap, 'was' and a status";
        return Err(wrong(problem.to_owned()));
    }
    let status_word = cursor.rest().split_ascii_whitespace().collect::<Vec<_>>().join("_");
    let status_word = status_word.replace('-', "_").to_ascii_lowercase();
    let (of_hypothesis, of_gap) = (HypothesisStatus::WORDS, GapStatus::WORDS);
    // No word is a status of both.
    for (kind, statuses) in [(Kind::Hypothesis, of_hypothesis), (Kind::Gap, of_gap)] {
        if let Some(status) = statuses.iter().copied().find(|status| *status == status_word) {
            return Ok(MomentBase::ClaimBecame { kind, id: id.to_owned(), status });
        }
    }
    Err(wrong(format!(
        "'{}' is not a status of a hypothesis ({}) or of a gap ({})",
        quoted(&status_word),
        of_hypothesis.join(", "),
        of_gap.join(", ")
    )))
}
