//! Message threads, judged by rules that know nothing of the code.

mod cases;
mod damage;
mod generate;
mod kept;
mod rules;
mod sanitise;

/// How many random histories are tried: so many, or as `FORGE_THREAD_CASES` says.
fn cases(otherwise: u32) -> u32 {
    let asked = std::env::var("FORGE_THREAD_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(otherwise)
}
