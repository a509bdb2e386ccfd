//! The scheduler: it gives the files of a chunk to executors that are free.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::{
    cluster::BallistaCluster,
    config::SchedulerConfig,
    scheduler_process::{create_scheduler, start_grpc_service_with_listener},
};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::{MESSAGE, Tls, cluster_error, config, host_of, planning_state};
use crate::error::Error;

/// A scheduler that is to be run.
#[derive(Debug)]
pub struct Scheduler {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Seconds after which an executor that is not heard of is lost.
    pub executor_timeout: u64,
    /// TLS, for this process and those that it talks to.
    pub tls: Option<Tls>,
}

/// Receivers of the address.
type Ready = Box<dyn FnOnce(SocketAddr) + Send>;

/// The shortest time, because executors are heard of every five seconds.
const SHORTEST_TIMEOUT: u64 = 10;

impl Scheduler {
    /// Listens, says so to `ready` with the address, and runs until the process ends. Its state is in memory.
    ///
    /// # Errors
    ///
    /// If the address cannot be taken.
    pub fn run(
        self,
        ready: impl FnOnce(SocketAddr) + Send + 'static,
    ) -> BoxFuture<'static, Result<(), Error>> {
        self.boxed(Box::new(ready))
    }

    fn boxed(self, ready: Ready) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.serve(ready))
    }

    async fn serve(self, ready: Ready) -> Result<(), Error> {
        let address = self.listen.to_string();
        let failed = |error: &dyn std::fmt::Display| cluster_error(&address, error);
        let listener = TcpListener::bind(self.listen).await.map_err(|error| failed(&error))?;
        let listens = listener.local_addr().map_err(|error| failed(&error))?;
        let config = Arc::new(self.config(listens));
        config.validate().map_err(|error| failed(&error))?;
        let cluster = BallistaCluster::new_from_config(&config).await;
        let cluster = cluster.map_err(|error| failed(&error))?;
        let server = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await;
        let server = server.map_err(|error| failed(&error))?;
        ready(listens);
        let Some(tls) = self.tls else {
            let served = start_grpc_service_with_listener(listener, server).await;
            return served.map_err(|error| failed(&error));
        };
        let inner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let inner = inner.map_err(|error| failed(&error))?;
        let port = inner.local_addr().map_err(|error| failed(&error))?.port();
        tokio::select! {
            served = start_grpc_service_with_listener(inner, server) => served.map_err(|error| failed(&error)),
            passed = tls.pass_on(listener, port) => passed.map_err(|error| failed(&error)),
        }
    }

    fn config(&self, listens: SocketAddr) -> SchedulerConfig {
        SchedulerConfig {
            bind_host: host_of(listens),
            bind_port: listens.port(),
            // Executors ask for work, so that the scheduler need not reach them but for results.
            scheduling_policy: TaskSchedulingPolicy::PullStaged,
            executor_timeout_seconds: self.executor_timeout.max(SHORTEST_TIMEOUT),
            no_executors_grace_period_seconds: self.executor_timeout.max(SHORTEST_TIMEOUT),
            expire_dead_executor_interval_seconds: 1,
            grpc_server_max_decoding_message_size: MESSAGE,
            grpc_server_max_encoding_message_size: MESSAGE,
            grpc_client_max_message_size: MESSAGE,
            // Results come through the scheduler, so that a job need not reach executors.
            enable_embedded_flight_proxy: true,
            override_config_producer: Some(Arc::new(config)),
            override_session_builder: Some(Arc::new(planning_state)),
            override_create_grpc_client_endpoint: self.tls.as_ref().map(Tls::for_endpoint),
            use_tls: self.tls.is_some(),
            ..SchedulerConfig::default()
        }
    }
}
