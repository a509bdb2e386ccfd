//! All that an engine can be told, in one value.

#[cfg(all(feature = "config", not(target_family = "wasm")))]
mod toml_file;

#[cfg(all(feature = "config", not(target_family = "wasm")))]
pub use toml_file::read_toml;

use setun_engine::{EngineOptions, GenerateOptions, HeadType};
use setun_text::{OptionError, OptionSpec, OptionValue, option_table};

use crate::{
    device::{ActivationGroup, CacheType, Device, DeviceOptions},
    error::Error,
};

/// Calls `callback! { more… rows… }` with a row, as [`option_table!`] has them, for each option of
/// a model's device and memory.
macro_rules! device_options {
    ($callback:ident! { $($more:tt)* }) => { $callback! { $($more)*
        /// Devices and CPU instruction sets, as `setun devices` lists them. The first that holds
        /// the model is taken; those that the build or the machine lacks are passed over.
        backends: Vec<Device> as Names("a list of devices and levels, as `setun devices` lists them")
            = "auto", "BACKEND", Device, with_flags("--backend"), with_key("backend");

        /// Number of CPU threads.
        ///
        /// In JavaScript at most 64.
        threads: Option<usize> as integer(1, 1024) = "chosen for the processor", "N", Device;

        /// The share of main memory that weights and KV cache may take; the cache has fewer
        /// contexts for it. Linux, CPU only.
        memory_fraction: Option<f64> as FRACTION = "no limit", "SHARE", Device,
            without_flag, without_key;

        /// Element type of the KV cache.
        cache_type: CacheType as Choice(CacheType::NAMES) = "f16", "TYPE", Memory,
            with_flags("--kv"), without_key;

        /// Representation of the output head in memory.
        ///
        /// `stored` is the table as the model has it. `screened` has 7 bits of each element beside
        /// it, so that a step reads less of it; every text is the same. `int8` is the rounded table
        /// alone, with slightly other logits. `auto` is `screened` where that pays; in JavaScript
        /// `stored` where WebAssembly has no room for the screen.
        head_type: HeadType as Choice(HeadType::NAMES) = "auto", "TYPE", Memory,
            with_flags("--head");

        /// Columns of activations that share a scale: fewer are nearer to float activations, and
        /// slower.
        ///
        /// `row` is one scale for all columns, as `BitNet` is trained. With another value a model with
        /// relu² passes over no zeros, and one that adds biases before its scales is refused. Logits
        /// depend on it, so an engine with another value computes the cache of a saved session again.
        /// A draft model has its own.
        activation_group: Option<ActivationGroup> as Choice(ActivationGroup::NAMES)
            = "the model's", "COLUMNS", Memory;

        /// A file that holds the weights as a processor keeps them: written where there is none for
        /// this model and these options, else mapped instead of reading the model. The model's own
        /// `.setun` file, if that ends with such an image, is mapped and never written. Processes
        /// that map it share its memory. Nobody else may write to it.
        weight_image: Option<String> as Text = "none", "FILE", Memory, without_key;

        /// The share of main memory, or of a control group's, under which memory is given back.
        /// Asked once a second. Linux.
        min_available: Option<f64> as PROPER_FRACTION = "none", "SHARE", Memory,
            without_flag, without_key;

        /// Bytes of a model's files that are read ahead, on a thread; for files that are slow to
        /// read.
        prefetch_bytes: usize as integer(0, 1 << 30) = 0, "BYTES", Memory,
            without_flag, without_key;
    } };
}

pub(crate) use device_options;

device_options!(option_table! {
    /// Where a model runs, and how it is kept in memory.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct DeviceConfig;
});

/// How an engine is to run, but for its model; for [`EngineBuilder::config`].
///
/// Its TOML has the tables and keys of `docs/configuration.md`; what is left out has its default,
/// and what is not known is refused.
///
/// [`EngineBuilder::config`]: crate::EngineBuilder::config
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineConfig {
    /// Limits, streams and monitoring.
    pub engine: EngineOptions,
    /// Where the model runs, and how it is kept.
    pub device: DeviceConfig,
    /// Default options of generations.
    pub generation: GenerateOptions,
}

impl EngineConfig {
    /// All options of an engine and its device, with what every surface says of them.
    pub fn specs() -> impl Iterator<Item = &'static OptionSpec> {
        EngineOptions::SPECS.iter().chain(DeviceConfig::SPECS)
    }

    /// Sets an option of the engine or its device by its name.
    ///
    /// # Errors
    ///
    /// If there is none of this name, or it does not take the value.
    pub fn set(&mut self, name: &str, value: &OptionValue) -> Result<(), OptionError> {
        if EngineOptions::NAMES.contains(&name) {
            return self.engine.set(name, value);
        }
        self.device.set(name, value)
    }

    /// The options of the first device, or of the best one if none is named.
    #[must_use]
    pub fn device_options(&self) -> DeviceOptions {
        let DeviceConfig { backends, threads, weight_image, .. } = &self.device;
        let DeviceConfig { cache_type, head_type, activation_group, .. } = self.device;
        DeviceOptions {
            device: backends.first().cloned().unwrap_or_default(),
            threads: *threads,
            cache: cache_type,
            head: head_type,
            activation_group,
            software: false,
            weight_image: weight_image.clone(),
        }
    }

    /// Checks every value.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.engine.check_values()?;
        self.device.check_values()?;
        Ok(self.generation.check()?)
    }
}

#[cfg(all(test, feature = "config"))]
mod tests;
