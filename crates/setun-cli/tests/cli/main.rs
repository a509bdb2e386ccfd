//! The `setun` command as its users see it: arguments in, text, files and exit statuses out.

mod activation_groups;
mod bench;
mod catalog;
mod chat;
#[cfg(unix)]
mod companion;
mod convert;
mod destinations;
mod failures;
#[cfg(feature = "vulkan")]
mod gpu;
mod inspect;
mod logits;
mod models;
mod options;
mod perplexity;
#[cfg(unix)]
mod processes;
mod reading;
mod run;
mod samples;
#[cfg(unix)]
#[path = "../../../../tests/support/seed.rs"]
mod seed;
#[cfg(all(unix, feature = "serve"))]
mod serve;
#[cfg(unix)]
mod signals;
mod simulate;
#[cfg(unix)]
mod small_disk;
#[cfg(unix)]
mod special_files;
mod strange_files;
mod structured;
mod support;
mod synth;
mod usage;
#[path = "../../../../tests/support/wait.rs"]
mod wait;

/// The command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_setun");

#[path = "../../../setun-hub/tests/hub/server.rs"]
#[expect(dead_code, reason = "the tests of pulls need more of it")]
mod server;
