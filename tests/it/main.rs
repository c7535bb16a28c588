//! Tests of the library as its users see it.

mod backend;
