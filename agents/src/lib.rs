//! What forge knows of coding agents.
