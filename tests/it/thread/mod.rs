//! Message threads, judged by rules that know nothing of the code.

mod generate;
mod rules;
mod sanitise;
