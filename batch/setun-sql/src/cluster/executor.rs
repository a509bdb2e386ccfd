//! An executor: the model of its process, and the tasks that it fetches from the scheduler.

use std::{
    io,
    net::{self, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::{
    config::TaskSchedulingPolicy,
    error::BallistaError,
    registry::BallistaFunctionRegistry,
    utils::{GrpcServerConfig, create_grpc_server},
};
use ballista_executor::{
    ArrowFlightServerProvider,
    executor_process::{ExecutorProcessConfig, start_executor_process},
    flight_service::BallistaFlightService,
    health::ExecutorHealth,
};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use super::{MESSAGE, Tls, cluster_error, config, host_of, probes};
use crate::{error::Error, functions::functions, handle::ModelHandle, session::runtime};

/// An executor that is to be run.
#[derive(Debug)]
pub struct Executor {
    /// The scheduler, as `HOST:PORT`.
    pub scheduler: String,
    /// Where results are fetched. At port 0 the system chooses one.
    pub listen: SocketAddr,
    /// The name by which the scheduler reaches this machine. By default the address from which it is called.
    pub advertise: Option<String>,
    /// Tasks at once, 1 or more. With several, the rows of one fill the places that another leaves.
    pub slots: usize,
    /// Where `/healthz`, `/readyz` and `/metrics` are served, if at all.
    pub probes: Option<SocketAddr>,
    /// The folder for results that were not fetched yet.
    pub folder: PathBuf,
    /// TLS, for this process and those that it talks to.
    pub tls: Option<Tls>,
}

/// Seconds to wait for a scheduler that is not there yet.
const SCHEDULER_WAIT: u16 = 30;

impl Executor {
    /// Loads the model, and runs tasks until it is dropped.
    ///
    /// # Errors
    ///
    /// Before it takes a task, if the model cannot be loaded, an address be taken or the scheduler be reached.
    #[must_use = "a future does nothing unless it is awaited"]
    pub fn run(self, model: &ModelHandle) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.fetch_tasks(model))
    }

    async fn fetch_tasks(self, model: &ModelHandle) -> Result<(), Error> {
        if self.tls.is_some() && self.advertise.is_none() {
            // Behind TLS the scheduler sees connections of its own machine.
            let reason = "with TLS, expected a name to advertise";
            return Err(cluster_error(&self.listen.to_string(), &reason));
        }
        // Ballista logs an address that is taken, and goes on.
        let results = bind(self.listen).await?;
        let probes = match self.probes {
            Some(address) => Some((address, bind(address).await?)),
            None => None,
        };
        model.loaded().await?.identity().await?;
        let health = ExecutorHealth::new();
        let options = Arc::new(self.options(model, health.clone(), results)?);
        let failed = |error: BallistaError| cluster_error(&self.scheduler, &error);
        let Some((address, listener)) = probes else {
            return start_executor_process(options).await.map_err(failed);
        };
        tokio::select! {
            ended = start_executor_process(options) => ended.map_err(failed),
            served = probes::serve(listener, health, model.clone()) => {
                served.map_err(|error| cluster_error(&address.to_string(), &error))
            }
        }
    }

    fn options(
        &self,
        model: &ModelHandle,
        health: ExecutorHealth,
        results: TcpListener,
    ) -> Result<ExecutorProcessConfig, Error> {
        let expected = || cluster_error(&self.scheduler, &"expected HOST:PORT");
        let (host, port) = self.scheduler.rsplit_once(':').ok_or_else(expected)?;
        let scheduler_port = port.parse().map_err(|_| expected())?;
        let wrong = |error: io::Error| cluster_error(&self.listen.to_string(), &error);
        let listens = results.local_addr().map_err(wrong)?;
        let results = results.into_std().map_err(wrong)?;
        Ok(ExecutorProcessConfig {
            bind_host: host_of(listens),
            external_host: self.advertise.clone(),
            port: listens.port(),
            scheduler_host: host.to_owned(),
            scheduler_port,
            scheduler_connect_timeout_seconds: SCHEDULER_WAIT,
            vcores: self.slots.max(1),
            task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
            work_dir: Some(text(&self.folder)?),
            grpc_max_decoding_message_size: MESSAGE,
            grpc_max_encoding_message_size: MESSAGE,
            override_function_registry: Some(Arc::new(registry(model))),
            override_runtime_producer: Some(Arc::new(|_| runtime())),
            override_config_producer: Some(Arc::new(config)),
            override_create_grpc_client_endpoint: self.tls.as_ref().map(Tls::for_endpoint),
            override_arrow_flight_service: Some(served_at(results, self.tls.clone())),
            health,
            ..ExecutorProcessConfig::default()
        })
    }
}

fn text(folder: &Path) -> Result<String, Error> {
    let shown = folder.to_str().map(str::to_owned);
    shown.ok_or_else(|| cluster_error(&folder.display().to_string(), &"expected a name in UTF-8"))
}

fn registry(model: &ModelHandle) -> BallistaFunctionRegistry {
    let mut registry = BallistaFunctionRegistry::default();
    let known = &mut registry.scalar_functions;
    known.extend(functions(model).into_iter().map(|one| (one.name().to_owned(), Arc::new(one))));
    registry
}

/// The service of results at an address that is held, by TLS if there is one.
fn served_at(listener: net::TcpListener, tls: Option<Tls>) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |folder, _, mut shutdown, config| {
        let (listener, tls) = (listener.try_clone(), tls.clone());
        tokio::spawn(async move {
            let incoming = incoming(listener, &config).map_err(BallistaError::IoError)?;
            let mut server = create_grpc_server(&config);
            if let Some(tls) = tls {
                server = server.tls_config(tls.for_server()).map_err(BallistaError::TonicError)?;
            }
            let service = FlightServiceServer::new(BallistaFlightService::new(folder))
                .max_decoding_message_size(MESSAGE as usize)
                .max_encoding_message_size(MESSAGE as usize);
            let served = server.add_service(service);
            served
                .serve_with_incoming_shutdown(incoming, shutdown.recv())
                .await
                .map_err(BallistaError::TonicError)
        })
    })
}

/// Connections with the settings that tonic takes from a server only where the server binds.
fn incoming(
    listener: io::Result<net::TcpListener>,
    config: &GrpcServerConfig,
) -> io::Result<TcpIncoming> {
    let keepalive = Duration::from_secs(config.tcp_keepalive_seconds);
    let incoming = TcpIncoming::from(TcpListener::from_std(listener?)?);
    Ok(incoming.with_nodelay(Some(true)).with_keepalive(Some(keepalive)))
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| cluster_error(&address.to_string(), &error))
}
