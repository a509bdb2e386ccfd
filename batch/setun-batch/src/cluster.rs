//! The processes of a cluster: `setun batch scheduler` and `setun batch executor`.

use std::{
    env, fs,
    net::SocketAddr,
    path::PathBuf,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args as ClapArgs;
use setun_cli::{CliError, EngineArgs, interrupt, output::report};
use setun_sql::{Cluster, Executor, Scheduler, Tls};
use tokio::sync::oneshot;

use crate::{
    answers::model,
    queries::{failed, runtime},
};

/// Options that the executors of a cluster have, each for itself.
const OF_EXECUTORS: [&str; 10] = [
    "model",
    "verify",
    "draft",
    "backend",
    "threads",
    "kv",
    "head",
    "activation_group",
    "weight_image",
    "config",
];

/// The cluster of a job.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// Scheduler of a cluster whose executors run the rows, as HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = OF_EXECUTORS)]
    pub(crate) cluster: Option<String>,

    /// Setting of the query engine or its cluster, such as `ballista.client.use_tls=true`; can be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "cluster", value_parser = setting)]
    cluster_setting: Vec<(String, String)>,

    #[command(flatten)]
    tls: TlsArgs,
}

/// Files in PEM of mutual TLS.
#[derive(Debug, ClapArgs)]
struct TlsArgs {
    /// Authority that signs the certificates of the cluster
    #[arg(long = "tls-ca", value_name = "FILE", requires_all = ["certificate", "private_key"])]
    authority: Option<PathBuf>,

    /// Certificate of this process
    #[arg(long = "tls-cert", value_name = "FILE", requires = "authority")]
    certificate: Option<PathBuf>,

    /// Key of the certificate
    #[arg(long = "tls-key", value_name = "FILE", requires = "authority")]
    private_key: Option<PathBuf>,
}

/// Give the rows of jobs to executors
///
/// Its state is in memory: a job that runs is tried again by `setun batch run`. It serves `/healthz`,
/// `/readyz` and `/api/metrics` at its address. Whoever reaches it may run queries on its executors:
/// keep it in a private network, or use TLS.
#[derive(Debug, ClapArgs)]
pub(crate) struct SchedulerArgs {
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50050")]
    listen: SocketAddr,

    /// Seconds after which an executor that is not heard of is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(10..))]
    executor_timeout: u64,

    #[command(flatten)]
    tls: TlsArgs,
}

/// Run rows of jobs with a model
///
/// It takes work from the scheduler when its model is loaded. At a signal it ends; others take its rows.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExecutorArgs {
    /// Scheduler, as HOST:PORT
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50050")]
    scheduler: String,

    /// Address at which the scheduler fetches results; at port 0 the system chooses one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:50051")]
    listen: SocketAddr,

    /// Name or address of this machine for the scheduler; needed with TLS [default: the one it sees]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// Tasks at once: the rows of one fill the places that another leaves
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: u16,

    /// Address at which /healthz, /readyz and /metrics are served [default: none]
    #[arg(long, value_name = "ADDRESS")]
    probes: Option<SocketAddr>,

    /// Folder for results until they are fetched [default: one of its own in the system's]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    #[command(flatten)]
    tls: TlsArgs,

    #[command(flatten)]
    engine: EngineArgs,
}

impl ClusterArgs {
    /// The cluster, if one is named.
    pub(crate) fn cluster(&self) -> Result<Option<Cluster>, CliError> {
        let Some(address) = &self.cluster else {
            let wrong = || CliError::Usage("--tls-ca: expected --cluster beside it".into());
            return if self.tls.authority.is_some() { Err(wrong()) } else { Ok(None) };
        };
        let cluster = Cluster::new(address, self.tls.tls()?);
        let settings = self.cluster_setting.iter();
        Ok(Some(settings.fold(cluster, |cluster, (name, value)| cluster.setting(name, value))))
    }
}

impl TlsArgs {
    fn tls(&self) -> Result<Option<Tls>, CliError> {
        let (Some(authority), Some(certificate), Some(key)) =
            (&self.authority, &self.certificate, &self.private_key)
        else {
            return Ok(None);
        };
        Tls::read(authority, certificate, key).map(Some).map_err(failed)
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `setun batch scheduler`.
pub(crate) fn schedule(args: SchedulerArgs) -> Result<(), CliError> {
    let SchedulerArgs { listen, executor_timeout, tls } = args;
    let scheduler = Scheduler { listen, executor_timeout, tls: tls.tls()? };
    let ready = |address| report(&format!("scheduler at {address}\n"));
    runtime()?.block_on(scheduler.run(ready)).map_err(failed)
}

/// `setun batch executor`.
pub(crate) fn execute(args: ExecutorArgs) -> Result<(), CliError> {
    args.engine.check()?;
    let own = args.folder.is_none();
    let folder = match args.folder {
        Some(folder) => fs::create_dir_all(&folder)
            .map_err(|source| CliError::Write { path: folder.clone(), source })
            .map(|()| folder)?,
        None => own_folder()?,
    };
    let executor = Executor {
        scheduler: args.scheduler,
        listen: args.listen,
        advertise: args.advertise,
        slots: usize::from(args.slots),
        probes: args.probes,
        folder: folder.clone(),
        tls: args.tls.tls()?,
    };
    let model = model(args.engine);
    let (stop, stopped) = oneshot::channel();
    let _guard = interrupt::on_signal(move || _ = stop.send(()));
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = executor.run(&model) => ended.map_err(failed),
            _ = stopped => Err(interrupt::interrupted()),
        }
    });
    runtime.shutdown_background(); // tasks that run are others'
    if own {
        // What a killed process leaves, the system's cleaning takes.
        _ = fs::remove_dir_all(&folder);
    }
    ended
}

/// A new folder, which on Unix nobody else can enter: prompts and texts lie in it.
fn own_folder() -> Result<PathBuf, CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("setun-executor-{}-{:x}", process::id(), now.as_nanos());
    let path = env::temp_dir().join(name);
    let builder = fs::DirBuilder::new();
    #[cfg(unix)]
    let builder = {
        let mut builder = builder;
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
    };
    builder.create(&path).map_err(|source| CliError::Write { path: path.clone(), source })?;
    Ok(path)
}
