//! Showing what could be read of a damaged index.

use super::{KeyHidingRule, RESERVED, RowCipher};
use crate::backend::journal::BitRepair;
use crate::backend::rocks::RescuedIndex;
use crate::backend::{Cipher, EncryptionContext};

/// So many rows are tried to be put right: each takes as long as reading thousands.
const MENDS: usize = 256;

/// The rows as they were written. What does not open is left out, and said; of those with a single wrong bit that is put
/// right.
pub(crate) fn rescued(
    stored: RescuedIndex,
    cipher: &Cipher,
    hidden: KeyHidingRule,
    mend: BitRepair<'_>,
) -> RescuedIndex {
    let layer = RowCipher { cipher: cipher.clone(), hidden };
    let mut shown = RescuedIndex { rows: Default::default(), ..stored };
    let (mut closed, mut mends) = (0_u64, MENDS);
    for ((table, key), mut value) in stored.rows {
        if table == RESERVED {
            shown.rows.insert((table, key), value);
            continue;
        }
        let opens = |value: &[u8]| cipher.open(EncryptionContext::Row(table, &key), value).is_ok();
        if !opens(&value) && mends > 0 {
            mends -= 1;
            mend(&mut value, &opens);
        }
        match layer.open(table, key.clone(), &value) {
            Ok((key, value)) => {
                shown.rows.insert((table, key), value);
            }
            Err(_) => closed += 1,
        }
    }
    if closed > 0 && shown.problem.is_none() {
        let said = format!("{closed} rows of the index do not open with the store's key");
        shown.problem = Some(said);
    }
    shown
}
