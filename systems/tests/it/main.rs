//! The systems from the outside. One binary, one module a topic.

#[cfg(test)]
mod program;
#[cfg(test)]
mod thread;
