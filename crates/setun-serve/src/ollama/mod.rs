//! Codec of Ollama's API: requests in, answers and lines of JSON out.

mod answer;
mod calls;
pub(crate) mod chat;
pub(crate) mod description;
mod details;
pub(crate) mod embed;
pub(crate) mod error_shape;
pub(crate) mod generate;
mod keep_alive;
pub(crate) mod models;
mod request;
pub(crate) mod root;
mod time;
