//! Codec of the Responses API of `OpenAI`, without stored responses.

mod answer;
pub(crate) mod create;
mod encoder;
mod input;
mod request;
