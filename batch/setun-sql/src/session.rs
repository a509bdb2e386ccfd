//! A session that reads files and object stores by their addresses.

use std::{collections::HashMap, env, ffi::OsString, sync::Arc};

use datafusion::{
    catalog::Session,
    common::GetExt,
    datasource::file_format::{FileFormat, FileFormatFactory, json::JsonFormatFactory},
    error::{DataFusionError, Result},
    execution::{
        object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry},
        runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
    },
    prelude::{SessionConfig, SessionContext},
};
use object_store::{ObjectStore, local::LocalFileSystem, parse_url_opts};
use url::Url;

use crate::{Settings, handle::ModelHandle, register};

/// Rows of a batch: a few times as many as an engine runs at once, and few enough for `LIMIT`.
const BATCH_ROWS: usize = 512;

/// A session with the functions of a model. Queries name files and folders in quotes, of Parquet, CSV, JSON lines or
/// Arrow, and those of object stores: `'s3://bucket/prompts/'`. Stores take their settings from the environment, as
/// `AWS_ACCESS_KEY_ID`.
///
/// # Errors
///
/// If the query engine refuses a function.
pub fn session(model: &ModelHandle, settings: Settings) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_batch_size(BATCH_ROWS).with_information_schema(true);
    config.options_mut().extensions.insert(settings);
    // Otherwise large files are cut at line breaks, inside quotes too.
    config.options_mut().catalog.newlines_in_values = true;
    let context = SessionContext::new_with_config_rt(config, runtime()?).enable_url_table();
    for end in JSON_LINES {
        context.state_ref().write().register_file_format(Arc::new(JsonLines(end)), false)?;
    }
    register(&context, model)?;
    Ok(context)
}

/// A session that reads files in the order of their rows, and has no functions of a model.
pub(crate) fn plain_session() -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().execution.listing_table_ignore_subdirectory = false;
    Ok(SessionContext::new_with_config_rt(config, runtime()?))
}

pub(crate) fn runtime() -> Result<Arc<RuntimeEnv>> {
    let stores = DefaultObjectStoreRegistry::new();
    // Folders of which all files are removed go with them.
    let files = LocalFileSystem::new().with_automatic_cleanup(true);
    let here = Url::parse("file:///").map_err(|error| DataFusionError::External(error.into()))?;
    stores.register_store(&here, Arc::new(files));
    let stores = Arc::new(Stores(stores));
    RuntimeEnvBuilder::new().with_object_store_registry(stores).build_arc()
}

/// Ends of the names of files with a JSON object a line, beside `json`.
const JSON_LINES: [&str; 2] = ["jsonl", "ndjson"];

/// The format of files whose names end so.
#[derive(Debug)]
struct JsonLines(&'static str);

impl GetExt for JsonLines {
    fn get_ext(&self) -> String {
        self.0.to_owned()
    }
}

impl FileFormatFactory for JsonLines {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        JsonFormatFactory::new().create(state, options)
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        JsonFormatFactory::new().default()
    }
}

/// The environment's settings of object stores.
fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?.to_ascii_lowercase(), value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).filter(|(name, _)| name.starts_with("aws_"))
}

/// Object stores, each opened when its address is first read.
#[derive(Debug)]
struct Stores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.0.get_store(url) {
            return Ok(store);
        }
        let store = parse_url_opts(url, environment());
        let (store, _) = store.map_err(|error| DataFusionError::ObjectStore(Box::new(error)))?;
        let store: Arc<dyn ObjectStore> = Arc::from(store);
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}
