//! The browser from the outside: keys in, screens out.

mod hand;
mod law;
mod screen;
