//! Models of a server, and how each is opened.

use std::{collections::BTreeSet, fs, path::Path};

use setun::{
    Engine, EngineConfig,
    checkpoint::Options,
    hub::{CatalogEntry, DamagedModel, catalog},
    locate,
};
use setun_serve::{KeepAlive, LoadProgress, ModelSpec, OpenError, OpenModel};

use super::{
    Args,
    settings::{ModelTable, ServeSettings},
};
use crate::{
    args::start,
    error::CliError,
    output::report,
    source::{ModelFiles, store, verify_stored},
};

/// Opens a model as the settings say.
struct Opener {
    /// The embedded model without one.
    model: Option<String>,
    draft: Option<String>,
    options: Options,
    is_verified: bool,
    config: EngineConfig,
}

/// The models of the command line and of a configuration, and how many of them are loaded at the
/// start beside those that are pinned.
pub(super) fn specs(
    args: &Args,
    serve: &ServeSettings,
) -> Result<(Vec<ModelSpec>, usize), CliError> {
    let (folder, has_store) = (serve.models.as_deref(), serve.store);
    let mut config = args.settings.engine_config(None)?;
    config.engine.operation_times = true; // a metric
    config.generation.queue_timeout = serve.queue_timeout.or(config.generation.queue_timeout);
    let opener = |model: Option<&str>, draft: Option<&str>| Opener {
        model: model.map(str::to_owned),
        draft: draft.map(str::to_owned),
        options: Options::default(),
        is_verified: false,
        config: config.clone(),
    };
    // What is said of files, and of hashes, is of those that are named beside it.
    let (options, is_verified) = (args.file.into(), args.verify);
    let draft = args.settings.draft.as_deref();
    let mut specs = vec![];
    for model in &args.model {
        let opener = Opener { options, is_verified, ..opener(Some(model), draft) };
        specs.push(opener.spec(None)?);
    }
    for table in &serve.tables {
        specs.push(of_table(table, opener(Some(&table.model), table.draft.as_deref()))?);
    }
    let first = specs.len().min(1);
    let mut found = vec![];
    for model in folder.map(in_folder).transpose()?.unwrap_or_default() {
        found.push(opener(Some(&model), None).spec(None)?);
    }
    if has_store {
        let names = specs.iter().chain(&found).map(|spec| spec.name().to_owned());
        let aliases = serve.tables.iter().flat_map(|table| &table.aliases).chain(&args.alias);
        found.extend(of_store(&opener, &names.chain(aliases.cloned()).collect())?);
    }
    for spec in found {
        // One that has settings of its own comes before.
        if specs.iter().all(|known| known.name() != spec.name()) {
            specs.push(spec);
        }
    }
    if !has_store && specs.is_empty() && folder.is_none() {
        return Ok((vec![opener(None, draft).spec(None)?], 1));
    }
    if specs.is_empty() {
        let message = "there is no model in the folder or the store, expected one or more";
        return Err(CliError::Usage(message.to_owned()));
    }
    if config.device.weight_image.is_some() && specs.len() != 1 {
        let message =
            format!("--weight-image (`weight_image`): expected one model, found {}", specs.len());
        return Err(CliError::Usage(message));
    }
    if draft.is_some() && args.model.len() != 1 {
        let message = "--draft needs one --model, expected `draft` in a table [[serve.models]]";
        return Err(CliError::Usage(message.to_owned()));
    }
    add_catalog_names(&mut specs, &args.alias);
    Ok((specs, first))
}

/// Makes a model of the catalog answer to its short name and to its repository's, as the command does,
/// unless another model has that name.
fn add_catalog_names(specs: &mut [ModelSpec], aliases: &[String]) {
    let names = specs.iter().flat_map(ModelSpec::names).chain(aliases);
    let mut taken: BTreeSet<String> = names.cloned().collect();
    for spec in specs {
        let name = spec.name().strip_prefix("hf:").unwrap_or(spec.name()).to_owned();
        for CatalogEntry { name: short, repository, .. } in catalog() {
            if name != *short && name != *repository {
                continue;
            }
            for other in [short, repository] {
                if taken.insert(other.clone()) {
                    *spec = spec.clone().alias(other);
                }
            }
        }
    }
}

fn of_table(table: &ModelTable, opener: Opener) -> Result<ModelSpec, CliError> {
    let mut spec = opener.spec(table.name.clone())?.pinned(table.pinned);
    spec = table.aliases.iter().fold(spec, ModelSpec::alias);
    Ok(match table.keep_alive {
        Some(time) => spec.keep_alive(KeepAlive::For(time)),
        None => spec,
    })
}

/// Paths of the models in a folder, in the order of their names. What is no model is passed over.
fn in_folder(folder: &Path) -> Result<Vec<String>, CliError> {
    let failed = |source| setun::Error::Io { path: folder.to_owned(), source };
    let mut models = vec![];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if locate(&path).is_ok() {
            models.push(path.to_string_lossy().into_owned());
        }
    }
    models.sort();
    Ok(models)
}

/// The pulled models, by their names and those aliases that no other model has. Damaged ones are
/// reported and left out.
fn of_store(
    opener: &impl Fn(Option<&str>, Option<&str>) -> Opener,
    taken: &BTreeSet<String>,
) -> Result<Vec<ModelSpec>, CliError> {
    let store = store();
    let aliases = store.aliases()?;
    let survey = store.survey()?;
    for DamagedModel { path, reason, .. } in &survey.damaged {
        report(&format!("warning: `{}` is damaged: {reason}\n", path.display()));
    }
    let mut specs: Vec<ModelSpec> = vec![];
    for stored in survey.models {
        // As it is named where its hub is the usual one.
        let short = format!("{}/{}", stored.id.owner, stored.id.name);
        let is_usual = store.get(&short).is_ok_and(|found| found.id == stored.id);
        let name = if is_usual { short } else { stored.id.to_string() };
        if specs.iter().any(|spec| spec.name() == name) || store.get(&name).is_err() {
            continue; // another revision of it, or an older one of a damaged model
        }
        let targets = [&name, &stored.id.to_string(), &stored.manifest.source];
        let is_own = |(alias, target): &(&String, &String)| {
            let target = target.strip_prefix("hf:").unwrap_or(target);
            targets.iter().any(|known| *known == target) && !taken.contains(*alias)
        };
        let spec = opener(Some(&name), None).spec(Some(name.clone()))?;
        let own = aliases.iter().filter(is_own);
        specs.push(own.fold(spec, |spec, (alias, _)| spec.alias(alias)));
    }
    Ok(specs)
}

impl Opener {
    /// The model by a name, or by that of its file. It must be there; it is not read.
    fn spec(self, name: Option<String>) -> Result<ModelSpec, CliError> {
        let name = match name {
            Some(name) => name,
            None => self.files()?.name().to_owned(),
        };
        let Self { model, draft, options, is_verified, config } = &self;
        let identity = format!("{model:?} {draft:?} {options:?} {is_verified} {config:?}");
        Ok(ModelSpec::new(name, self).identity(identity))
    }

    fn files(&self) -> Result<ModelFiles, CliError> {
        ModelFiles::find(self.model.as_deref(), self.options)
    }

    fn draft_files(&self) -> Option<Result<ModelFiles, CliError>> {
        self.draft.as_deref().map(|draft| ModelFiles::find_any(Some(draft), self.options))
    }

    /// Most bytes that a model takes: its weights, and KV cache and recurrent states as far as they may grow.
    fn bytes(&self, files: ModelFiles) -> Result<u64, CliError> {
        let estimate = files.header()?.estimate(self.config.device_options())?;
        let engine = &self.config.engine;
        let context = estimate.context.max(1);
        let shorter = engine.context_length.map_or(context, |length| context.min(length as u64));
        let cache = estimate.cache.saturating_mul(shorter) / context;
        let caches = cache.saturating_add(estimate.state).saturating_mul(engine.contexts as u64);
        let used = caches.saturating_add(estimate.steps).max(estimate.largest_weight);
        Ok(estimate.weights.saturating_add(used))
    }
}

impl OpenModel for Opener {
    fn memory_bytes(&self) -> Result<u64, OpenError> {
        let bytes = self.bytes(self.files()?)?;
        match self.draft_files() {
            Some(draft) => Ok(bytes.saturating_add(self.bytes(draft?)?)),
            None => Ok(bytes),
        }
    }

    fn open(&self, progress: &LoadProgress) -> Result<Engine, OpenError> {
        if self.is_verified {
            let both = [self.model.as_deref(), self.draft.as_deref()];
            both.into_iter().flatten().try_for_each(verify_stored)?;
        }
        let progress = progress.clone();
        let files = self.files()?.reporting(move |read, total| progress.set(read, total));
        let builder = Engine::builder(files.open()?).config(self.config.clone());
        let engine = match self.draft_files() {
            Some(draft) => start(builder.draft(draft?.open()?))?,
            None => start(builder)?,
        };
        Ok(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_the_catalog_answer_to_both_names() {
        let spec = |name: &str| ModelSpec::new(name, |_: &LoadProgress| Err("unused".into()));
        let mut specs = [
            spec("bitnet-2b-4t"),
            spec("prism-ml/Ternary-Bonsai-4B-gguf"),
            spec("stories"),
            spec("hf:tiiuae/Falcon-E-1B-Instruct"),
        ];
        add_catalog_names(&mut specs, &["falcon-e-1b".to_owned()]);
        let names: Vec<Vec<_>> = specs.iter().map(|spec| spec.names().collect()).collect();
        let expected: [&[&str]; 4] = [
            &["bitnet-2b-4t", "microsoft/bitnet-b1.58-2B-4T"],
            &["prism-ml/Ternary-Bonsai-4B-gguf", "ternary-bonsai-4b"],
            &["stories"],
            &["hf:tiiuae/Falcon-E-1B-Instruct", "tiiuae/Falcon-E-1B-Instruct"],
        ];
        assert_eq!(names, expected);
    }
}
