//! The `setun-batch` command as its users see it: arguments in, text, files and exit statuses out.
#![cfg(unix)]

mod batch;
#[cfg(feature = "cluster")]
mod cluster;
mod models;
mod sql;

/// The command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_setun-batch");

#[path = "../../../../tests/support/seed.rs"]
#[allow(dead_code, reason = "helpers draw by it, of which some are not called")]
mod seed;

#[path = "../../../../crates/setun-cli/tests/cli/support.rs"]
#[expect(dead_code, reason = "the tests of the other command need more of it")]
mod support;

#[path = "../../../../crates/setun-cli/tests/cli/small_disk.rs"]
mod small_disk;
