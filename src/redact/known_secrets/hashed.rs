//! Finds secrets that are known only by their hashes.
//!
//! A rolling hash over a text finds the places where a secret may be, and a keyed hash of the bytes
//! at each place decides. Secrets of one length whose rolling hashes have the same multiplier are
//! searched for together.

use super::{KnownSecrets, MAX_DEPTH};
use crate::model::{NoticeSalt, SecretDigest, SecretHash};
use std::collections::{BTreeMap, BTreeSet};

/// How many upper bits of a rolling hash are kept.
const FIRST_BITS: u32 = 24;
/// How many upper bits of a rolling hash choose a bit of a [`HashGroup::filter`].
const FILTER_BITS: u32 = 16;

/// Secrets that are known only by their hashes.
#[derive(Clone, Debug, Default)]
pub struct HashedSecrets {
    groups: Vec<HashGroup>,
}

/// Secrets of one length whose rolling hashes have one multiplier.
#[derive(Clone, Debug)]
struct HashGroup {
    multiplier: u64,
    length: usize,
    /// The multiplier to the power of the length.
    power: u64,
    /// Has the bit of each secret, chosen by the upper bits of its rolling hash. It dismisses most
    /// places of a text.
    filter: Vec<u64>,
    /// The secrets, in the order of their rolling hashes.
    secrets: Vec<(SecretHash, NoticeSalt)>,
}

impl KnownSecrets {
    /// Returns the hashes of all forms of the secrets: unchanged, escaped in up to three levels of
    /// JSON strings, and as they are in compound ids.
    #[must_use]
    pub fn hashes(&self, multiplier: u64, salt: &NoticeSalt) -> Vec<SecretHash> {
        let texts = self.secrets.iter().map(|secret| secret.chars.iter().collect::<String>());
        let forms: BTreeSet<String> = texts.flat_map(|text| forms_of(&text)).collect();
        let hashes = forms.iter().filter_map(|form| hash_of(form.as_bytes(), multiplier, salt));
        let hashes: BTreeSet<SecretHash> = hashes.collect();
        hashes.into_iter().collect()
    }
}

impl HashedSecrets {
    /// Creates a search for secrets with these hashes. The hashes of one notice have one
    /// multiplier and one salt.
    #[must_use]
    pub fn new<'a>(
        notices: impl IntoIterator<Item = (u64, &'a NoticeSalt, &'a [SecretHash])>,
    ) -> Self {
        let mut groups: BTreeMap<(u64, u32), Vec<(SecretHash, NoticeSalt)>> = BTreeMap::new();
        for (multiplier, salt, secrets) in notices {
            for secret in secrets.iter().filter(|secret| secret.length > 0) {
                groups.entry((multiplier, secret.length)).or_default().push((*secret, *salt));
            }
        }
        let groups = groups.into_iter().map(|((multiplier, length), mut secrets)| {
            secrets.sort_unstable_by_key(|(secret, _)| secret.first);
            let mut filter = vec![0_u64; 1 << (FILTER_BITS - 6)];
            for (secret, _) in &secrets {
                let bit = secret.first >> (FIRST_BITS - FILTER_BITS);
                if let Some(word) = filter.get_mut(bit as usize / 64) {
                    *word |= 1 << (bit % 64);
                }
            }
            let power = multiplier.wrapping_pow(length);
            HashGroup { multiplier, length: length as usize, power, filter, secrets }
        });
        Self { groups: groups.collect() }
    }

    /// Returns the maximum length in bytes of a form of a secret.
    pub(crate) fn max_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.length).max().unwrap_or(0)
    }

    /// Adds the secrets in a text to `found`, unescaped where the text has an escaped form.
    pub(crate) fn find(&self, text: &[u8], found: &mut BTreeSet<String>) {
        for group in &self.groups {
            group.find(text, &mut |form| {
                if let Ok(form) = std::str::from_utf8(form)
                    && !found.contains(form)
                {
                    found.insert(self.plain(form));
                }
            });
        }
    }

    /// Returns the secret that has this form: of the texts that the form may be unescaped to, the
    /// last one whose hash is known; else the form itself.
    fn plain(&self, form: &str) -> String {
        let mut texts = vec![form.replace("%2F", "/").replace("%25", "%")];
        let mut text = form.to_owned();
        for _ in 0..MAX_DEPTH {
            let Ok(inner) = serde_json::from_str::<String>(&format!("\"{text}\"")) else { break };
            texts.push(inner.clone());
            text = inner;
        }
        let known = texts.into_iter().rfind(|text| text != form && self.knows(text.as_bytes()));
        known.unwrap_or_else(|| form.to_owned())
    }

    fn knows(&self, form: &[u8]) -> bool {
        let mut known = false;
        let groups = self.groups.iter().filter(|group| group.length == form.len());
        groups.for_each(|group| group.find(form, &mut |_| known = true));
        known
    }
}

impl HashGroup {
    /// Calls a function with each form of a secret in a text.
    fn find(&self, text: &[u8], visit: &mut dyn FnMut(&[u8])) {
        let mut rolling = 0;
        let leaving = std::iter::repeat_n(None, self.length).chain(text.iter().map(Some));
        for (at, (byte, leaving)) in text.iter().zip(leaving).enumerate() {
            rolling = rolled(rolling, self.multiplier, *byte);
            if let Some(leaving) = leaving {
                let left = self.power.wrapping_mul(u64::from(*leaving) + 1);
                rolling = rolling.wrapping_sub(left);
            }
            let bit = rolling >> (64 - FILTER_BITS);
            if self.filter[bit as usize / 64] & (1 << (bit % 64)) == 0 {
                continue;
            }
            let end = at + 1;
            let Some(form) = end.checked_sub(self.length).map(|from| &text[from..end]) else {
                continue;
            };
            let first = (rolling >> (64 - FIRST_BITS)) as u32;
            let from = self.secrets.partition_point(|(secret, _)| secret.first < first);
            let same = self.secrets[from..].iter().take_while(|(secret, _)| secret.first == first);
            if same.clone().any(|(secret, salt)| strong_hash(form, salt) == secret.strong) {
                visit(form);
            }
        }
    }
}

/// Returns a rolling hash with one more byte at its end.
fn rolled(rolling: u64, multiplier: u64, byte: u8) -> u64 {
    rolling.wrapping_mul(multiplier).wrapping_add(u64::from(byte) + 1)
}

fn strong_hash(form: &[u8], salt: &NoticeSalt) -> SecretDigest {
    let hash = blake3::keyed_hash(salt.as_bytes(), form);
    SecretDigest::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"))
}

fn hash_of(form: &[u8], multiplier: u64, salt: &NoticeSalt) -> Option<SecretHash> {
    let rolling = form.iter().fold(0, |rolling, byte| rolled(rolling, multiplier, *byte));
    let first = (rolling >> (64 - FIRST_BITS)) as u32;
    let length = u32::try_from(form.len()).ok()?;
    Some(SecretHash { length, first, strong: strong_hash(form, salt) })
}

/// Returns the forms that a secret can have in texts. Programs write JSON in three ways: with few
/// escapes, with `\/`, and in ASCII.
fn forms_of(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([secret.to_owned()]);
    forms.insert(secret.replace('%', "%25").replace('/', "%2F"));
    let escaped = in_json(secret);
    for innermost in [escaped.replace('/', "\\/"), in_ascii(&escaped), escaped] {
        let mut form = innermost;
        for _ in 0..MAX_DEPTH {
            let outer = in_json(&form);
            forms.insert(form);
            form = outer;
        }
    }
    forms
}

/// Returns a text as it is inside a JSON string.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Returns the text of a JSON string with all characters escaped that are not ASCII.
fn in_ascii(escaped: &str) -> String {
    let mut ascii = String::with_capacity(escaped.len());
    for char in escaped.chars() {
        if char.is_ascii() {
            ascii.push(char);
            continue;
        }
        for code in char.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{code:04x}"));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MAX_HASHED_BYTES, MAX_PURGED_BYTES};
    use proptest::prelude::*;

    const SALT: NoticeSalt = NoticeSalt::from_bytes([3; 32]);
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

    fn hashed(secrets: &[&str]) -> HashedSecrets {
        let hashes = KnownSecrets::new(secrets).unwrap().hashes(MULTIPLIER, &SALT);
        HashedSecrets::new([(MULTIPLIER, &SALT, &hashes[..])])
    }

    fn found(hashed: &HashedSecrets, text: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        hashed.find(text.as_bytes(), &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn a_secret_is_found_in_each_form_and_reported_unescaped() {
        let secret = "p\u{e9}ss \"w/o\" %r\\d\n\u{1f600}";
        let hashed = hashed(&[secret]);
        for form in forms_of(secret) {
            assert_eq!(found(&hashed, &format!("before {form} after")), [secret], "{form}");
        }
        let python = r#"{"a": "p\u00e9ss \"w/o\" %r\\d\n\ud83d\ude00"}"#;
        let php = r#"{"a":"péss \"w\/o\" %r\\d\n😀"}"#;
        let nested = serde_json::json!(python).to_string();
        for text in [python, php, &nested] {
            assert_eq!(found(&hashed, text), [secret], "{text}");
        }
    }

    #[test]
    fn no_encoded_form_of_a_secret_is_longer_than_a_notice_allows() {
        for text in ["\u{1}", "\"", "\\", "%", "/", "\u{e9}", "\u{20ac}", "\u{1f600}", "a"] {
            let secret = text.repeat(1000);
            let longest = forms_of(&secret).iter().map(String::len).max().unwrap();
            let allowed = secret.len() * (MAX_HASHED_BYTES / MAX_PURGED_BYTES);
            assert!(longest <= allowed, "{text:?}: {longest} for {}", secret.len());
        }
    }

    #[test]
    fn a_search_by_hashes_does_not_find_similar_texts() {
        let hashed = hashed(&["s3cr3t-Zx9Kq2Lm", "another"]);
        assert_eq!(found(&hashed, "s3cr3t-Zx9Kq2Ln s3cr3t-Zx9Kq2L anothe nother"), [""; 0]);
        assert_eq!(found(&hashed, ""), [""; 0]);
        assert_eq!(found(&hashed, "s3cr3t-Zx9Kq2Lmanother"), ["another", "s3cr3t-Zx9Kq2Lm"]);
    }

    #[test]
    fn the_rolling_hash_has_24_bits_and_the_keyed_hash_depends_on_the_salt() {
        let known = KnownSecrets::new(["s3cr3t-Zx9Kq2Lm"]).unwrap();
        let [one] = known.hashes(MULTIPLIER, &SALT)[..] else { panic!() };
        let [other] = known.hashes(MULTIPLIER, &NoticeSalt::from_bytes([4; 32]))[..] else {
            panic!()
        };
        assert_eq!((one.length, one.first), (15, other.first));
        assert!(one.first < 1 << FIRST_BITS && one.strong != other.strong);
    }

    proptest! {
        #[test]
        fn a_search_by_hashes_finds_what_a_search_for_the_text_finds(
            secrets in prop::collection::btree_set("[ab]{6,9}", 1..6),
            text in "[ab]{0,200}",
            multiplier: u64,
        ) {
            let known = KnownSecrets::new(&secrets).unwrap();
            let hashes = known.hashes(multiplier | 1, &SALT);
            let hashed = HashedSecrets::new([(multiplier | 1, &SALT, &hashes[..])]);
            let there = secrets.iter().filter(|secret| text.contains(*secret)).cloned();
            prop_assert_eq!(found(&hashed, &text), there.collect::<Vec<_>>());
        }
    }
}
