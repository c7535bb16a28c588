//! Counts known secrets in a text that is read in pieces.

use super::KnownSecrets;

/// How many bytes before an offset decide whether a secret begins there.
const CONTEXT_BYTES: usize = 16;

/// Counts the secrets in a text that is read in pieces: as many as [`KnownSecrets::find`] finds in
/// the whole text. It holds the end of the text so far.
pub(crate) struct SecretStream<'a> {
    known: &'a KnownSecrets,
    /// The end of the text so far.
    held: Vec<u8>,
    /// How many bytes of the text precede `held`.
    before: usize,
    /// The offset up to which the text was searched.
    searched: usize,
    /// The end of the last secret that was found from its first character on.
    sighted: usize,
    /// The end of the last secret that was counted.
    counted: usize,
    count: u64,
}

impl<'a> SecretStream<'a> {
    pub(crate) const fn new(known: &'a KnownSecrets) -> Self {
        Self { known, held: Vec::new(), before: 0, searched: 0, sighted: 0, counted: 0, count: 0 }
    }

    /// Adds a piece of the text.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
        // A secret that begins in the margin may go on in the next piece.
        let margin = self.known.max_bytes() + 4 * CONTEXT_BYTES;
        let end = self.before + self.held.len();
        self.search(end.saturating_sub(margin));
        let needed = self.searched.saturating_sub(CONTEXT_BYTES);
        // At most as many bytes are moved as are removed.
        let removed = needed.saturating_sub(self.before);
        if removed >= self.held.len() / 2 {
            self.held.drain(..removed);
            self.before += removed;
        }
    }

    /// Returns the number of secrets in the text, after its last piece was added.
    pub(crate) fn finish(mut self) -> u64 {
        self.search(self.before + self.held.len() + 1);
        self.count
    }

    /// Counts the secrets that begin before an offset of the text and were not counted yet.
    fn search(&mut self, upto: usize) {
        if upto <= self.searched {
            return;
        }
        let before = self.before;
        let (from, to) = (self.searched - before, upto - before);
        let mut found = Vec::new();
        let begin = self.sighted.max(self.searched) - before;
        // Reading further would read the margin again for each piece.
        for one in self.known.sightings(&self.held, begin..to, true) {
            self.sighted = one.range.end + before;
            found.push(one.range);
        }
        let mut tails = Vec::new();
        // Offset 0 counts as the beginning of a text. If bytes were removed, it is before `from`.
        self.known.tails(&self.held, from..to, &mut tails);
        found.extend(tails.into_iter().map(|one| one.range));
        found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        for range in found {
            if range.start + before >= self.counted {
                self.counted = range.end + before;
                self.count += 1;
            }
        }
        self.searched = upto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::work_counter;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_search_in_pieces_counts_the_same_secrets_as_a_search_of_the_whole(
            parts in prop::collection::vec(0_usize..11, 1..400),
            pieces in prop::collection::vec(1_usize..900, 1..40),
        ) {
            let known = KnownSecrets::new(["a-secret/word", "word-of-mine-12", "secretsecret"]).unwrap();
            let of = ["a-secret/word", "a-secret\\/word", "word-of-mine-12", "secretsecret", "secret", "word", "...",
                "\"", "\\", " and more of a text in between ", "\u{2026}"];
            let text: String = parts.iter().map(|part| of[*part]).collect();
            let mut stream = SecretStream::new(&known);
            let (mut rest, mut sizes) = (text.as_bytes(), pieces.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                stream.push(piece);
                rest = after;
            }
            prop_assert_eq!(stream.finish(), known.find(text.as_bytes()).len() as u64);
        }
    }

    /// Regression: of an escape, at most 8 backslashes counted for the length of a secret. One in
    /// deeper JSON was found in the whole text, and not in pieces.
    #[test]
    fn a_secret_written_in_escapes_with_many_backslashes_is_found_in_pieces() {
        let known = KnownSecrets::new(["a-secret-word"]).unwrap();
        let escape = |char: char| format!("{}u{:04x}", "\\".repeat(64), u32::from(char));
        let escaped: String = "a-secret-word".chars().map(escape).collect();
        let text = format!("{escaped}{}", ".".repeat(4000));
        assert_eq!(known.find(text.as_bytes()).len(), 1);
        let mut stream = SecretStream::new(&known);
        text.as_bytes().chunks(100).for_each(|piece| stream.push(piece));
        assert_eq!(stream.finish(), 1);
    }

    /// Regression: without a secret in the text, each piece was searched together with everything
    /// that is held for secrets that go on. For long secrets that is megabytes.
    #[test]
    fn each_byte_of_many_pieces_is_searched_once() {
        let known = KnownSecrets::new(["a-secret-word"]).unwrap();
        let text = "a".repeat(20_000);
        let work_in_pieces_of = |bytes: usize| {
            work_counter::of(|| {
                let mut stream = SecretStream::new(&known);
                text.as_bytes().chunks(bytes).for_each(|piece| stream.push(piece));
                assert_eq!(stream.finish(), 0);
            })
        };
        assert_eq!(work_in_pieces_of(100), work_in_pieces_of(text.len()));
    }

    #[test]
    fn a_search_in_pieces_keeps_little_more_than_one_piece() {
        let known = KnownSecrets::new(["a-secret-word"]).unwrap();
        let mut stream = SecretStream::new(&known);
        for _ in 0..100 {
            stream.push(&[b'.'; 10_000]);
            assert!(stream.held.len() <= 40_000, "{}", stream.held.len());
        }
        assert_eq!(stream.finish(), 0);
    }
}
