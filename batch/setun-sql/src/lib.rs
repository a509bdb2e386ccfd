//! Language models as functions of SQL, for [`DataFusion`](datafusion).
//!
//! | function | result |
//! |---|---|
//! | `generate(prompt [, options [, key]])` | `text`, `finish_reason`, `prompt_tokens`, `completion_tokens`, `cached_tokens`, `error` |
//! | `chat(messages [, options [, key]])` | the same; `messages` is a JSON array as chat APIs have it |
//! | `embed(text [, options])` | `embedding`, `tokens`, `error` |
//! | `score(prompt, continuation)` | `logprob`, `mean_logprob`, `tokens`, `error` |
//! | `perplexity(text)` | `perplexity`, `mean_nll`, `tokens`, `error` |
//! | `model()` | `name`, `fingerprint` |
//!
//! ```no_run
//! # async fn query() -> Result<(), Box<dyn std::error::Error>> {
//! use datafusion::prelude::SessionContext;
//! use setun::{Engine, Model};
//! use setun_sql::{ModelHandle, register};
//!
//! let engine = Engine::builder(Model::open("models/bitnet-b1.58-2B-4T")?).build()?;
//! let context = SessionContext::new();
//! register(&context, &ModelHandle::from(engine))?;
//! let query = "SELECT generate(prompt, '{\"max_tokens\": 32}')['text'] FROM 'prompts.parquet'";
//! context.enable_url_table().sql(query).await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - All rows of a batch run at once, as many as the engine has room for.
//! - A row that cannot be answered is data: its `error` says why and its other fields are null. Trouble of the engine is
//!   an error of the query, which may be tried again.
//! - The seed of a row is a hash of the job's seed (`SET setun.seed = 7`) and the row's key, by default its prompt. So a
//!   row has the same text wherever and however often it runs.

mod arguments;
mod batch;
#[cfg(feature = "ballista")]
mod cluster;
mod error;
mod functions;
mod handle;
mod identity;
mod nested_calls;
mod progress;
mod session;
mod settings;

use std::sync::Arc;

use datafusion::{execution::FunctionRegistry, prelude::SessionContext};

#[cfg(feature = "ballista")]
pub use batch::end_attempts;
pub use batch::{
    BatchJob, BatchStatus, ChunkEntry, Conversation, Workers, batch_status, run_batch,
};
#[cfg(feature = "ballista")]
pub use cluster::{Cluster, Executor, Scheduler, Tls};
pub use error::Error;
pub use functions::functions;
pub use handle::{Load, MakeRespond, ModelHandle, Respond, RowCounts};
pub use nested_calls::SplitNestedCalls;
pub use progress::progress_words;
pub use session::session;
pub use settings::Settings;

/// Registers the functions of a model, the settings `setun.*`, and what nested calls need.
///
/// # Errors
///
/// If the context refuses a function.
pub fn register(context: &SessionContext, model: &ModelHandle) -> datafusion::error::Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    for function in functions(model) {
        state.register_udf(Arc::new(function))?;
    }
    let options = state.config_mut().options_mut();
    // It takes a field of a call's result for a field of a column, and computes the call below a filter, and once for
    // each field.
    options.optimizer.enable_leaf_expression_pushdown = false;
    if options.extensions.get::<Settings>().is_none() {
        options.extensions.insert(Settings::default());
    }
    drop(state);
    context.add_optimizer_rule(Arc::new(SplitNestedCalls));
    Ok(())
}
