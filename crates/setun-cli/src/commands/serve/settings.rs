//! Settings of a server: the table `[serve]` of a configuration, and options of the command line.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use clap::{ValueEnum, builder::NonEmptyStringValueParser};
use serde::{Deserialize, de};
use setun::read_toml;
use setun_serve::{FileLimits, FileStore, KeepAlive, Limits};

use crate::{error::CliError, output::report};

/// Longest time that a setting may have, in seconds.
const MAX_SECONDS: f64 = 1e9;

/// Which models are served, and what clients may do. Keys of `[serve]` have the names of the options.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServeSettings {
    /// Folder whose models can be requested by their names; loaded when they are requested
    #[arg(long, value_name = "DIR")]
    #[serde(rename = "models_folder")]
    pub(super) models: Option<PathBuf>,

    /// All pulled models can be requested by their names; loaded when they are requested
    #[arg(long)]
    pub(super) store: bool,

    /// Models by their own settings
    #[arg(skip)]
    #[serde(rename = "models")]
    pub(super) tables: Vec<ModelTable>,

    /// Memory that all loaded models may take, such as `8GiB`; those not used for the longest time are
    /// unloaded [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[serde(deserialize_with = "read_bytes")]
    pub(super) memory_budget: Option<u64>,

    /// Seconds after which a model without requests is unloaded [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[serde(deserialize_with = "read_seconds")]
    pub(super) keep_alive: Option<Duration>,

    /// File with keys of clients, one a line; the variable `SETUN_API_KEYS` has more. A request needs
    /// one of them if there are any
    #[arg(long, value_name = "FILE")]
    pub(super) api_keys: Option<PathBuf>,

    /// Origin whose pages may send requests, such as `https://example.org`, or `*`; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = NonEmptyStringValueParser::new())]
    pub(super) allow_origin: Vec<String>,

    /// Name that requests may have for this host beside those of the loopback; repeatable
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) allow_host: Vec<String>,

    /// Largest body of a request, in bytes [default: 8388608]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=super::MAX_BODY_BYTES))]
    pub(super) max_body_bytes: Option<u64>,

    /// Requests a minute of each key, or of all clients without keys [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) requests_per_minute: Option<NonZeroU32>,

    /// Requests of each key, or of all clients without keys, under way at once [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) concurrent_requests: Option<NonZeroUsize>,

    /// Texts of each key, or of all clients without keys, that run or wait at once: n of each prompt
    /// [default: three quarters of the places, where there are several keys]
    #[arg(long, value_name = "N")]
    pub(super) concurrent_texts: Option<NonZeroUsize>,

    /// Streams that are open at once [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) max_streams: Option<NonZeroUsize>,

    /// Largest number of tokens of a prompt [default: what fits the context]
    #[arg(long, value_name = "N")]
    pub(super) max_prompt_tokens: Option<NonZeroUsize>,

    /// Largest `max_tokens` of a request, and its default [default: what fits the context]
    #[arg(long, value_name = "N")]
    pub(super) max_output_tokens: Option<NonZeroUsize>,

    /// Each key has a part of the prefix cache of its own, so that nobody learns from times how the
    /// prompts of others begin
    #[arg(long)]
    pub(super) isolate_keys: bool,

    /// Seconds that a request may wait for its place in the batch, unless it says otherwise
    /// (`queue_timeout`) [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[serde(deserialize_with = "read_seconds")]
    pub(super) queue_timeout: Option<Duration>,

    /// Folder in which files and batches of OpenAI's API are kept, across restarts [default: none, and
    /// their routes are off]
    #[arg(long, value_name = "DIR")]
    pub(super) files: Option<PathBuf>,

    /// Largest file of a client, such as `200MiB` [default: 200MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[serde(deserialize_with = "read_bytes")]
    pub(super) max_file_bytes: Option<u64>,

    /// Bytes of all files of clients together [default: 10GiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[serde(deserialize_with = "read_bytes")]
    pub(super) max_files_bytes: Option<u64>,

    /// Number of all files of clients [default: 10000]
    #[arg(long, value_name = "N")]
    pub(super) max_files: Option<NonZeroUsize>,

    /// Requests of a batch [default: 50000]
    #[arg(long, value_name = "N")]
    pub(super) max_batch_requests: Option<NonZeroUsize>,

    /// Requests of batches of each key that are answered at once [default: 8]
    #[arg(long, value_name = "N")]
    pub(super) batch_concurrency: Option<NonZeroUsize>,

    /// Collector of OpenTelemetry that gets a span of each request, such as `http://127.0.0.1:4318`
    /// [default: none]
    #[arg(long, value_name = "URL")]
    pub(super) otlp_endpoint: Option<String>,

    /// Names of the metrics at `/metrics` [default: setun]
    #[arg(long, value_name = "NAMES", value_enum)]
    pub(super) metrics_compat: Option<MetricNames>,

    /// Connections that are open at once; further ones get no more than /health and /ready [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) max_connections: Option<NonZeroUsize>,

    /// Seconds in which the headers of a request must come [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[serde(deserialize_with = "read_seconds")]
    pub(super) header_timeout: Option<Duration>,

    /// Seconds without a byte after which a body is given up [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[serde(deserialize_with = "read_seconds")]
    pub(super) body_timeout: Option<Duration>,

    /// Seconds of waiting after which a client is given up that does not read its answer; every 500 bytes that
    /// it reads give one back [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[serde(deserialize_with = "read_seconds")]
    pub(super) write_timeout: Option<Duration>,
}

/// Prefixes of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum MetricNames {
    /// Names of setun, `setun_`
    #[value(help = "setun_")]
    Setun,
    /// Names of vLLM, `vllm:`, for metrics that it has too
    #[value(help = "vllm: for metrics that vLLM has too, for its dashboards")]
    Vllm,
}

/// A model by its own settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    /// As of `--model`.
    pub(super) model: String,
    /// Default: that of its file or folder.
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    pub(super) draft: Option<String>,
    #[serde(default, deserialize_with = "read_seconds")]
    pub(super) keep_alive: Option<Duration>,
    #[serde(default)]
    pub(super) pinned: bool,
}

/// The tables of a configuration, of which the server reads one.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    serve: ServeSettings,
}

impl ServeSettings {
    /// These settings, and where they say nothing those of a configuration.
    pub(super) fn with_file(&self, file: Option<&PathBuf>) -> Result<Self, CliError> {
        let Some(file) = file else { return Ok(self.clone()) };
        let File { serve } = read_toml(file)?;
        let given = self.clone();
        let list = |given: Vec<String>, other| if given.is_empty() { other } else { given };
        Ok(Self {
            models: given.models.or(serve.models),
            store: given.store || serve.store,
            tables: serve.tables,
            memory_budget: given.memory_budget.or(serve.memory_budget),
            keep_alive: given.keep_alive.or(serve.keep_alive),
            api_keys: given.api_keys.or(serve.api_keys),
            allow_origin: list(given.allow_origin, serve.allow_origin),
            allow_host: list(given.allow_host, serve.allow_host),
            max_body_bytes: given.max_body_bytes.or(serve.max_body_bytes),
            requests_per_minute: given.requests_per_minute.or(serve.requests_per_minute),
            concurrent_requests: given.concurrent_requests.or(serve.concurrent_requests),
            concurrent_texts: given.concurrent_texts.or(serve.concurrent_texts),
            max_streams: given.max_streams.or(serve.max_streams),
            max_prompt_tokens: given.max_prompt_tokens.or(serve.max_prompt_tokens),
            max_output_tokens: given.max_output_tokens.or(serve.max_output_tokens),
            isolate_keys: given.isolate_keys || serve.isolate_keys,
            queue_timeout: given.queue_timeout.or(serve.queue_timeout),
            files: given.files.or(serve.files),
            max_file_bytes: given.max_file_bytes.or(serve.max_file_bytes),
            max_files_bytes: given.max_files_bytes.or(serve.max_files_bytes),
            max_files: given.max_files.or(serve.max_files),
            max_batch_requests: given.max_batch_requests.or(serve.max_batch_requests),
            batch_concurrency: given.batch_concurrency.or(serve.batch_concurrency),
            otlp_endpoint: given.otlp_endpoint.or(serve.otlp_endpoint),
            metrics_compat: given.metrics_compat.or(serve.metrics_compat),
            max_connections: given.max_connections.or(serve.max_connections),
            header_timeout: given.header_timeout.or(serve.header_timeout),
            body_timeout: given.body_timeout.or(serve.body_timeout),
            write_timeout: given.write_timeout.or(serve.write_timeout),
        })
    }

    /// How long models stay that say nothing of it.
    pub(super) fn keep_alive(&self) -> KeepAlive {
        self.keep_alive.map_or(KeepAlive::Unlimited, KeepAlive::For)
    }

    /// The folder of files, opened for this process. Records that cannot be read are reported.
    pub(super) fn file_store(&self) -> Result<Option<FileStore>, CliError> {
        let Some(folder) = &self.files else { return Ok(None) };
        let store = FileStore::open(folder, self.file_limits());
        let store = store.map_err(|error| CliError::Usage(format!("--files: {error}")))?;
        for record in store.damaged() {
            report(&format!("warning: a damaged record is left as it is: {record}\n"));
        }
        Ok(Some(store))
    }

    fn file_limits(&self) -> FileLimits {
        let mut limits = FileLimits::default();
        limits.file_bytes = self.max_file_bytes.unwrap_or(limits.file_bytes);
        limits.total_bytes = self.max_files_bytes.unwrap_or(limits.total_bytes);
        limits.files = self.max_files.map_or(limits.files, NonZeroUsize::get);
        let requests = self.max_batch_requests.map(NonZeroUsize::get);
        limits.batch_requests = requests.unwrap_or(limits.batch_requests);
        let at_once = self.batch_concurrency.map(NonZeroUsize::get);
        limits.batch_concurrency = at_once.unwrap_or(limits.batch_concurrency);
        limits
    }

    pub(super) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.requests_per_minute = self.requests_per_minute.map(NonZeroU32::get);
        limits.concurrent_requests = self.concurrent_requests.map(NonZeroUsize::get);
        limits.concurrent_texts = self.concurrent_texts.map(NonZeroUsize::get);
        limits.streams = self.max_streams.map(NonZeroUsize::get);
        limits.prompt_tokens = self.max_prompt_tokens.map(NonZeroUsize::get);
        limits.output_tokens = self.max_output_tokens.map(NonZeroUsize::get);
        limits.connections = self.max_connections.map(NonZeroUsize::get);
        limits.header_timeout = self.header_timeout.unwrap_or(limits.header_timeout);
        limits.body_timeout = self.body_timeout.unwrap_or(limits.body_timeout);
        limits.write_timeout = self.write_timeout.unwrap_or(limits.write_timeout);
        limits
    }
}

/// Units of bytes.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("", 1),
];

/// Reads a number of bytes, which may have a unit.
fn bytes(text: &str) -> Result<u64, String> {
    let read = UNITS.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?;
        number.checked_mul(*factor)
    });
    read.filter(|bytes| *bytes > 0).ok_or_else(|| {
        format!("expected a number of bytes such as 8589934592 or 8GiB, found {text:?}")
    })
}

/// Reads a time in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let expected =
        || format!("expected a number of seconds from 0 to {MAX_SECONDS}, found {text:?}");
    seconds.map(Duration::from_secs_f64).ok_or_else(expected)
}

/// A number or a text of TOML.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Integer(u64),
    Float(f64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

fn read_bytes<'de, D: de::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    bytes(&value.to_string()).map(Some).map_err(de::Error::custom)
}

fn read_seconds<'de, D>(deserializer: D) -> Result<Option<Duration>, D::Error>
where
    D: de::Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    seconds(&value.to_string()).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_numbers_with_units() {
        assert_eq!(bytes("8GiB"), Ok(8 << 30));
        assert_eq!((bytes("1500"), bytes("3 MB")), (Ok(1500), Ok(3_000_000)));
        assert!(
            ["", "0", "GiB", "-1", "1.5GiB", "99999999999GiB"]
                .iter()
                .all(|text| bytes(text).is_err())
        );
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["", "-1", "nan", "1e10"].iter().all(|text| seconds(text).is_err()));
    }
}
