//! GGUF files of another writer: every type and architecture that is read, and all that is refused.

mod fixtures;
mod keys;
mod read;
mod refused;
mod written;
