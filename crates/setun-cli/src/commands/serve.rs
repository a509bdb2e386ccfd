//! `setun serve`: an HTTP server with the APIs of `OpenAI` and Ollama.

mod models;
mod otlp;
mod service;
mod settings;

use std::{
    env, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    time::Duration,
};

use clap::builder::NonEmptyStringValueParser;
use futures::future::{Either, select};
use setun::checkpoint::warning::listed;
use setun_serve::{ApiKeys, Lifecycle, LoadError, ModelRegistry, ServeOptions, router, serve_with};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{
    args::{EngineSettings, FileArgs},
    error::CliError,
    input, interrupt, log_writer,
    logging::LogFormat,
    output::{counted, report},
};
use settings::{MetricNames, ServeSettings};

/// The environment variable with keys of clients, one a line.
const KEYS: &str = "SETUN_API_KEYS";

/// Threads that serve connections; those of the engine compute.
const THREADS: usize = 2;

/// Largest body that can be allowed, in bytes.
const MAX_BODY_BYTES: u64 = 1 << 30;

/// Serve models over HTTP, with the APIs of `OpenAI`, Anthropic and Ollama (docs/serving.md)
///
/// SIGTERM and Ctrl-C let requests under way end; a second signal ends them. SIGHUP reads the models
/// and keys of the configuration again.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// A file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout, or the name of a
    /// pulled model; repeatable. The first is loaded at the start, the others when they are requested
    /// [default: the embedded model]
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,

    /// Compare the files of pulled models with their hashes before they are loaded
    #[arg(long, requires = "model")]
    verify: bool,

    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    settings: EngineSettings,

    /// Address to listen at
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Port to listen at; 0 is a free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,

    /// Another name that requests may have for the first model; repeatable
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    alias: Vec<String>,

    #[command(flatten)]
    serve: ServeSettings,

    /// How the log is written that `RUST_LOG` asks for, such as `setun_serve=info`
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,

    /// Seconds in which requests under way may end after a signal
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace_time: u32,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let dropped_log_lines = log_writer::start();
    let serve = args.serve.with_file(args.settings.config.as_ref())?;
    let keys = api_keys(&serve)?;
    let spans = serve.otlp_endpoint.as_deref().map(otlp::exporter).transpose()?;
    let runtime = runtime()?;
    // Before the work of loading: a port that is taken is no use.
    let (listener, address) = args.listen(&runtime)?;
    if keys.is_empty() && !address.ip().to_canonical().is_loopback() {
        report(&format!(
            "warning: whoever reaches {address} may use this server: expected keys \
             (--api-keys, {KEYS})\n"
        ));
    }
    let (registry, at_start) = args.registry(&serve)?;
    let lifecycle = Lifecycle::new();
    let options = options(&serve, address, keys.clone())
        .lifecycle(lifecycle.clone())
        .dropped_log_lines(dropped_log_lines);
    let limits = serve.limits();
    let options = spans.iter().cloned().fold(options, ServeOptions::spans);
    let options = serve.file_store()?.into_iter().fold(options, ServeOptions::files);
    let router = {
        let _context = runtime.enter(); // batches go on that an earlier server has left
        router(registry.clone(), options)
    };
    let _guard = interrupt::on_signal({
        let lifecycle = lifecycle.clone();
        move || {
            report(&format!("ending: {} under way\n", counted(lifecycle.requests(), "request")));
            service::notify("STOPPING=1");
            lifecycle.drain();
        }
    });
    let grace = Duration::from_secs(args.grace_time.into());
    let started = registry.start(at_start.clone());
    let served = runtime.spawn(serve_with(listener, router, lifecycle, grace, limits));
    let ended = runtime.block_on(async {
        let (served, started) = (served, pin!(started));
        match select(served, started).await {
            Either::Left((served, _)) => Ok(served),
            Either::Right((Err(error), _)) => Err(error),
            Either::Right((Ok(()), served)) => {
                report_others(&registry, &at_start);
                report(&format!("serving {} at http://{address}\n", names(&registry, &at_start)));
                args.reload_on_hangup(&registry, &keys, &runtime);
                service::notify("READY=1");
                Ok(served.await)
            }
        }
    });
    runtime.shutdown_background(); // which drops what has not ended
    if let Some(spans) = spans {
        spans.close();
    }
    let ended = ended.map_err(|error: LoadError| CliError::Load(error.reason()))?;
    match ended.map_err(io::Error::other).flatten() {
        Ok(true) => registry.close(),
        Ok(false) => report("the grace time is over: requests were cut off\n"),
        Err(source) => return Err(CliError::Listen { address: address.to_string(), source }),
    }
    Ok(())
}

/// The models of the start, or how many can be loaded.
fn names(registry: &ModelRegistry, at_start: &[String]) -> String {
    match at_start {
        [] => counted(registry.len(), "model"),
        names => names.join(", "),
    }
}

/// Prints the names of the models that are not loaded at the start.
fn report_others(registry: &ModelRegistry, at_start: &[String]) {
    let mut others = registry.names();
    others.retain(|name| !at_start.contains(name));
    if !at_start.is_empty() && !others.is_empty() {
        report(&format!("loaded when a request names them: {}\n", listed(&others)));
    }
}

impl Args {
    /// The models, and the names of those that are loaded at the start.
    fn registry(&self, serve: &ServeSettings) -> Result<(ModelRegistry, Vec<String>), CliError> {
        let registry = ModelRegistry::default();
        let first = self.set_models(serve, &registry)?;
        let mut at_start = registry.pinned();
        at_start.extend(first.filter(|first| !at_start.contains(first)));
        Ok((registry, at_start))
    }

    /// Gives the registry the models of the settings. The first one, if it is loaded at the start.
    fn set_models(
        &self,
        serve: &ServeSettings,
        registry: &ModelRegistry,
    ) -> Result<Option<String>, CliError> {
        let (mut specs, first) = models::specs(self, serve)?;
        if let Some(spec) = specs.first_mut() {
            *spec = self.alias.iter().fold(spec.clone(), setun_serve::ModelSpec::alias);
        }
        let first = specs.first().filter(|_| first > 0).map(|spec| spec.name().to_owned());
        registry.set_memory_budget(serve.memory_budget);
        registry.set_keep_alive(serve.keep_alive());
        registry.set_models(specs).map_err(|error| CliError::Usage(error.to_string()))?;
        Ok(first)
    }

    /// Has SIGHUP read the models and keys of the configuration again. What is wrong is reported, and
    /// changes nothing.
    fn reload_on_hangup(&self, registry: &ModelRegistry, keys: &ApiKeys, runtime: &Runtime) {
        let (args, registry, keys) = (self.clone(), registry.clone(), keys.clone());
        let handle = runtime.handle().clone();
        interrupt::on_hangup(move || {
            let _context = handle.enter(); // models that are named no more end in tasks
            service::notify("RELOADING=1");
            match args.reload(&registry, &keys) {
                Ok(()) => report(&format!("reloaded: {}\n", counted(registry.len(), "model"))),
                Err(error) => report(&format!("not reloaded: {error}\n")),
            }
            service::notify("READY=1");
        });
    }

    fn reload(&self, registry: &ModelRegistry, keys: &ApiKeys) -> Result<(), CliError> {
        let serve = self.serve.with_file(self.settings.config.as_ref())?;
        let new = api_keys(&serve)?;
        self.set_models(&serve, registry)?;
        keys.replace(&new);
        for name in registry.pinned() {
            let registry = registry.clone();
            tokio::spawn(async move { registry.load(&name).await }); // the log has what fails
        }
        Ok(())
    }

    fn listen(&self, runtime: &Runtime) -> Result<(TcpListener, SocketAddr), CliError> {
        let address = SocketAddr::new(self.host, self.port);
        let failed = |source| CliError::Listen { address: address.to_string(), source };
        let _context = runtime.enter();
        let listener = match service::listener().map_err(failed)? {
            Some(listener) => TcpListener::from_std(listener).map_err(failed)?,
            None => runtime.block_on(TcpListener::bind(address)).map_err(failed)?,
        };
        let bound = listener.local_addr().map_err(failed)?;
        Ok((listener, bound))
    }
}

fn options(serve: &ServeSettings, address: SocketAddr, keys: ApiKeys) -> ServeOptions {
    let mut options = ServeOptions::new().bound_to(address).api_keys(keys);
    if let Some(bytes) = serve.max_body_bytes {
        options = options.max_body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    options = options.limits(serve.limits()).isolate_keys(serve.isolate_keys);
    options = options.vllm_metrics(serve.metrics_compat == Some(MetricNames::Vllm));
    options = serve.allow_origin.iter().fold(options, ServeOptions::allow_origin);
    serve.allow_host.iter().fold(options, ServeOptions::allow_host)
}

/// The keys of the file and of the environment.
fn api_keys(serve: &ServeSettings) -> Result<ApiKeys, CliError> {
    let file = serve.api_keys.as_deref().map(input::file).transpose()?;
    let variable = match env::var(KEYS) {
        Ok(keys) => Some(keys),
        Err(env::VarError::NotPresent) => None,
        Err(error) => return Err(CliError::Usage(format!("{KEYS}: {error}"))),
    };
    let texts = [("--api-keys", file), (KEYS, variable)];
    let mut all = String::new();
    for (name, text) in texts {
        let Some(text) = text else { continue };
        let keys = ApiKeys::parse(&text);
        keys.map_err(|error| CliError::Usage(format!("{name}: {error}")))?;
        all = all + &text + "\n";
    }
    if serve.isolate_keys && all.is_empty() {
        let message = format!("--isolate-keys needs keys, expected --api-keys or {KEYS}");
        return Err(CliError::Usage(message));
    }
    Ok(ApiKeys::parse(&all).unwrap_or_default())
}

fn runtime() -> Result<Runtime, CliError> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let failed = |source: io::Error| CliError::Listen { address: "any address".into(), source };
    runtime.map_err(failed)
}
