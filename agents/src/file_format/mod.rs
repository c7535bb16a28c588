//! Detects the format of a file by the fields in its first bytes. Its name is not used.

mod field_scan;
#[cfg(test)]
mod tests;

use crate::claude_code::TranscriptDialect;
use crate::trajectory::TrajectoryAuthor;
use field_scan::RecordFieldPaths;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// A transcript: one JSON object per line; older ones of Gemini CLI are one document.
    Transcript(TranscriptDialect),
    /// The record of a run that has ended.
    Trajectory(TrajectoryAuthor),
    /// A stream of forge events.
    Events,
    /// A bundle of forge.
    Bundle,
    /// What an agent printed about its run (`--output-format stream-json`), not its own record.
    RunOutput,
    /// Messages as they are sent to a model, not written by a known agent.
    Messages,
    /// A file compressed with zstd.
    Zstd,
    /// A file that another program has to unpack or convert first, or that forge cannot read: a
    /// description of the file, and the command for that, if there is one.
    Packed(&'static str, Option<&'static str>),
    /// Any other JSON.
    Json,
    /// Not JSON.
    Other,
}

/// The first bytes of files that another program has to unpack or convert.
const PACKED: &[(&[u8], &str, Option<&str>)] = &[
    (b"\x1f\x8b", "a file compressed with gzip", Some("gunzip")),
    (b"\xfd7zXZ\0", "a file compressed with xz", Some("unxz")),
    (BZIP2, "a file compressed with bzip2", Some("bunzip2")),
    (b"PK\x03\x04", "a zip archive", Some("unzip")),
    (b"\xff\xfe", "a text in UTF-16", Some("iconv -f utf-16 -t utf-8")),
    (b"\xfe\xff", "a text in UTF-16", Some("iconv -f utf-16 -t utf-8")),
    (b"SQLite format 3\0", "a database of SQLite", None),
];
/// A digit follows: the size of the blocks.
const BZIP2: &[u8] = b"BZh";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const BUNDLE: &[u8] = b"forge bundle\r\n";
/// The bytes at offset 257 of a tar archive, in the header of its first file.
const TAR: &[u8] = b"ustar";

impl FileFormat {
    const UTF_16_LE: Self = Self::Packed("a text in UTF-16", Some("iconv -f utf-16le -t utf-8"));
    const UTF_16_BE: Self = Self::Packed("a text in UTF-16", Some("iconv -f utf-16be -t utf-8"));

    /// Detects the format of a file from its first bytes. Returns `None` if they are only white
    /// space.
    ///
    /// If several formats are possible and `wanted` is one of them, it is chosen. One megabyte is
    /// enough for all of these formats. The time grows linearly with the number of bytes.
    #[must_use]
    pub fn detect(head: &[u8], wanted: Option<Self>) -> Option<Self> {
        if head.starts_with(BUNDLE) {
            return Some(Self::Bundle);
        }
        if let Some(packed) = Self::packed(head) {
            return Some(packed);
        }
        if head.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0)
            || head.trim_ascii() == b"\xef\xbb\xbf"
        {
            return None;
        }
        let shape = RecordFieldPaths::from_bytes(head);
        if shape.objects == 0 {
            return Some(if shape.lists > 0 { Self::Json } else { Self::Other });
        }
        if let Some(what) = Self::not_a_transcript(&shape) {
            return Some(Self::Packed(what, None));
        }
        let mut forms = wanted.into_iter().chain([
            Self::Transcript(TranscriptDialect::Codex),
            Self::Transcript(TranscriptDialect::Gemini),
            Self::Trajectory(TrajectoryAuthor::MiniSweAgent),
            Self::Trajectory(TrajectoryAuthor::OpenHands),
            Self::Trajectory(TrajectoryAuthor::SweAgent),
            Self::Transcript(TranscriptDialect::ClaudeCode),
            Self::Events,
            Self::RunOutput,
            Self::Messages,
        ]);
        let found = forms.find(|form| form.fits(&shape));
        // A bad line may begin like a list. A file is a list only if it begins with `[`.
        let is_list = head.trim_ascii_start().starts_with(b"[");
        let found = found.or_else(|| is_list.then(|| Self::record_list(shape)).flatten());
        Some(found.unwrap_or(Self::Json))
    }

    /// Detects from its first bytes a file whose text cannot be read as it is: a file that is
    /// compressed, an archive, a database, or a text in UTF-16.
    #[must_use]
    pub fn packed(head: &[u8]) -> Option<Self> {
        if head.starts_with(ZSTD) {
            return Some(Self::Zstd);
        }
        let is_magic = |magic: &[u8]| {
            head.starts_with(magic)
                && (magic != BZIP2 || head.get(BZIP2.len()).is_some_and(u8::is_ascii_digit))
        };
        if let Some((_, what, unpack)) = PACKED.iter().find(|(magic, ..)| is_magic(magic)) {
            return Some(Self::Packed(what, *unpack));
        }
        match head {
            [b'{' | b'[', 0, next, 0, ..] if *next != 0 => return Some(Self::UTF_16_LE),
            [0, b'{' | b'[', 0, next, ..] if *next != 0 => return Some(Self::UTF_16_BE),
            _ => {}
        }
        let is_tar = head.get(257..).is_some_and(|rest| rest.starts_with(TAR));
        (is_tar && !head.starts_with(b"{"))
            .then_some(Self::Packed("a tar archive", Some("tar -xf")))
    }

    /// Returns the format of a list whose elements are the records of a transcript, if these are
    /// its fields.
    fn record_list(mut shape: RecordFieldPaths) -> Option<Self> {
        const EACH: Option<&str> = Some("jq -c '.[]'");
        if !std::mem::take(&mut shape.list) {
            return None;
        }
        [
            (TranscriptDialect::Codex, "a rollout of Codex as one JSON list"),
            (TranscriptDialect::Gemini, "a recording of Gemini CLI as one JSON list"),
            (TranscriptDialect::ClaudeCode, "a transcript of Claude Code as one JSON list"),
        ]
        .into_iter()
        .find(|(dialect, _)| Self::Transcript(*dialect).fits(&shape))
        .map(|(_, what)| Self::Packed(what, EACH))
    }

    /// Returns a description of the file if these fields show that it only looks like a transcript
    /// of Claude Code.
    fn not_a_transcript(shape: &RecordFieldPaths) -> Option<&'static str> {
        if shape.record_has(&["display", "timestamp", "project"], "type") && !shape.has("type") {
            return Some("Claude Code's list of what was typed, which is no transcript");
        }
        let is_qwen = shape.has("message.parts") && !shape.has("message.content");
        (is_qwen && shape.has("parentUuid")).then_some("a session of Qwen Code")
    }

    /// Whether a file with these fields may have this format.
    fn fits(self, shape: &RecordFieldPaths) -> bool {
        let has = |path: &str| shape.has(path);
        let all = |paths: &[&str]| paths.iter().all(|path| shape.has(path));
        let says = |path: &str, value: &str| shape.has_word(path, |it| it == value);
        match self {
            Self::Transcript(TranscriptDialect::Codex) => {
                !shape.list
                    && (shape.record_has(&["timestamp", "type", "payload"], "sessionId")
                        || has("record_type")
                        || shape.record_has(&["id", "timestamp", "instructions"], "source"))
            }
            Self::Transcript(TranscriptDialect::Gemini) => {
                !shape.list
                    && (shape.record_has(&["sessionId", "projectHash"], "type")
                        || has("$set")
                        || has("$rewindTo")
                        || (shape.record_has(&["id", "timestamp", "type", "content"], "sessionId")
                            && says("type", "gemini")))
            }
            Self::Transcript(TranscriptDialect::ClaudeCode) => {
                !shape.list
                    && (shape.record_has(&["type", "sessionId"], "projectHash")
                        || has("isSidechain")
                        || has("parentUuid")
                        || has("leafUuid")
                        || says("type", "summary")
                        || says("type", "file-history-snapshot"))
            }
            Self::Trajectory(TrajectoryAuthor::MiniSweAgent) => {
                shape.has_word("trajectory_format", |it| it.starts_with("mini-swe-agent"))
                    || has("info.mini_version")
                    || (has("messages[].role") && has("info.exit_status"))
                    // The format is named at the end of the file, which may be missing.
                    || ["actions", "response", "returncode", "model_stats"]
                        .iter()
                        .any(|name| has(&format!("messages[].extra.{name}")))
            }
            Self::Trajectory(TrajectoryAuthor::OpenHands) => {
                let prefixes =
                    ["", "trajectory[].", "history[].", "events[].", "[].", "history[][]."];
                prefixes.iter().any(|prefix| {
                    let own = |name: &str| shape.has(&format!("{prefix}{name}"));
                    own("source")
                        && own("timestamp")
                        && (((own("action") || own("observation"))
                            && (own("args") || own("extras") || own("content")))
                            || shape.has_word(&format!("{prefix}kind"), |it| it.ends_with("Event")))
                })
            }
            Self::Trajectory(TrajectoryAuthor::SweAgent) => {
                // OpenHands can write its events as a `trajectory` too.
                !Self::Trajectory(TrajectoryAuthor::OpenHands).fits(shape)
                    && (has("attempts[].trajectory")
                        || has("trajectory[].action")
                        || has("trajectory[].observation")
                        || has("trajectory[].thought")
                        || (has("trajectory")
                            && (has("history") || has("environment") || has("info"))))
            }
            Self::Events => {
                let words = ["put", "remove", "revision", "checkpoint", "branch", "session"];
                !shape.list && words.iter().any(|word| shape.record_has(&["at", word], "type"))
            }
            Self::RunOutput => {
                !shape.list
                    && shape.record_has(&["type", "session_id"], "sessionId")
                    && (says("type", "init") || says("subtype", "init"))
            }
            Self::Messages => {
                has("messages[].role")
                    || (all(&["role", "content"]) || all(&["role", "parts"]))
                    || has("contents[].role")
            }
            Self::Bundle | Self::Zstd | Self::Packed(..) | Self::Json | Self::Other => false,
        }
    }

    /// Returns a description of the format for messages, with its article if it has one.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Transcript(TranscriptDialect::ClaudeCode) => "a transcript of Claude Code",
            Self::Transcript(TranscriptDialect::Codex) => "a rollout of Codex",
            Self::Transcript(TranscriptDialect::Gemini) => "a recording of Gemini CLI",
            Self::Trajectory(TrajectoryAuthor::SweAgent) => "a trajectory of SWE-agent",
            Self::Trajectory(TrajectoryAuthor::MiniSweAgent) => "a trajectory of mini-swe-agent",
            Self::Trajectory(TrajectoryAuthor::OpenHands) => "a trajectory of OpenHands",
            Self::Events => "a stream of events of forge",
            Self::Bundle => "a bundle of forge",
            Self::RunOutput => "what an agent printed about its run, not its own record",
            Self::Messages => "a list of messages for a model",
            Self::Zstd => "a file compressed with zstd",
            Self::Packed(what, _) => what,
            Self::Json => "JSON of a form that forge does not know",
            Self::Other => "no JSON",
        }
    }

    /// Returns the subcommand of `forge import` for files of the format, if there is one.
    #[must_use]
    pub const fn import_subcommand(self) -> Option<&'static str> {
        Some(match self {
            Self::Transcript(TranscriptDialect::ClaudeCode) => "claude-code",
            Self::Transcript(TranscriptDialect::Codex) => "codex",
            Self::Transcript(TranscriptDialect::Gemini) => "gemini",
            Self::Trajectory(author) => author.name(),
            Self::Events => "events",
            Self::Bundle => "bundle",
            _ => return None,
        })
    }

    /// Whether a file with this detected format may have the format `wanted`. JSON of an unknown
    /// form may have any.
    #[must_use]
    pub fn may_be(self, wanted: Self) -> bool {
        self == wanted || self == Self::Json
    }
}

/// Whether a document over several lines begins here, rather than one object per line.
#[must_use]
pub fn is_document(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // The last line of the bytes read may continue.
    line.len() < head.len() && matches!(line.trim_ascii_end().last(), Some(b'{' | b'[' | b','))
}
