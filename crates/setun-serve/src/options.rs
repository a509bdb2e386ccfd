//! Options of a server.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::AtomicU64},
};

use setun::Clock;

use crate::{
    access::Hosts, api_keys::ApiKeys, files::FileStore, lifecycle::Lifecycle, limits::Limits,
    spans::SpanExporter,
};

/// Largest body of a request by default, in bytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Options of a server. What is not given has its default.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub(crate) aliases: Vec<String>,
    pub(crate) clock: Clock,
    pub(crate) api_keys: ApiKeys,
    pub(crate) dropped_log_lines: Arc<AtomicU64>,
    pub(crate) files: Option<FileStore>,
    pub(crate) hosts: Hosts,
    pub(crate) is_loopback: bool,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) limits: Limits,
    pub(crate) max_body_bytes: usize,
    pub(crate) origins: Vec<String>,
    pub(crate) has_vllm_metrics: bool,
    pub(crate) isolates_keys: bool,
    pub(crate) spans: Option<SpanExporter>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            aliases: vec![],
            clock: Clock::system(),
            api_keys: ApiKeys::default(),
            dropped_log_lines: Arc::default(),
            files: None,
            hosts: Hosts::default(),
            is_loopback: false,
            lifecycle: Lifecycle::new(),
            limits: Limits::default(),
            max_body_bytes: MAX_BODY_BYTES,
            origins: vec![],
            has_vllm_metrics: false,
            isolates_keys: false,
            spans: None,
        }
    }
}

impl ServeOptions {
    /// Every option by default: no key, no browser of another origin, any host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The address that the server is bound to. On a loopback address requests need a `Host` of the
    /// loopback, so that a page whose name was bound anew to it reaches nothing (DNS rebinding).
    #[must_use]
    pub fn bound_to(mut self, address: SocketAddr) -> Self {
        self.is_loopback = match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.to_canonical().is_loopback(),
        };
        self
    }

    /// The clock of limits on rates. Default: the system's; tests have one that they move.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Another name that requests may have for the model.
    #[must_use]
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.aliases.push(name.into());
        self
    }

    /// Keys of which each request needs one, but for `/health` and `/ready`. Default: none.
    #[must_use]
    pub fn api_keys(mut self, keys: ApiKeys) -> Self {
        self.api_keys = keys;
        self
    }

    /// An origin whose pages may send requests, such as `https://example.org`, or `*` for all.
    /// Default: none.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// A name that `Host` may have beside those of the loopback; where one is given, other hosts
    /// are refused on any address.
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.add(name.into());
        self
    }

    /// Largest body of a request, in bytes. Default: 8 MiB.
    #[must_use]
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Whether metrics that vLLM has too have its names, `vllm:…`, in place of `setun_…`. Default:
    /// false.
    #[must_use]
    pub fn vllm_metrics(mut self, has_vllm_names: bool) -> Self {
        self.has_vllm_metrics = has_vllm_names;
        self
    }

    /// Whether each key has a part of the prefix cache of its own, so that nobody learns from the time
    /// of an answer how the prompts of other keys begin. Default: false.
    #[must_use]
    pub fn isolate_keys(mut self, isolates_keys: bool) -> Self {
        self.isolates_keys = isolates_keys;
        self
    }

    /// Where files and batches are kept. Default: there are none, and their routes answer 404.
    #[must_use]
    pub fn files(mut self, store: FileStore) -> Self {
        self.files = Some(store);
        self
    }

    /// What exports a span of each request that runs a model. Default: nothing.
    #[must_use]
    pub fn spans(mut self, exporter: SpanExporter) -> Self {
        self.spans = Some(exporter);
        self
    }

    /// Limits on what clients may ask for. Those of connections are for [`serve_with`](crate::serve_with).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The count of log lines that could not be written, for a metric. Default: one that stays 0.
    #[must_use]
    pub fn dropped_log_lines(mut self, count: Arc<AtomicU64>) -> Self {
        self.dropped_log_lines = count;
        self
    }

    /// The handle that ends the server.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }
}
