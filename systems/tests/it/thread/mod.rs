//! Message threads, checked by rules that are independent of the code.

mod cases;
mod damage;
mod generate;
mod kept;
mod repairs;
mod rules;
mod sanitise;

/// The number of random histories: `otherwise`, or `FORGE_THREAD_CASES`.
fn cases(otherwise: u32) -> u32 {
    let wanted = std::env::var("FORGE_THREAD_CASES").ok().and_then(|cases| cases.parse().ok());
    wanted.unwrap_or(otherwise)
}
