//! The `setun` command.
fn main() {}
