//! Batch jobs on a cluster: Ballista's scheduler, executors with a model each, and the connection of a job to them.
//!
//! A job's process cuts each chunk into files of rows. The scheduler gives executors a file at a time; their functions are
//! those of SQL, known by name. Results come back through the scheduler, and the job's process alone writes them, so a task
//! that runs twice changes nothing.

mod driver;
mod executor;
mod probes;
mod scheduler;
mod tls;

use std::net::SocketAddr;

use datafusion::{
    error::Result,
    execution::{SessionState, SessionStateBuilder},
    prelude::SessionConfig,
};

pub use driver::Cluster;
pub(crate) use driver::{KEY, PATH, POSITION, PROMPT, TextQuery};
pub use executor::Executor;
pub use scheduler::Scheduler;
pub use tls::Tls;

use ballista_core::extension::SessionConfigExt;

use crate::{
    error::Error, functions::functions, handle::ModelHandle, session::runtime, settings::Settings,
};

/// What all of a cluster's processes configure alike.
fn config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_option_extension(Settings::default())
        .with_ballista_grpc_client_max_message_size(MESSAGE as usize)
}

/// A session that plans queries, and has no model: functions are known by name.
fn planning_state(config: SessionConfig) -> Result<SessionState> {
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime()?)
        .with_default_features()
        .build();
    register(&mut state)?;
    Ok(state)
}

/// Largest message between the processes, in bytes. A row of results is never divided.
const MESSAGE: u32 = 64 << 20;

/// The host of an address, as addresses are written with a port.
fn host_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// What a cluster says, in one line: a line of the log begins with its time.
fn cluster_error(address: &str, reason: &dyn std::fmt::Display) -> Error {
    let reason = reason.to_string();
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Cluster { address: address.to_owned(), reason }
}

fn register(state: &mut SessionState) -> Result<()> {
    use datafusion::execution::FunctionRegistry;
    let nowhere = ModelHandle::lazy(Box::new(|| Err("executors alone have the model".into())));
    for function in functions(&nowhere) {
        state.register_udf(function.into())?;
    }
    Ok(())
}
