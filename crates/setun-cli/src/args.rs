//! Arguments shared by several commands.

mod beams;
mod constraint;
mod context;
mod engine;
mod filter;
mod messages;
mod options;
mod template;
mod texts;
mod tools;

use clap::{Args, ValueEnum};
use setun::{
    ActivationGroup, CacheType, Device, DeviceOptions, Engine, EngineBuilder, EngineConfig,
    GenerateOptions, HeadType, ModelInput,
    checkpoint::{I2sBlocks, Options, Pretokenizer},
};

pub(crate) use beams::BeamArgs;
use constraint::ConstraintArgs;
use context::ContextOverflow;
pub use engine::EngineArgs;
#[cfg(feature = "serve")]
pub(crate) use engine::EngineSettings;
use filter::ContentFilterArgs;
pub(crate) use messages::MessageArgs;
use options::OptionArgs;
pub(crate) use options::{help, value};
pub(crate) use template::TemplateArgs;
pub(crate) use texts::{PromptArgs, ReaderArgs, with_lines};
pub(crate) use tools::ToolArgs;

use crate::{
    error::CliError,
    output::report,
    source::{ModelFiles, no_gguf_file, verify_stored},
};

/// The device, where none is named.
const AUTO: &str = "auto";

/// What every command takes that generates text, in a conversation or after one prompt.
#[derive(Args, Debug)]
pub(crate) struct GenerateArgs<const CHAT: bool> {
    #[command(flatten)]
    options: OptionArgs<CHAT>,
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    filter: ContentFilterArgs,
    #[command(flatten)]
    engine: EngineArgs,

    /// What to do when the prompt or the text exceeds the context length
    #[arg(long, value_enum, value_name = "STRATEGY", default_value_t = ContextOverflow::Stop)]
    context_overflow: ContextOverflow,
}

/// Which model.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// A file (.safetensors, .gguf, .onnx, .setun), a folder in Hugging Face's layout, or the name of a
    /// pulled model [default: the embedded model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Compare the files of a pulled model, and of a draft model, with their hashes before they are
    /// loaded
    #[arg(long, requires = "model")]
    verify: bool,

    #[command(flatten)]
    file: FileArgs,
}

impl ModelArgs {
    /// The model's files.
    pub(crate) fn files(&self) -> Result<ModelFiles, CliError> {
        if let Some(model) = &self.model {
            self.check_hashes(model)?;
        }
        ModelFiles::find(self.model.as_deref(), self.file.into())
    }

    /// Refuses what is said of a file where another model is named, by this name.
    pub(crate) fn check_no_file(&self, other: &str) -> Result<(), CliError> {
        self.file.check_absent(other)
    }

    /// The files of another model, of which the same is known if it is a GGUF file.
    pub(crate) fn files_of(&self, other: &str) -> Result<ModelFiles, CliError> {
        self.check_hashes(other)?;
        ModelFiles::find_any(Some(other), self.file.into())
    }

    fn check_hashes(&self, model: &str) -> Result<(), CliError> {
        if self.verify { verify_stored(model) } else { Ok(()) }
    }
}

/// What a file does not say of itself.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FileArgs {
    /// Interleaving of a GGUF file's `I2_S` blocks: 64 for files that an ARM build wrote
    #[arg(long, value_enum, value_name = "N", default_value_t = Interleave::Wide)]
    i2s_interleave: Interleave,

    /// How a GGUF file's byte-level tokenizer splits text, as tokenizer.ggml.pre names it, for a
    /// file that does not say so
    #[arg(long, value_name = "NAME")]
    pre: Option<Pretokenizer>,
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

impl FileArgs {
    /// Refuses what is said of a file where there is none.
    pub(crate) fn check_absent(self, model: &str) -> Result<(), CliError> {
        match Options::from(self) {
            options if options == Options::default() => Ok(()),
            options => Err(no_gguf_file(options, model)),
        }
    }
}

impl From<FileArgs> for Options {
    fn from(args: FileArgs) -> Self {
        let i2s = match args.i2s_interleave {
            Interleave::Wide => I2sBlocks::Wide,
            Interleave::Narrow => I2sBlocks::Narrow,
        };
        Self { i2s, pretokenizer: args.pre }
    }
}

/// Where to run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = None::<&'static str>)] // not that of what comes before
pub(crate) struct DeviceArgs {
    /// Device or CPU instruction set, as listed by `setun devices` [default: auto]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,

    #[arg(long, value_name = "N", help = help("threads"), value_parser = value::<usize>("threads"))]
    pub(crate) threads: Option<usize>,
}

/// How a model is kept in memory.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MemoryArgs {
    #[arg(long, value_name = "TYPE", help = help("cache_type"), value_parser = value::<CacheType>("cache_type"))]
    pub(crate) kv: Option<CacheType>,

    #[arg(long, value_name = "TYPE", help = help("head_type"), value_parser = value::<HeadType>("head_type"))]
    pub(crate) head: Option<HeadType>,

    #[command(flatten)]
    pub(crate) activations: ActivationArgs,

    #[arg(long, value_name = "FILE", help = help("weight_image"))]
    pub(crate) weight_image: Option<String>,
}

/// How activations are quantized.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ActivationArgs {
    #[arg(long, value_name = "COLUMNS", help = help("activation_group"))]
    #[arg(value_parser = value::<ActivationGroup>("activation_group"))]
    activation_group: Option<ActivationGroup>,
}

impl ActivationArgs {
    pub(crate) fn is_given(self) -> bool {
        self.activation_group.is_some()
    }
}

impl<const CHAT: bool> GenerateArgs<CHAT> {
    /// Loads the model and starts an engine for this number of concurrent texts.
    pub(crate) fn engine(&self, texts: usize) -> Result<Engine, CliError> {
        self.engine.check()?; // before the work of loading
        self.filter.filter()?;
        self.engine.engine(texts)
    }

    /// How to generate, as the engine takes it.
    ///
    /// # Errors
    ///
    /// If the constraint cannot be compiled, or a pattern of the filter is not valid.
    pub(crate) fn options(&self, engine: &Engine) -> Result<GenerateOptions, CliError> {
        let mut options = self.options.options();
        options.constraint = self.constraint.constraint(engine, options.timeout)?;
        options.filter = self.filter.filter()?;
        options.context_overflow = self.context_overflow.strategy(engine.context_length());
        Ok(options)
    }
}

impl DeviceArgs {
    /// The device, if it is here.
    pub(crate) fn device(&self) -> Result<Device, CliError> {
        let device: Device = self.backend().parse()?;
        device.check_available()?;
        Ok(device)
    }

    /// Options of loading a model onto the device without an engine, and so without an image.
    pub(crate) fn options(&self, memory: &MemoryArgs) -> Result<DeviceOptions, CliError> {
        let mut config = EngineConfig::default();
        self.apply(memory, &mut config)?;
        Ok(DeviceOptions { weight_image: None, ..config.device_options() })
    }

    /// Puts what was given in place of what a configuration says.
    fn apply(&self, memory: &MemoryArgs, config: &mut EngineConfig) -> Result<(), CliError> {
        let device = &mut config.device;
        if self.backend.is_some() {
            device.backends = vec![self.device()?];
        }
        if let (Some(_), [first, ..]) = (self.threads, &device.backends[..])
            && !has_threads(first)
        {
            return Err(CliError::Usage(format!("--threads has no effect on `{first}`")));
        }
        device.threads = self.threads.or(device.threads);
        device.cache_type = memory.kv.unwrap_or(device.cache_type);
        device.head_type = memory.head.unwrap_or(device.head_type);
        device.activation_group = memory.activations.activation_group.or(device.activation_group);
        if memory.weight_image.is_some() {
            device.weight_image.clone_from(&memory.weight_image);
        }
        Ok(())
    }

    /// The device's name.
    pub(crate) fn backend(&self) -> &str {
        self.backend.as_deref().unwrap_or(AUTO)
    }
}

/// Whether a number of threads may be chosen for a device.
fn has_threads(device: &Device) -> bool {
    match device {
        Device::Scalar | Device::Gpu(_) => false,
        Device::Each(devices) => devices.iter().any(has_threads),
        Device::Split(shares) => shares.iter().any(|(device, _)| has_threads(device)),
        _ => true,
    }
}

/// Builder of an engine with room for this number of whole contexts.
pub(crate) fn builder(
    model: impl Into<ModelInput>,
    device: &DeviceArgs,
    memory: &MemoryArgs,
    contexts: usize,
) -> Result<EngineBuilder, CliError> {
    let mut config = with_contexts(contexts);
    device.apply(memory, &mut config)?;
    Ok(Engine::builder(model.into()).config(config))
}

fn with_contexts(contexts: usize) -> EngineConfig {
    let mut config = EngineConfig::default();
    config.engine.contexts = contexts;
    config
}

/// Starts an engine. Devices that failed are reported.
pub(crate) fn start(builder: EngineBuilder) -> Result<Engine, CliError> {
    let engine = builder.build()?;
    for warning in engine.device_report().warnings() {
        report(&format!("warning: {warning}\n"));
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
