//! `setun serve`: an HTTP server with the `OpenAI` API.

use std::{
    env, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{ValueEnum, builder::NonEmptyStringValueParser};
use setun_serve::{ApiKeys, Lifecycle, ServeOptions, router, serve};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{
    args::EngineArgs,
    error::CliError,
    input, interrupt,
    logging::LogFormat,
    output::{counted, report},
};

/// The environment variable with keys of clients, one a line.
const KEYS: &str = "SETUN_API_KEYS";

/// Threads that serve connections; those of the engine compute.
const THREADS: usize = 2;

/// Largest body that can be allowed, in bytes.
const MAX_BODY_BYTES: u64 = 1 << 30;

/// Serve the model over HTTP, with the API of `OpenAI` (docs/serving.md)
///
/// SIGTERM and Ctrl-C let requests under way end; a second signal ends them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    engine: EngineArgs,

    /// Address to listen at
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Port to listen at; 0 is a free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,

    /// Another name that requests may have for the model; repeatable
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    alias: Vec<String>,

    /// File with keys of clients, one a line; the variable `SETUN_API_KEYS` has more. A request needs
    /// one of them if there are any
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,

    /// Origin whose pages may send requests, such as `https://example.org`, or `*`; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = NonEmptyStringValueParser::new())]
    allow_origin: Vec<String>,

    /// Name that requests may have for this host beside those of the loopback; repeatable
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    allow_host: Vec<String>,

    /// Largest body of a request, in bytes [default: 8388608]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_BODY_BYTES))]
    max_body_bytes: Option<u64>,

    /// Names of the metrics at `/metrics`
    #[arg(long, value_name = "NAMES", value_enum, default_value_t)]
    metrics_compat: MetricNames,

    /// How the log is written that `RUST_LOG` asks for, such as `setun_serve=info`
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,

    /// Seconds in which requests under way may end after a signal
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace_time: u32,
}

/// Prefixes of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum MetricNames {
    /// `setun_`
    #[default]
    Setun,
    /// `vllm:` for metrics that vLLM has too, for its dashboards
    Vllm,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let keys = args.api_keys()?;
    let runtime = runtime()?;
    // Before the work of loading: a port that is taken is no use.
    let (listener, address) = args.listen(&runtime)?;
    let engine = args.engine.engine(None)?;
    let lifecycle = Lifecycle::new();
    let options = args.options(address, keys).lifecycle(lifecycle.clone());
    let router = router(engine.clone(), options);
    report(&format!("serving {} at http://{address}\n", engine.model_name()));
    let _guard = interrupt::on_signal({
        let lifecycle = lifecycle.clone();
        move || {
            report(&format!("ending: {} under way\n", counted(lifecycle.requests(), "request")));
            lifecycle.drain();
        }
    });
    let grace = Duration::from_secs(args.grace_time.into());
    let ended = runtime.block_on(serve(listener, router, lifecycle, grace));
    runtime.shutdown_background(); // which drops what has not ended
    match ended {
        Ok(true) => engine.close(),
        Ok(false) => report("the grace time is over: requests were cut off\n"),
        Err(source) => return Err(CliError::Listen { address: address.to_string(), source }),
    }
    Ok(())
}

impl Args {
    /// The keys of the file and of the environment.
    fn api_keys(&self) -> Result<Option<ApiKeys>, CliError> {
        let file = self.api_keys.as_deref().map(input::file).transpose()?;
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
        Ok(ApiKeys::parse(&all).ok())
    }

    fn listen(&self, runtime: &Runtime) -> Result<(TcpListener, SocketAddr), CliError> {
        let address = SocketAddr::new(self.host, self.port);
        let failed = |source| CliError::Listen { address: address.to_string(), source };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok((listener, bound))
    }

    fn options(&self, address: SocketAddr, keys: Option<ApiKeys>) -> ServeOptions {
        let mut options = ServeOptions::new().bound_to(address);
        if let Some(keys) = keys {
            options = options.api_keys(keys);
        }
        if let Some(bytes) = self.max_body_bytes {
            options = options.max_body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        options = options.vllm_metrics(self.metrics_compat == MetricNames::Vllm);
        options = self.alias.iter().fold(options, ServeOptions::alias);
        options = self.allow_origin.iter().fold(options, ServeOptions::allow_origin);
        self.allow_host.iter().fold(options, ServeOptions::allow_host)
    }
}

fn runtime() -> Result<Runtime, CliError> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let failed = |source: io::Error| CliError::Listen { address: "any address".into(), source };
    runtime.map_err(failed)
}
