//! Sources of an engine's models, and the way to their devices.

use setun_engine::{DeviceReport, EngineParts, Error as EngineError, Replica};

use super::devices::{Failed, load};
use crate::{
    custom_model::CustomModel,
    device::{Device, DeviceOptions, Loaded, Tester},
    error::Error,
    input::ModelInput,
};

/// A checkpoint, or a model of one's own.
pub(super) enum Source {
    Files(ModelInput),
    Own(Box<CustomModel>),
}

impl Source {
    /// Loads it onto its devices; and the options with those.
    pub(super) async fn load(
        self,
        options: DeviceOptions,
        fallbacks: Vec<Device>,
    ) -> Result<(EngineParts, DeviceOptions), Error> {
        match self {
            Self::Files(model) => {
                let (loaded, options, failed) = load(model, options, fallbacks).await?;
                Ok((parts(loaded, &options, failed)?, options))
            }
            Self::Own(own) => Ok((own.into_parts(), options)),
        }
    }
}

fn parts(
    loaded: Vec<Loaded>,
    options: &DeviceOptions,
    failed: Vec<Failed>,
) -> Result<EngineParts, Error> {
    let Some(Loaded { about, sketch, .. }) = loaded.first() else {
        let (found, expected) = ("none".into(), "a device or more".into());
        return Err(EngineError::BadOption { option: "device", found, expected }.into());
    };
    let mut report = DeviceReport::default();
    for (device, error) in failed {
        report.add_failed(device.kind_name(), device.to_string(), error.to_string());
    }
    Ok(EngineParts {
        name: about.name.clone(),
        tokenizer: about.tokenizer.clone(),
        template: about.template.clone(),
        eos_tokens: about.config.eos_tokens.clone(),
        sampling: about.defaults.clone(),
        load_seconds: about.load_seconds,
        report,
        self_tester: Some(Box::new(Tester::new(sketch.clone(), options.clone()))),
        replicas: loaded.into_iter().map(replica).collect(),
    })
}

fn replica(Loaded { placed, again, .. }: Loaded) -> Replica {
    Replica {
        model: placed.model,
        backend: placed.backend,
        level: placed.level,
        threads: placed.threads,
        head: placed.head,
        weight_bytes: placed.weight_bytes,
        report: placed.report,
        max_blocks: usize::MAX,
        reload: again.map(|again| Box::new(again) as _),
        draft: None,
    }
}
