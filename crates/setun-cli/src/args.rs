//! Arguments that several commands share.

mod beams;
mod context;
mod form;
mod sampling;

use std::time::Duration;

use clap::{Args, ValueEnum};
use setun::{
    CacheType, Device, Engine, EngineBuilder, GenerateOptions, HeadType, ModelInput,
    checkpoint::{I2sBlocks, Options},
};

pub(crate) use beams::BeamArgs;
use context::WhenFull;
use form::FormArgs;
use sampling::SamplingArgs;

use crate::{error::CliError, output::tell, source::ModelSource};

/// Most threads that can be asked for.
const MAX_THREADS: i64 = 1024;

/// Most seconds that a text can be given.
const MAX_SECONDS: f32 = 1e9;

/// What every command takes that generates text.
#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    form: FormArgs,

    /// Most tokens to guess at once from the text so far: faster where it repeats itself, and the
    /// same text; 12 is a good number
    #[arg(long, value_name = "N", default_value_t = 0)]
    lookahead: u8,

    /// Names so many of the likeliest tokens in each event, with their log-probabilities
    #[arg(long, value_name = "N")]
    top_logprobs: Option<u16>,

    /// Gives the prompt first, with the log-probabilities of its tokens in its event
    #[arg(long)]
    echo: bool,

    /// What becomes of a text that fills the context, or a prompt that does not fit
    #[arg(long, value_enum, value_name = "WAY", default_value_t = WhenFull::Stop)]
    when_full: WhenFull,

    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// Ends a text with what there is of it after this time
    #[arg(long, value_name = "SECONDS", value_parser = number(0.0, MAX_SECONDS))]
    deadline: Option<f32>,
}

/// Which model.
#[derive(Args, Debug)]
struct ModelArgs {
    /// A .safetensors file, or a folder in Hugging Face's layout [default: the embedded model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    file: FileArgs,
}

/// What a file does not say of itself.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FileArgs {
    /// Weights that are interleaved in a GGUF file's `I2_S`: 64 where a build for ARM wrote it so
    #[arg(long, value_enum, value_name = "N", default_value_t = Interleave::Wide)]
    i2s_interleave: Interleave,
}

/// Weights of `I2_S` whose codes share bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Interleave {
    /// In 32 bytes, as in every published file
    #[value(name = "128")]
    Wide,
    /// In 16 bytes
    #[value(name = "64")]
    Narrow,
}

impl From<FileArgs> for Options {
    fn from(args: FileArgs) -> Self {
        let i2s = match args.i2s_interleave {
            Interleave::Wide => I2sBlocks::Wide,
            Interleave::Narrow => I2sBlocks::Narrow,
        };
        Self { i2s }
    }
}

/// Where to run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = None::<&'static str>)] // not that of what comes before
pub(crate) struct DeviceArgs {
    /// Device or CPU level, as `setun devices` lists them
    #[arg(long, value_name = "BACKEND", default_value = "auto")]
    pub(crate) backend: String,

    /// Threads [default: what suits the processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
}

/// How a model is kept in memory.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MemoryArgs {
    /// Element type of the KV cache
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    pub(crate) kv: Kv,

    /// How the output head is kept [default: screened where that pays, else stored]
    #[arg(long, value_enum)]
    pub(crate) head: Option<Head>,
}

/// Element types of the KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kv {
    /// As computed
    F32,
    /// Half the memory
    F16,
    /// A quarter of the memory
    Int8,
}

/// Ways to keep the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Head {
    /// As the checkpoint stores it
    Stored,
    /// With 7 bits of each element beside it: less to read, the same choices
    Screened,
    /// Rounded to int8 rows: less to read, slightly other logits
    Int8,
}

impl GenerateArgs {
    /// Loads the model and starts an engine for so many texts at once.
    pub(crate) fn engine(&self, texts: usize) -> Result<Engine, CliError> {
        self.device.device()?; // before the work of loading
        let model =
            ModelSource::find(self.model.model.as_deref(), self.model.file.into())?.open()?;
        start(builder(model, &self.device, self.memory, texts)?.streams(texts))
    }

    /// How to generate, as the engine takes it.
    ///
    /// # Errors
    ///
    /// If the form of the text cannot be followed.
    pub(crate) fn options(&self, engine: &Engine) -> Result<GenerateOptions, CliError> {
        let mut options = self.sampling.options();
        options.form = self.form.form(engine)?;
        options.lookahead = usize::from(self.lookahead);
        options.top_logprobs = self.top_logprobs.map_or(0, usize::from);
        options.logprobs = self.top_logprobs.is_some();
        options.echo = self.echo;
        options.context = self.when_full.strategy(engine.context_length());
        options.deadline = self.deadline.map(Duration::from_secs_f32);
        Ok(options)
    }
}

impl DeviceArgs {
    /// The device, if it is here.
    pub(crate) fn device(&self) -> Result<Device, CliError> {
        Ok(self.backend.parse()?)
    }

    /// The number of threads, if one was given.
    pub(crate) fn threads(&self) -> Option<usize> {
        self.threads.map(usize::from)
    }
}

/// An engine with room for so many whole contexts, to be started.
pub(crate) fn builder(
    model: impl Into<ModelInput>,
    device: &DeviceArgs,
    memory: MemoryArgs,
    contexts: usize,
) -> Result<EngineBuilder, CliError> {
    let builder = Engine::builder(model)
        .device(device.device()?)
        .cache_type(memory.kv.into())
        .head_type(memory.head())
        .contexts(contexts);
    Ok(match device.threads() {
        Some(threads) => builder.threads(threads),
        None => builder,
    })
}

/// Starts an engine. Devices that failed are told of.
pub(crate) fn start(builder: EngineBuilder) -> Result<Engine, CliError> {
    let engine = builder.build()?;
    for warning in engine.device_report().warnings() {
        tell(&format!("warning: {warning}\n"));
    }
    Ok(engine)
}

/// Reads a number from `least` to `most`.
pub(crate) fn number(
    least: f32,
    most: f32,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let expected = || match (least, most) {
            (f32::MIN_POSITIVE, f32::MAX) => "a number above 0".to_owned(),
            (f32::MIN_POSITIVE, _) => format!("a number above 0, up to {most}"),
            (_, f32::MAX) => format!("a number of {least} or more"),
            _ => format!("a number from {least} to {most}"),
        };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(expected)
    }
}

impl From<Kv> for CacheType {
    fn from(kv: Kv) -> Self {
        match kv {
            Kv::F32 => Self::F32,
            Kv::F16 => Self::F16,
            Kv::Int8 => Self::Int8,
        }
    }
}

impl MemoryArgs {
    /// The head, as the engine takes it.
    pub(crate) fn head(self) -> HeadType {
        self.head.map_or(HeadType::Auto, HeadType::from)
    }
}

impl From<Head> for HeadType {
    fn from(head: Head) -> Self {
        match head {
            Head::Stored => Self::Stored,
            Head::Screened => Self::Screened,
            Head::Int8 => Self::Int8,
        }
    }
}
