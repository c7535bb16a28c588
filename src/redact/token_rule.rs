//! Token rules as data: `rules.tsv`. `docs/redaction.md` lists them; a test compares the two.

use super::token_shape::{ScanMemory, TokenMatch, TokenShape};
use crate::const_table::{count, rows};
use std::sync::OnceLock;

/// Where the secret of a rule is, in relation to a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPlacement {
    /// The secret begins with the hint.
    Hint,
    /// The secret is the word that contains the hint.
    Word,
    /// The secret is the whole value of a name that contains the hint.
    Value,
}

/// A rule for the shape of a token.
#[derive(Clone, Copy, Debug)]
pub struct TokenRule {
    /// The kind of the secret: the word after `redacted:`.
    pub kind: &'static str,
    /// The texts of [`Self::hints`] with a space between them.
    pub(super) spaced_hints: &'static str,
    /// The shape (a regular expression over bytes), from the first byte of the token on. If it has
    /// a group, only the group is the secret, otherwise the whole match.
    pub shape: &'static str,
    /// Where the token is, in relation to a hint.
    pub place: TokenPlacement,
    /// Whether the token must also look generated, because its shape says little.
    pub is_random: bool,
    number: usize,
}

/// The lines of the rules.
const LINES: &str = include_str!("rules.tsv");
const COUNT: usize = count(LINES);
/// The rules, read when forge is compiled: no process has to read them.
static RULES: [TokenRule; COUNT] = {
    let lines = rows::<COUNT, 5>(LINES);
    let (mut rules, mut number) = ([TokenRule::NONE; COUNT], 0);
    while number < COUNT {
        rules[number] = TokenRule::read(lines[number], number);
        number += 1;
    }
    rules
};
/// The compiled shapes of the rules, by the number of the rule.
static SHAPES: [OnceLock<TokenShape>; COUNT] = [const { OnceLock::new() }; COUNT];

/// Returns the known token rules.
#[must_use]
pub const fn rules() -> &'static [TokenRule] {
    &RULES
}

/// The kinds that no line of `rules.tsv` describes, with their descriptions.
pub(super) const CONTEXT_KINDS: [(&str, &str); 20] = [
    ("azure-key", "a key of Azure with its mark, such as `+ASt`, `ACDb`, `AZDO` or `JQQJ99`"),
    (
        "aws-secret-key",
        "40 base64 characters after an access key id of AWS or the name of its secret",
    ),
    ("basic", "name and password in base64, after `Basic` or as Docker's `auth`; after `curl -u`"),
    ("bearer", "a token after `Bearer`"),
    (
        "credential",
        "a value after a name such as `credentials` or `auth`, or after `Authorization`",
    ),
    (
        "discord-bot-token",
        "the token of a bot: `[MNO][A-Za-z0-9_-]{22,27}`, 6 and 27 to 38 such characters, joined by dots",
    ),
    ("facebook-app-token", "`[0-9]{15,16}\\|[A-Za-z0-9_-]{27,40}`, if it looks generated"),
    ("pushbullet-token", "`o\\.[A-Za-z0-9]{32}`, if it looks generated"),
    ("vault-legacy-token", "`[sb]\\.[A-Za-z0-9]{24}`, if it looks generated"),
    ("seed-phrase", "12 to 24 words after a name such as `mnemonic` or `seed phrase`"),
    ("zhipu-key", "`[a-f0-9]{32}\\.[A-Za-z0-9]{16}`, if it looks generated"),
    ("zoho-token", "`1000\\.[a-f0-9]{32}\\.[a-f0-9]{32}`"),
    ("environment", "the value of an environment variable that is not on the list"),
    ("kubernetes-secret", "a value under `data` or `stringData` of a Secret of Kubernetes"),
    ("key", "a value after a name such as `api_key`, `access-key`, `SIGNING_KEY`"),
    ("password", "a value after a name such as `password`, `passwd`, `DB_PASS`"),
    ("private-key", "a private key between `BEGIN` and `END`"),
    ("secret", "a value after a name such as `client_secret`"),
    ("session-cookie", "the value of a cookie that identifies a session or a login"),
    ("token", "a value after a name such as `AUTH_TOKEN`"),
];

/// The kind of a password in a URL, with its description.
pub(super) const URL_PASSWORD: (&str, &str) =
    ("url-password", "the password or token in an address such as `postgres://user:password@host`");

/// Returns every kind with its description, sorted. The description of a token is its shape.
#[must_use]
pub fn kinds() -> Vec<(&'static str, String)> {
    let shapes = rules().iter().map(|rule| {
        let hints: Vec<String> = rule.hints().map(|hint| format!("`{hint}`")).collect();
        let what = match rule.place {
            TokenPlacement::Value => {
                format!("`{}` as the value of a name with {}", rule.shape, hints.join(" or "))
            }
            _ if rule.is_random => format!("`{}`, if it looks generated", rule.shape),
            _ => format!("`{}`", rule.shape),
        };
        (rule.kind, what)
    });
    let others = CONTEXT_KINDS.iter().chain([&URL_PASSWORD]);
    let mut kinds: Vec<_> =
        shapes.chain(others.map(|(kind, what)| (*kind, (*what).to_owned()))).collect();
    kinds.sort();
    kinds
}

/// Returns the kind that an entry of [`Redactor::allow`](super::Redactor::allow) names, if there is
/// no such kind.
#[must_use]
pub fn unknown_kind(entry: &str) -> Option<&str> {
    let kind = entry.trim().strip_prefix("kind:")?;
    kinds().iter().all(|(known, _)| *known != kind).then_some(kind)
}

impl TokenRule {
    const NONE: Self = Self {
        kind: "",
        spaced_hints: "",
        shape: "",
        place: TokenPlacement::Hint,
        is_random: false,
        number: 0,
    };

    /// Reads a row of `rules.tsv`.
    const fn read(row: [&'static str; 5], number: usize) -> Self {
        let [place, kind, spaced_hints, shape, random] = row;
        let place = match place.as_bytes() {
            b"token" => TokenPlacement::Hint,
            b"inner" => TokenPlacement::Word,
            _ => TokenPlacement::Value,
        };
        let is_random = matches!(random.as_bytes(), b"random");
        Self { kind, spaced_hints, shape, place, is_random, number }
    }

    /// Returns lower-case texts. Every such token contains one of them, or follows one. The shape
    /// is tried only where one of them is.
    pub fn hints(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.spaced_hints.split(' ')
    }

    /// Returns the token that begins at an offset of a text.
    pub(super) fn find(
        &self,
        text: &[u8],
        start: usize,
        runs: &mut ScanMemory,
    ) -> Option<TokenMatch> {
        let shape = SHAPES[self.number].get_or_init(|| {
            TokenShape::new(self.shape).expect("every shape is compiled by a test")
        });
        shape.find(text, start, runs)
    }
}
