//! HTTP server: the APIs of `OpenAI`, Anthropic and Ollama over a setun engine, as a router of axum.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use setun::{Engine, Model};
//! use setun_serve::{Lifecycle, ServeOptions, router, serve};
//!
//! let engine = Engine::builder(Model::open("models/bitnet-b1.58-2B-4T")?).build()?;
//! let lifecycle = Lifecycle::new();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! let options = ServeOptions::new().bound_to(listener.local_addr()?).lifecycle(lifecycle.clone());
//! // Elsewhere, after a signal: `lifecycle.drain()`.
//! serve(listener, router(engine, options), lifecycle, Duration::from_secs(30)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - Each API is a codec: it reads a request into one internal form, and writes events as its answer.
//! - A client that leaves drops its streams, which frees the blocks of the KV cache.
//! - Prompts and texts are never logged.

mod access;
mod answer_parts;
mod anthropic;
mod api_keys;
mod app;
mod batches;
mod blocking;
mod bucket_counts;
mod cache_salt;
mod client_stream;
mod compat;
mod connection_places;
mod content_encoding;
mod contents;
mod conversation;
mod description;
mod embedding;
mod error;
mod excerpt;
mod fields;
mod files;
mod generation;
mod lifecycle;
mod limits;
mod messages;
mod metrics_page;
mod model_metrics;
mod ollama;
mod openai;
mod options;
mod own_description;
mod parsing;
mod prometheus;
mod registry;
mod request_fields;
mod request_id;
mod request_list;
mod request_log;
mod response_format;
mod responses;
mod router;
mod sampling;
mod score;
mod served_model;
mod server;
mod server_metrics;
mod spans;
mod sse;
mod status;
mod streamed;
mod suggest;
mod text_tokens;
mod token_words;
mod tokenize;
mod tokenizing;
mod tool_choice;
mod trace_context;
mod ui;
mod unix_time;
mod warnings;

pub use api_keys::{ApiKeys, ApiKeysError};
pub use files::{FileLimits, FileStore, FilesError};
pub use lifecycle::Lifecycle;
pub use limits::Limits;
pub use options::ServeOptions;
pub use registry::{
    DuplicateModel, KeepAlive, LoadError, LoadProgress, ModelRegistry, ModelSpec, OpenError,
    OpenModel,
};
pub use router::router;
pub use server::{serve, serve_with};
pub use spans::{ExportError, SpanExporter};
