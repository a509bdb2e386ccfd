//! GGUF files of another writer: every type and architecture that is read, and all that is refused.

mod support;

#[path = "gguf/fixtures.rs"]
mod fixtures;
#[path = "gguf/read.rs"]
mod read;
#[path = "gguf/refused.rs"]
mod refused;
#[path = "gguf/written.rs"]
mod written;
