//! Decrypts the rows that were salvaged from a damaged index.

use super::{KeyHidingRule, RESERVED, RowCipher};
use crate::backend::journal::BitRepair;
use crate::backend::rocks::RescuedIndex;
use crate::backend::{Cipher, EncryptionContext};

/// Maximum number of rows on which bit repair is tried: each attempt costs as much as reading
/// thousands of rows.
const MAX_REPAIR_ATTEMPTS: usize = 256;

/// Decrypts the salvaged rows. If a value does not decrypt, `repair` tries to correct it, for at
/// most [`MAX_REPAIR_ATTEMPTS`] rows. Rows that still do not decrypt are left out; their number
/// becomes the problem of the result, unless it has one already.
pub(crate) fn decrypt_rescued(
    stored: RescuedIndex,
    cipher: &Cipher,
    hidden: KeyHidingRule,
    repair: BitRepair<'_>,
) -> RescuedIndex {
    let row_cipher = RowCipher { cipher: cipher.clone(), hidden };
    let mut decrypted = RescuedIndex { rows: Default::default(), ..stored };
    let (mut failed, mut attempts_left) = (0_u64, MAX_REPAIR_ATTEMPTS);
    for ((table, key), mut value) in stored.rows {
        // The index itself writes these rows, below the encryption.
        if table == RESERVED {
            decrypted.rows.insert((table, key), value);
            continue;
        }
        let decrypts =
            |value: &[u8]| cipher.open(EncryptionContext::Row(table, &key), value).is_ok();
        if !decrypts(&value) && attempts_left > 0 {
            attempts_left -= 1;
            repair(&mut value, &decrypts);
        }
        match row_cipher.open(table, key.clone(), &value) {
            Ok((key, value)) => {
                decrypted.rows.insert((table, key), value);
            }
            Err(_) => failed += 1,
        }
    }
    if failed > 0 && decrypted.problem.is_none() {
        let problem =
            format!("{failed} rows of the index cannot be decrypted with the store's key");
        decrypted.problem = Some(problem);
    }
    decrypted
}
