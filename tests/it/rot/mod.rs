//! Bit rot: for any byte of a store that is wrong, missing or from another file, no read returns
//! false data, no loss is silent, and a repair saves the rest. The counts are for a quick run;
//! `FORGE_FLIPS` and `FORGE_TEARS` set others (0: every byte), `FORGE_SEED` repeats a run.

#![allow(clippy::print_stderr, reason = "a seed and counts must be seen")]

mod journal;
mod rebuild;
mod spool;
pub(crate) mod store;

use crate::fault::{SeededNumbers, count, scratch_folder};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::Timestamp;
use forge_store::store::{
    Options, RepairReport, Store, VerifyDepth, VerifyOutcome, VerifyReport, WriteContext,
};
use std::collections::BTreeSet;
use std::fs;
use std::num::NonZero;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread::{available_parallelism, scope};
use store::{Read, copy, files, join, make, read};

const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);
/// More numbers than the store has.
const NUMBERS: u64 = 100;

fn act(verb: &str) -> WriteContext {
    WriteContext::hook(verb, TIME)
}

struct Golden {
    _folder: tempfile::TempDir,
    path: PathBuf,
    options: Options,
    read: Read,
}

impl Golden {
    fn new() -> Self {
        Self::in_folder(scratch_folder(), Options::default())
    }

    /// With seals, as `forge init` creates a store.
    fn sealed() -> Self {
        Self::keyed(false)
    }

    fn encrypted() -> Self {
        Self::keyed(true)
    }

    fn keyed(encrypted: bool) -> Self {
        let folder = scratch_folder();
        let keyring = Some(folder.path().join("keyring"));
        Self::in_folder(folder, Options::default().keyring(keyring).encrypted(encrypted))
    }

    fn in_folder(folder: tempfile::TempDir, options: Options) -> Self {
        let path = folder.path().join("golden");
        make(&path, &options);
        Self::of(folder, path, options)
    }

    /// With a session that joins have replaced by another one with the same id.
    fn joined() -> Self {
        let folder = scratch_folder();
        let path = folder.path().join("golden");
        make(&path, &Options::default());
        join(&path);
        Self::of(folder, path, Options::default())
    }

    fn of(folder: tempfile::TempDir, path: PathBuf, options: Options) -> Self {
        let read = read(&path, &options, NUMBERS);
        let states = read.iter().filter(|(what, result)| what.contains('#') && result.is_ok());
        assert!(states.count() > 60, "{read:?}");
        Self { _folder: folder, path, options, read }
    }

    fn read(&self, path: &Path) -> Read {
        read(path, &self.options, NUMBERS)
    }

    fn verify(&self, path: &Path) -> Result<VerifyReport, Error> {
        Store::verify(path, VerifyDepth::ReadData, TIME, self.options.keyring.as_deref())
    }

    fn repair(&self, path: &Path, to: &Path) -> Result<RepairReport, Error> {
        Store::repair(path, to, TIME, self.options.keyring.as_deref())
    }
}

#[derive(Default)]
struct Counts {
    detected: u64,
    harmless: u64,
    repaired: u64,
    /// Damage that could be a forgery.
    forged: Vec<String>,
    states: u64,
    saved: u64,
    /// The smallest share of states that a repair saved, in thousandths, and the damage.
    least: Option<(u64, String)>,
}

impl Counts {
    fn and(self, other: Self) -> Self {
        let worst = |(one, _): &(u64, String)| *one;
        Self {
            detected: self.detected + other.detected,
            harmless: self.harmless + other.harmless,
            repaired: self.repaired + other.repaired,
            forged: [self.forged, other.forged].concat(),
            states: self.states + other.states,
            saved: self.saved + other.saved,
            least: self.least.into_iter().chain(other.least).min_by_key(worst),
        }
    }
}

/// Reads, verifies and (if requested) repairs a damaged copy. Every read is correct or an error,
/// verify reports every error, and a repair names what it does not save.
fn examine(golden: &Golden, damaged: &Path, what: &str, repair: bool, counts: &mut Counts) {
    let judged = catch_unwind(|| (golden.read(damaged), golden.verify(damaged)));
    let (read, verified) = judged.unwrap_or_else(|_| panic!("{what}: a panic"));
    let errors = compare(golden, &read, what);
    let outcome = verified.as_ref().map_or(VerifyOutcome::Loss, |verified| verified.outcome);
    // A read that meets the damage must report it as such, and not ask for a retry. A FORMAT of
    // another version is not damage.
    let met = read.iter().filter(|(thing, result)| golden.read.get(*thing) != Some(*result));
    let is_damage_error =
        |text: &str| ["Corrupt", "Forged"].iter().any(|kind| text.starts_with(kind));
    let names_all = |what: &str| !what.starts_with("FORMAT");
    for (thing, result) in met.filter(|_| names_all(what)) {
        assert!(
            result.as_ref().is_err_and(|text| is_damage_error(text)),
            "{what}: {thing}: {result:?}"
        );
    }
    assert!(
        errors == 0 || outcome != VerifyOutcome::Clean,
        "{what}: {errors} errors that verify does not see: {:?}",
        read.iter().find(|(what, result)| golden.read.get(*what) != Some(result))
    );
    if outcome == VerifyOutcome::Clean {
        counts.harmless += 1;
        return;
    }
    counts.detected += 1;
    if !repair {
        return;
    }
    let repaired = damaged.with_extension("repaired");
    let done = catch_unwind(|| golden.repair(damaged, &repaired));
    let done = done.unwrap_or_else(|_| panic!("{what}: a panic in the repair"));
    let done = done.unwrap_or_else(|error| panic!("{what}: {error:?}; found {verified:?}"));
    let again = golden.read(&repaired);
    let errors = compare_repaired(golden, &again, what, &done.lost);
    let states = golden.read.iter().filter(|(what, result)| what.contains('#') && result.is_ok());
    let states = states.count() as u64;
    counts.repaired += 1;
    counts.states += states;
    counts.saved += states - errors;
    let share = (states - errors) * 1000 / states;
    if counts.least.as_ref().is_none_or(|(least, _)| share < *least) {
        let lost = done.lost.first().map_or("", String::as_str);
        counts.least = Some((share, format!("{what}: lost {lost}")));
    }
    assert!(errors == 0 || !done.lost.is_empty(), "{what}: lost without a word");
    let is_expected = match outcome {
        VerifyOutcome::Clean => false,
        VerifyOutcome::Repairable => done.lost.is_empty(),
        VerifyOutcome::Loss => !done.lost.is_empty(),
        // Data without a valid seal is reported.
        VerifyOutcome::Forged => golden.options.keyring.is_some() && !done.lost.is_empty(),
    };
    assert!(is_expected, "{what}: verify and repair differ: {verified:?} {done:?}");
    if outcome == VerifyOutcome::Forged {
        counts.forged.push(format!("{what}: {verified:?}"));
    }
    let verified = golden.verify(&repaired).unwrap();
    let known = verified.findings.iter().all(|finding| finding.place.contains("in the spool"));
    assert!(known, "{what}: the repaired store is not whole: {verified:?}; {done:?}");
    fs::remove_dir_all(&repaired).unwrap();
}

/// Returns how many items are errors that are not errors in the golden store. Panics if an item has
/// a wrong value.
fn compare(golden: &Golden, read: &Read, what: &str) -> usize {
    if read.contains_key("open") {
        return 1;
    }
    let mut errors = 0;
    for (thing, right) in &golden.read {
        let session = thing.split(':').next().unwrap_or_default();
        let result = read.get(thing).or_else(|| read.get(session));
        match (right, result) {
            (_, None) => panic!("{what}: {thing} is gone without a word"),
            (Ok(right), Some(Ok(result))) => assert_eq!(right, result, "{what}: {thing} is wrong"),
            (Err(right), Some(Ok(_))) => panic!("{what}: {thing} is there, it was: {right}"),
            (Ok(_), Some(Err(_))) => errors += 1,
            (Err(_), Some(Err(_))) => {}
        }
    }
    errors
}

/// Returns how many states are errors that are not errors in the golden store. Lists may be shorter
/// if something is reported as lost.
fn compare_repaired(golden: &Golden, read: &Read, what: &str, lost: &[String]) -> u64 {
    assert!(!read.contains_key("open"), "{what}: {read:?}");
    let mut errors = 0;
    for (thing, right) in &golden.read {
        let state = thing.contains('#');
        match (right, read.get(thing)) {
            (Ok(right), Some(Ok(result))) => {
                assert!(
                    right == result || (!state && !lost.is_empty()),
                    "{what}: {thing} is wrong"
                );
            }
            (Ok(_), _) => errors += u64::from(state),
            (Err(_), _) => {}
        }
    }
    errors
}

fn damage(
    golden: &Golden,
    file: &Path,
    what: &str,
    repair: bool,
    counts: &mut Counts,
    how: impl FnOnce(&Path),
) {
    let folder = scratch_folder();
    let damaged = folder.path().join("damaged");
    copy(&golden.path, &damaged, file);
    how(&damaged.join(file));
    examine(golden, &damaged, what, repair, counts);
}

fn change(file: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    how(&mut bytes);
    fs::write(file, bytes).unwrap();
}

fn report(test: &str, counts: &Counts) {
    let worst = counts.least.as_ref().filter(|(least, _)| *least < 1000);
    eprintln!(
        "{test}: {} detected, {} harmless, 0 wrong, 0 lost without a word; {} repaired: {} of {} states saved, \
         at least {} in a thousand{}",
        counts.detected,
        counts.harmless,
        counts.repaired,
        counts.saved,
        counts.states,
        counts.least.as_ref().map_or(1000, |(least, _)| *least),
        worst.map_or(String::new(), |(_, what)| format!(" ({what})")),
    );
}

#[test]
fn a_sound_store_is_clean_and_does_not_change_when_rebuilt() {
    let golden = Golden::new();
    for depth in [VerifyDepth::Quick, VerifyDepth::ReadData] {
        let verified =
            Store::verify(&golden.path, depth, TIME, golden.options.keyring.as_deref()).unwrap();
        assert_eq!((verified.outcome, &verified.findings[..]), (VerifyOutcome::Clean, &[][..]));
    }
    let checked = golden.verify(&golden.path).unwrap();
    assert!(checked.checked.revisions > 50 && checked.checked.rows > 300, "{checked:?}");
    assert_eq!(checked.waiting.writes, 1);
    let store = Store::open(&golden.path, golden.options.clone()).unwrap();
    let rebuilt = store.rebuild().unwrap();
    assert!(rebuilt.revisions > 30, "{rebuilt:?}");
    let verified = golden.verify(&golden.path).unwrap();
    assert_eq!(verified.findings, []);
    assert_eq!(golden.read(&golden.path), golden.read);
    // A repair of a sound store loses nothing and changes nothing.
    let repaired = golden.path.with_extension("repaired");
    let done = golden.repair(&golden.path, &repaired).unwrap();
    assert_eq!((done.lost, done.mended, done.waiting), (vec![], 0, 0));
    assert_eq!(golden.read(&repaired), golden.read);
    assert_eq!(golden.verify(&repaired).unwrap().findings, []);
    // The store can be used afterwards: undo knows the order.
    let store = Store::open(&repaired, golden.options.clone()).unwrap();
    store.drain().unwrap();
    store.session("s").unwrap().undo(&WriteContext::asked("undo", TIME), None).unwrap();
    store.maintain(0).unwrap();
    let verified = golden.verify(&repaired).unwrap();
    assert_eq!(verified.findings, []);
}

/// Runs the cases on one thread per core.
fn on_all_cores<T: Sync>(wanted: &[T], try_one: impl Fn(&T, &mut Counts) + Sync) -> Counts {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let share = |core: usize| {
        let mut counts = Counts::default();
        wanted.iter().skip(core).step_by(cores).for_each(|one| try_one(one, &mut counts));
        counts
    };
    scope(|scope| {
        let share = &share;
        let shares: Vec<_> = (0..cores).map(|core| scope.spawn(move || share(core))).collect();
        shares.into_iter().map(|share| share.join().unwrap()).fold(Counts::default(), Counts::and)
    })
}

/// Flips one bit at a time, spread over all files (`FORGE_FLIPS`, or `usual` times).
fn flip(test: &str, golden: &Golden, usual: u64) -> Counts {
    let mut numbers = SeededNumbers::from_environment(test);
    let files = files(&golden.path);
    let sizes: Vec<u64> =
        files.iter().map(|file| golden.path.join(file).metadata().unwrap().len()).collect();
    let whole: u64 = sizes.iter().sum();
    let flips = count("FORGE_FLIPS", usual);
    let mut wanted = Vec::new();
    for (file, size) in files.iter().zip(&sizes).filter(|(_, size)| **size > 0) {
        // At least some bits of each file, the rest by its size.
        let share = if flips == 0 { *size } else { (flips * size / whole).max(6).min(*size) };
        for n in 0..share {
            let (from, to) = (n * size / share, ((n + 1) * size / share).max(n * size / share + 1));
            wanted.push((file, from + numbers.below(to - from), numbers.below(8)));
        }
    }
    let flip = |(file, place, bit): &(&PathBuf, u64, u64), counts: &mut Counts| {
        let what = format!("{} byte {place} bit {bit}", file.display());
        // Each copy is repaired: a wrong delta near the beginning costs everything that depends on
        // it, so a few repairs would show little.
        damage(golden, file, &what, true, counts, |path| {
            change(path, |bytes| bytes[*place as usize] ^= 1 << bit);
        });
    };
    let counts = on_all_cores(&wanted, flip);
    report(test, &counts);
    assert!(counts.detected > counts.harmless / 4);
    assert!(counts.saved * 100 >= counts.states * 99, "too little was saved");
    counts
}

#[test]
fn no_flipped_bit_gives_false_data_or_an_unreported_loss() {
    flip("flipped bits", &Golden::new(), 300);
}

/// Regression: a repair gave all revisions of a joined session to the one that it has replaced.
#[test]
fn no_flipped_bit_of_a_store_with_a_joined_session_gives_false_data() {
    let golden = Golden::joined();
    let repaired = golden.path.with_extension("repaired");
    assert_eq!(golden.repair(&golden.path, &repaired).unwrap().lost, [""; 0]);
    assert_eq!(golden.read(&repaired), golden.read);
    flip("flipped bits of a joined session", &golden, 150);
}

/// Regression: for each flipped bit, a store with seals was reported as forged, and none of it as
/// proven.
#[test]
fn no_flipped_bit_of_a_sealed_store_is_reported_as_a_forgery() {
    let counts = flip("flipped bits, sealed", &Golden::sealed(), 150);
    assert_eq!(counts.forged, Vec::<String>::new());
}

/// Regression: one bit of the digit makes another version of the format. Verify took the store for
/// one of a later forge and refused it, while repair corrected it.
#[test]
fn one_wrong_bit_in_the_version_of_format_is_repaired() {
    let golden = Golden::new();
    let file = Path::new("FORMAT");
    let text = fs::read_to_string(golden.path.join(file)).unwrap();
    let place = text.find(" 2.").expect("a version") + 1;
    let mut counts = Counts::default();
    for bit in 0..8 {
        damage(&golden, file, &format!("FORMAT bit {bit}"), true, &mut counts, |path| {
            change(path, |bytes| bytes[place] ^= 1 << bit);
        });
    }
    report("formats", &counts);
    assert_eq!((counts.repaired, counts.saved), (8, counts.states));
    // Two wrong bits cannot be distinguished from a later format.
    let folder = scratch_folder();
    let later = folder.path().join("later");
    copy(&golden.path, &later, file);
    change(&later.join(file), |bytes| bytes[place] = b'4');
    let refused = Store::verify(&later, VerifyDepth::ReadData, TIME, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

/// Regression: no hash covered the kind of an object. One bit made a delta a page, which was
/// accepted and kept.
#[test]
fn a_wrong_bit_in_the_kind_of_a_stored_object_is_repaired() {
    let golden = Golden::new();
    let mut counts = Counts::default();
    for file in files(&golden.path) {
        if file.extension().is_none_or(|extension| extension != "sst") {
            continue;
        }
        let bytes = fs::read(golden.path.join(&file)).unwrap();
        let kinds = bytes.windows(4).enumerate().filter(|(_, four)| four == b"fOb1");
        let kinds: Vec<usize> = kinds.map(|(place, _)| place + 4).collect();
        for place in kinds.iter().copied().step_by(kinds.len().div_ceil(12).max(1)) {
            // A delta (1) and a chunk (2) become a page (3), and a page becomes a delta.
            let bit = if bytes[place] == 2 { 1 } else { 2 };
            let what = format!("{} byte {place} of another kind", file.display());
            damage(&golden, &file, &what, true, &mut counts, |path| {
                change(path, |bytes| bytes[place] ^= bit);
            });
        }
    }
    report("other kinds", &counts);
    assert!(counts.repaired > 5);
    assert_eq!(counts.saved, counts.states);
}

/// Other damage of a file than a wrong bit.
#[derive(Debug)]
enum Torn {
    Deleted,
    Cut(usize),
    Zeroed {
        from: usize,
        to: usize,
    },
    /// Swapped with the next block.
    Swapped {
        from: usize,
        block: usize,
    },
}

impl Torn {
    fn tear(&self, path: &Path) {
        match *self {
            Self::Deleted => fs::remove_file(path).unwrap(),
            Self::Cut(at) => change(path, |bytes| bytes.truncate(at)),
            Self::Zeroed { from, to } => change(path, |bytes| bytes[from..to].fill(0)),
            Self::Swapped { from, block } => change(path, |bytes| {
                let (one, two) = bytes[from..].split_at_mut(block);
                one.swap_with_slice(&mut two[..block]);
            }),
        }
    }
}

/// Cuts each file at its ends and at `FORGE_TEARS` places (0: at every byte). The first block and
/// the blocks at these places are zeroed, and swapped with the next.
fn tear(test: &str, golden: &Golden) {
    let mut numbers = SeededNumbers::from_environment(test);
    let tears = count("FORGE_TEARS", 1);
    let mut wanted = Vec::new();
    for file in files(&golden.path) {
        let size = golden.path.join(&file).metadata().unwrap().len() as usize;
        // Without its locks and marks, a store is read as before.
        wanted.push((file.clone(), Torn::Deleted));
        if size == 0 {
            continue;
        }
        let places: BTreeSet<usize> = match tears {
            0 => (0..size).collect(),
            tears => (0..tears).map(|_| numbers.below(size as u64) as usize).collect(),
        };
        let ends = BTreeSet::from([0, 1, size - 1]);
        wanted.extend(places.union(&ends).map(|at| (file.clone(), Torn::Cut(*at))));
        for block in [512, 4096] {
            let blocks = places.iter().map(|at| at / block * block);
            // The first block is always among them.
            for from in blocks.chain([0]).collect::<BTreeSet<_>>() {
                let to = size.min(from + block);
                wanted.push((file.clone(), Torn::Zeroed { from, to }));
                if to + block <= size {
                    wanted.push((file.clone(), Torn::Swapped { from, block }));
                }
            }
        }
    }
    let kinds: BTreeSet<_> = wanted.iter().map(|(file, _)| file.extension()).collect();
    assert!(kinds.len() >= 4, "{kinds:?}");
    let mut counts = on_all_cores(&wanted, |(file, torn), counts| {
        let what = format!("{} {torn:?}", file.display());
        damage(golden, file, &what, true, counts, |path| torn.tear(path));
    });
    for stray in ["stray", "journal/stray", "journal/0123.new", "index/stray", "spool/stray"] {
        let what = format!("a stray file {stray}");
        damage(golden, Path::new("none"), &what, true, &mut counts, |path| {
            fs::write(path.with_file_name("x").parent().unwrap().join(stray), b"stray").unwrap();
        });
    }
    report(test, &counts);
}

#[test]
fn no_torn_zeroed_swapped_or_missing_file_gives_false_data() {
    tear("torn files", &Golden::new());
}

#[test]
fn no_torn_zeroed_swapped_or_missing_file_of_a_sealed_store_gives_false_data() {
    tear("torn files, sealed", &Golden::sealed());
}

#[test]
fn no_torn_zeroed_swapped_or_missing_file_of_an_encrypted_store_gives_false_data() {
    tear("torn files, encrypted", &Golden::encrypted());
}

/// Regression: only FORMAT says that a store is encrypted and which key it has. Without it, nothing
/// was saved.
#[test]
fn an_encrypted_store_without_format_file_is_repaired_with_a_key_of_the_keyring() {
    let golden = Golden::encrypted();
    // Keys of other stores are next to it.
    for other in ["one", "two"] {
        Store::create(&golden.path.with_file_name(other), golden.options.clone()).unwrap();
    }
    let file = Path::new("FORMAT");
    let damaged = golden.path.with_file_name("damaged");
    copy(&golden.path, &damaged, file);
    fs::remove_file(damaged.join(file)).unwrap();
    let verified = golden.verify(&damaged).unwrap();
    assert!(verified.encrypted);
    let lost =
        "the id and key in FORMAT, which cannot be read: No such file or directory (os error 2)";
    assert_eq!(
        (verified.outcome, &verified.lost[..]),
        (VerifyOutcome::Loss, &[lost.to_owned()][..])
    );
    let refused = Store::repair(&damaged, &golden.path.with_file_name("none"), TIME, None);
    assert!(matches!(refused, Err(Error::Encrypted)), "{refused:?}");
    let repaired = golden.path.with_file_name("repaired");
    assert_eq!(golden.repair(&damaged, &repaired).unwrap().lost, [lost]);
    assert!(Store::open(&repaired, golden.options.clone()).unwrap().is_encrypted());
    assert_eq!(golden.read(&repaired), golden.read);
    // There is also no record that a key could open: the rows of the index are tried.
    for segment in files(&damaged).iter().filter(|file| file.extension() == Some("log".as_ref())) {
        change(&damaged.join(segment), |bytes| bytes.truncate(1));
    }
    let repaired = golden.path.with_file_name("half");
    assert!(golden.repair(&damaged, &repaired).unwrap().lost.len() > 1);
    assert!(Store::open(&repaired, golden.options.clone()).unwrap().is_encrypted());
    let read = golden.read(&repaired);
    let same = golden
        .read
        .iter()
        .filter(|(thing, result)| result.is_ok() && read.get(*thing) == Some(result));
    assert!(same.count() > 30, "{read:?}");
}

/// A file from an hour ago replaces the current one: no read returns false data.
#[test]
fn no_file_of_an_older_store_gives_false_data() {
    let folder = scratch_folder();
    let path = folder.path().join("golden");
    make(&path, &Options::default());
    let older = folder.path().join("older");
    for file in files(&path) {
        fs::create_dir_all(older.join(&file).parent().unwrap()).unwrap();
        fs::copy(path.join(&file), older.join(&file)).unwrap();
    }
    let store = Store::open(&path, Options::default()).unwrap();
    store.drain().unwrap();
    let session = store.session("s").unwrap();
    session.restore(&act("restore"), &session.at_sequence(5).unwrap()).unwrap();
    store.maintain(0).unwrap();
    session.restore(&act("restore"), &session.at_sequence(9).unwrap()).unwrap();
    drop((session, store));
    let golden = Golden::of(folder, path, Options::default());
    let mut counts = Counts::default();
    for file in files(&golden.path) {
        if !older.join(&file).exists() {
            continue;
        }
        let what = format!("{} of an older store", file.display());
        damage(&golden, &file, &what, true, &mut counts, |path| {
            fs::copy(older.join(&file), path).unwrap();
        });
    }
    // An earlier generation, with the files that refer to it.
    for file in files(&older) {
        if golden.path.join(&file).exists() {
            continue;
        }
        let what = format!("{} of an older store put back", file.display());
        damage(&golden, Path::new("none"), &what, false, &mut counts, |path| {
            let place = path.with_file_name("x").parent().unwrap().join(&file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(older.join(&file), place).unwrap();
        });
    }
    report("older files", &counts);
}
