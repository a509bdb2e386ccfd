//! Codec of the Responses API of `OpenAI`, without stored responses.

mod answer;
pub(crate) mod create;
pub(crate) mod description;
mod encoder;
mod input;
mod request;
