//! The search copy of a session's texts: an append-only file of blocks, each with its hash.
//! Unreadable blocks are made again.

use crate::backend::files::LockedFile;
use crate::backend::{self, Cipher, EncryptionContext, SealKey};
use crate::error::{Error, Result};
use crate::format::{hex, pack_derived, unpack_bytes};
use crate::model::{Kind, OperationId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

const MAGIC: &[u8; 8] = b"forgeSe2";
/// The length of the content, and a prefix of its hash.
const HEAD_BYTES: usize = 4 + 16;
/// The approximate amount of text in a block.
const BLOCK_BYTES: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 3;

/// The origin of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CorpusSource {
    /// A version of a fact: its row key, and the operation that recorded it.
    Fact { row: u64, operation: OperationId },
    /// A claim in a revision.
    Claim,
    /// A checkpoint's message and tags; never stored in the file.
    Checkpoint,
}

/// The metadata of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CorpusEntry {
    pub(super) kind: Option<Kind>,
    pub(super) id: String,
    pub(super) at: Timestamp,
    pub(super) sequence: Option<u64>,
    pub(super) source: CorpusSource,
    pub(super) length: usize,
}

/// How much of a session is in the copy. If it equals the session's own counts, nothing is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CorpusProgress {
    pub(super) facts: u64,
    pub(super) pages: u64,
    pub(super) sequence: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct CorpusBlock {
    seen: CorpusProgress,
    entries: Vec<CorpusEntry>,
    text: String,
}

/// The key for the hashes of blocks: in a sealed store it depends on the store's key and the
/// session, so that blocks cannot be forged. In an encrypted store the content is encrypted too.
#[derive(Clone)]
pub(super) struct CorpusSeal {
    key: Option<[u8; 32]>,
    cipher: Option<Cipher>,
    session: SessionId,
}

impl CorpusSeal {
    /// Makes the seal of a session's copy.
    pub(super) fn new(key: Option<&SealKey>, cipher: Option<&Cipher>, session: &SessionId) -> Self {
        let keyed = |key: &SealKey| blake3::keyed_hash(key.copies(), session.as_bytes()).into();
        Self { key: key.map(keyed), cipher: cipher.cloned(), session: *session }
    }

    /// Returns the file name. In an encrypted store it does not reveal the session.
    pub(super) fn file(&self) -> String {
        let Some(cipher) = &self.cipher else { return format!("{}.text", self.session) };
        let name = cipher.name(&[b"texts of ", self.session.as_bytes()]);
        let short = name.first_chunk::<16>().expect("16 of 32 bytes");
        format!("{}.text", hex(short))
    }

    /// Encrypts content, if the store is encrypted, for the block at this offset.
    fn encrypt(&self, at: u64, content: Vec<u8>) -> Vec<u8> {
        match &self.cipher {
            Some(cipher) => {
                cipher.seal(EncryptionContext::TextCopy(self.session.as_bytes(), at), &content)
            }
            None => content,
        }
    }

    /// Decrypts content from the block at this offset.
    fn decrypt<'c>(&self, at: u64, content: &'c [u8]) -> Option<Cow<'c, [u8]>> {
        let Some(cipher) = &self.cipher else { return Some(Cow::Borrowed(content)) };
        cipher
            .open(EncryptionContext::TextCopy(self.session.as_bytes(), at), content)
            .ok()
            .map(Cow::Owned)
    }

    /// Returns the hash of the content of the block at this offset.
    fn hash(&self, at: u64, content: &[u8]) -> blake3::Hash {
        let Some(key) = &self.key else { return blake3::hash(content) };
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&at.to_le_bytes()).update(content);
        hasher.finalize()
    }
}

/// The texts of a session.
#[derive(Default)]
pub(super) struct SearchCorpus {
    pub(super) seen: CorpusProgress,
    pub(super) entries: Vec<CorpusEntry>,
    text: String,
    /// Where the entries and texts that are not in the file yet begin.
    fresh: (usize, usize),
}

impl SearchCorpus {
    /// Reads a file as far as it is valid; empty if it does not exist. Also returns the length of
    /// the valid part.
    pub(super) fn read(path: &Path, stamp: &CorpusSeal) -> Result<(Self, u64)> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Default::default());
            }
            Err(error) => return Err(backend::Error::io("read", path)(error).into()),
        };
        let mut corpus = Self::default();
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return Ok((corpus, 0)) };
        let mut good = MAGIC.len() as u64;
        while let Some((block, behind)) = block(rest, good, stamp) {
            corpus.seen = block.seen;
            corpus.entries.extend(block.entries);
            corpus.text.push_str(&block.text);
            good += (rest.len() - behind.len()) as u64;
            rest = behind;
        }
        corpus.fresh = (corpus.entries.len(), corpus.text.len());
        Ok((corpus, good))
    }

    pub(super) fn add(&mut self, mut entry: CorpusEntry, text: &str) {
        entry.length = text.len();
        self.entries.push(entry);
        self.text.push_str(text);
    }

    /// Removes entries in memory; the file is unchanged.
    pub(super) fn forget(&mut self, gone: impl Fn(&CorpusEntry) -> bool) {
        let mut kept = Self { seen: self.seen, ..Self::default() };
        for (entry, text) in self.texts().filter(|(entry, _)| !gone(entry)) {
            kept.add(entry.clone(), text);
        }
        *self = kept;
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = (&CorpusEntry, &str)> {
        let mut at = 0;
        self.entries.iter().map(move |entry| {
            let from = at;
            at += entry.length;
            (entry, self.text.get(from..at).unwrap_or_default())
        })
    }

    /// Appends the new entries to the file, after its first `good` bytes. If another process is
    /// writing it, this does nothing instead of waiting.
    pub(super) fn write(&self, path: &Path, good: u64, stamp: &CorpusSeal) -> Result<()> {
        let io = |action| backend::Error::io(action, path);
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io("make"))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io("open"))?;
        let Ok(Some(file)) = LockedFile::exclusive(file) else { return Ok(()) };
        let mut file: &File = &file;
        // Another process may have added the same entries.
        let length = file.metadata().map_err(io("look at"))?.len();
        let mut magic = [0; MAGIC.len()];
        let begun = file.read_exact(&mut magic).is_ok() && magic == *MAGIC;
        if begun && length > good && good > 0 && next_is_whole(file, good, stamp) {
            return Ok(());
        }
        let mut out = Vec::new();
        let mut good = good;
        if good == 0 {
            out.extend_from_slice(MAGIC);
        }
        let (mut block, mut at) = (CorpusBlock::default(), self.fresh.1);
        let fresh = self.entries.get(self.fresh.0..).unwrap_or_default();
        for entry in fresh {
            block.entries.push(entry.clone());
            block.text.push_str(self.text.get(at..at + entry.length).unwrap_or_default());
            at += entry.length;
            if block.text.len() >= BLOCK_BYTES {
                put(&std::mem::take(&mut block), good + out.len() as u64, stamp, &mut out)?;
            }
        }
        // Only the last block records the full progress.
        block.seen = self.seen;
        put(&block, good + out.len() as u64, stamp, &mut out)?;
        file.set_len(good).map_err(io("cut"))?;
        file.seek(SeekFrom::Start(good)).map_err(io("write"))?;
        file.write_all(&out).map_err(io("write"))?;
        good += out.len() as u64;
        tracing::debug!(bytes = good, "the texts for searching were brought up to date");
        Ok(())
    }
}

fn next_is_whole(mut file: &File, at: u64, stamp: &CorpusSeal) -> bool {
    let mut rest = Vec::new();
    file.seek(SeekFrom::Start(at)).is_ok()
        && file.read_to_end(&mut rest).is_ok()
        && block(&rest, at, stamp).is_some()
}

/// Reads the first block of these bytes of the file, and the rest; `None` if it is not valid.
fn block<'b>(bytes: &'b [u8], at: u64, stamp: &CorpusSeal) -> Option<(CorpusBlock, &'b [u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let (length, hash) = head.split_at_checked(4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let (content, behind) = rest.split_at_checked(length)?;
    if !stamp.hash(at, content).as_bytes().starts_with(hash) {
        return None;
    }
    let plain = zstd::decode_all(&*stamp.decrypt(at, content)?).ok()?;
    Some((unpack_bytes("texts for searching", &plain).ok()?, behind))
}

fn put(block: &CorpusBlock, at: u64, stamp: &CorpusSeal, out: &mut Vec<u8>) -> Result<()> {
    let plain = pack_derived(block);
    let content = zstd::encode_all(plain.as_slice(), ZSTD_LEVEL)
        .map_err(|error| Error::Internal(format!("texts cannot be compressed: {error}")))?;
    let content = stamp.encrypt(at, content);
    let length = u32::try_from(content.len())
        .map_err(|_| Error::Internal("a block of texts is too large".to_owned()))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(stamp.hash(at, &content).as_bytes().get(..16).unwrap_or_default());
    out.extend_from_slice(&content);
    Ok(())
}
