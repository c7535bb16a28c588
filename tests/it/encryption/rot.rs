//! Wrong bits in the files of an encrypted store: no read returns false data, and a repair saves
//! the rest.

#![allow(clippy::print_stderr, reason = "a seed and counts must be seen")]

use super::keys::place;
use super::time;
use crate::fault::{SeededNumbers, copy, count};
use forge_store::error::Error;
use forge_store::model::Kind;
use forge_store::store::{Options, Store, VerifyDepth, VerifyOutcome};
use forge_testkit::files::files_below;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// More numbers than the session has.
const NUMBERS: u64 = 40;

type Read = BTreeMap<String, Result<String, String>>;

/// Reads everything, each item separately.
fn read(path: &Path, options: &Options) -> Read {
    let mut read = Read::new();
    let options = options.clone().read_only(true);
    let session = Store::open(path, options).and_then(|store| store.session("zebra-session"));
    let mut note = |what: String, result: Result<String, Error>| {
        read.insert(what, result.map_err(|error| error.to_string()));
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => {
            note("open".to_owned(), Err(error));
            return read;
        }
    };
    for number in 1..=NUMBERS {
        let state = || {
            let moment = session.at_sequence(number)?;
            session.check_digest(&moment)?;
            let state = session.state(&moment)?;
            let entries = state.claims().entries().collect::<Result<Vec<_>, _>>()?;
            Ok(blake3::hash(format!("{entries:?}").as_bytes()).to_hex().to_string())
        };
        note(format!("#{number}"), state());
    }
    let facts = || Ok(format!("{:?}", session.state(&session.head()?)?.facts_of(Kind::Command)?));
    note("facts".to_owned(), facts());
    read
}

#[test]
fn no_wrong_bit_in_an_encrypted_store_gives_false_data_and_a_repair_saves_the_rest() {
    let test = "wrong bits, encrypted";
    let mut numbers = SeededNumbers::from_environment(test);
    let place = place();
    let golden = read(&place.path(), &place.options());
    let states = golden.values().filter(|result| result.is_ok()).count();
    assert!(states > 15, "{golden:?}");
    let (mut saved, mut rounds) = (0, 0);
    let damaged = place.root.path().join("damaged");
    let repaired = place.root.path().join("repaired");
    let all = files_below(&place.path());
    for file in all.iter().filter(|file| file.metadata().unwrap().len() > 0) {
        let file = file.strip_prefix(place.path()).unwrap();
        for _ in 0..count("FORGE_FLIPS", 40).div_ceil(10) {
            copy(&place.path(), &damaged);
            let mut bytes = fs::read(damaged.join(file)).unwrap();
            let (at, bit) = (numbers.below(bytes.len() as u64) as usize, numbers.below(8));
            bytes[at] ^= 1 << bit;
            fs::write(damaged.join(file), bytes).unwrap();
            let what = format!("{} byte {at} bit {bit}", file.display());
            let found = read(&damaged, &place.options());
            let right =
                |(thing, result): (&String, &Result<String, String>)| match golden.get(thing) {
                    Some(golden) => result.is_err() || result == golden,
                    None => result.is_err(),
                };
            assert!(found.iter().all(right), "{what}: {found:?}");
            let verified =
                Store::verify(&damaged, VerifyDepth::ReadData, time(90), Some(&place.keyring()));
            let is_clean = verified.is_ok_and(|verified| verified.outcome == VerifyOutcome::Clean);
            assert!(!is_clean || found == golden, "{what}: {found:?}");
            let done = Store::repair(&damaged, &repaired, time(90), Some(&place.keyring()));
            // If the marker of an encrypted store is unreadable, its key cannot be determined.
            if let Ok(done) = done {
                let found = read(&repaired, &place.options());
                assert!(found.iter().all(right), "{what}: {done:?} {found:?}");
                let right = found.values().filter(|result| result.is_ok()).count();
                assert!(right == states || !done.lost.is_empty(), "{what}: lost without a word");
                saved += right;
                rounds += 1;
                fs::remove_dir_all(&repaired).unwrap();
            }
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
    eprintln!("{test}: {rounds} repaired, {saved} of {} saved", rounds * states);
    assert!(rounds > 20 && saved * 100 >= rounds * states * 99, "{saved} of {}", rounds * states);
}
