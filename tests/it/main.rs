//! Tests of the library through its public interface.

#[cfg(test)]
mod journal;
