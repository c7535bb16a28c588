//! rocks
