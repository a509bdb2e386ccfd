//! Local store of models: pulls that resume, verification, lookup by name.
//!
//! ```no_run
//! use setun_hub::{ModelStore, PullOptions, StoreSettings};
//!
//! let store = ModelStore::open(StoreSettings::from_env());
//! store.pull("microsoft/bitnet-b1.58-2B-4T", &PullOptions::default(), &|event| {
//!     eprintln!("{event:?}");
//! })?;
//! println!("{}", store.resolve("microsoft/bitnet-b1.58-2B-4T")?.display());
//! # Ok::<(), setun_hub::Error>(())
//! ```
//!
//! `docs/hub.md` has the folders and files, which a browser's store shares, and what a pull
//! promises.

mod atomic_files;
pub mod catalog;
mod digest;
mod discover;
mod download;
mod error;
mod file_check;
mod file_selection;
mod http;
mod hub_source;
mod journal;
mod json;
mod layout;
mod lock;
mod lookup;
mod manifest;
mod model_name;
mod model_store;
mod options;
mod pace;
mod probe;
mod pull;
mod pull_plan;
mod retry;
mod settings;
mod small_files;
mod stored_files;
mod stored_model;
mod suggest;
mod survey;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod url;
mod url_source;

pub use catalog::{CatalogEntry, catalog};
pub use digest::Digest;
pub use discover::{DiscoveredModel, discover};
pub use error::{Error, ErrorKind};
pub use file_check::FileCheck;
pub use manifest::{FileEntry, Manifest};
pub use model_name::ModelId;
pub use model_store::ModelStore;
pub use options::{ProgressListener, PullEvent, PullOptions};
pub use settings::StoreSettings;
pub use stored_model::{DiskUsage, StoredModel};
pub use survey::{DamagedModel, Survey};
