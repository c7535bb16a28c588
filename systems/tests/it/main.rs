//! Tests of the systems through their public interface: one binary, with one module for each topic.

#[cfg(test)]
mod program;
#[cfg(test)]
mod thread;
