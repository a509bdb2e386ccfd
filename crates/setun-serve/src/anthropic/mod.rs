//! Codec of the Messages API of Anthropic.

mod answer;
mod blocks;
pub(crate) mod description;
mod encoder;
pub(crate) mod errors;
pub(crate) mod messages;
mod request;
