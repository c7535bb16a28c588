//! Work on all cores.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread::{available_parallelism, scope};

/// How many threads may run at the same time, as it was when first asked: the system answers from several files, which
/// takes longer than to decode a delta.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}

/// What `one` makes of each item, in their order. Fewer than `worth` are left to the calling thread: to begin another
/// would take longer.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    worth: usize,
    one: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if items.len() < worth || cores() == 1 {
        return items.iter().map(one).collect();
    }
    let one = &one;
    scope(|scope| {
        let mut shares = items.chunks(items.len().div_ceil(cores()).max(1));
        let mine = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(one).collect::<Vec<_>>()))
            .collect();
        let mut all = Vec::with_capacity(items.len());
        all.extend(mine.iter().map(one));
        for other in others {
            // A panic goes on here, as if the work had been done by this thread.
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_and_the_order_stays() {
        for count in [0, 1, 2, 3, 100] {
            let items: Vec<usize> = (0..count).collect();
            for worth in [0, 50, 1000] {
                let doubled = map(&items, worth, |item| item * 2);
                assert_eq!(doubled, (0..count).map(|item| item * 2).collect::<Vec<_>>());
            }
        }
    }
}
