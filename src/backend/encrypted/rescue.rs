//! Decrypts the rows that were salvaged from a damaged index.

use super::{KeyHidingRule, RESERVED, RowCipher};
use crate::backend::journal::BitRepair;
use crate::backend::rocks::RescuedIndex;
use crate::backend::{Cipher, EncryptionContext};

/// Maximum number of rows on which bit repair is tried: each costs as much as reading thousands of
/// rows.
const MAX_REPAIR_ATTEMPTS: usize = 256;

/// Decrypts the salvaged rows. Rows that do not decrypt are left out and reported as a problem; a
/// single wrong bit in a row is corrected.
pub(crate) fn rescued(
    stored: RescuedIndex,
    cipher: &Cipher,
    hidden: KeyHidingRule,
    repair: BitRepair<'_>,
) -> RescuedIndex {
    let layer = RowCipher { cipher: cipher.clone(), hidden };
    let mut shown = RescuedIndex { rows: Default::default(), ..stored };
    let (mut closed, mut attempts_left) = (0_u64, MAX_REPAIR_ATTEMPTS);
    for ((table, key), mut value) in stored.rows {
        if table == RESERVED {
            shown.rows.insert((table, key), value);
            continue;
        }
        let opens = |value: &[u8]| cipher.open(EncryptionContext::Row(table, &key), value).is_ok();
        if !opens(&value) && attempts_left > 0 {
            attempts_left -= 1;
            repair(&mut value, &opens);
        }
        match layer.open(table, key.clone(), &value) {
            Ok((key, value)) => {
                shown.rows.insert((table, key), value);
            }
            Err(_) => closed += 1,
        }
    }
    if closed > 0 && shown.problem.is_none() {
        let said = format!("{closed} rows of the index cannot be decrypted with the store's key");
        shown.problem = Some(said);
    }
    shown
}
