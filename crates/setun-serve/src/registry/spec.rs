//! Models that a server may load, and how each is opened.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use setun::Engine;

/// Why a model cannot be opened.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Opens a model, on a thread that may block. Closures do, too.
pub trait OpenModel: Send + Sync {
    /// Bytes of memory that the engine may take, known before its weights are read. Default: 0.
    ///
    /// # Errors
    ///
    /// If the headers of the model cannot be read.
    fn memory_bytes(&self) -> Result<u64, OpenError> {
        Ok(0)
    }

    /// Starts the engine, and reports how much of its files has been read.
    ///
    /// # Errors
    ///
    /// If the model cannot be loaded. It is tried again by a later request.
    fn open(&self, progress: &LoadProgress) -> Result<Engine, OpenError>;
}

impl<F> OpenModel for F
where
    F: Fn(&LoadProgress) -> Result<Engine, OpenError> + Send + Sync,
{
    fn open(&self, progress: &LoadProgress) -> Result<Engine, OpenError> {
        self(progress)
    }
}

/// How much of a model has been read. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LoadProgress(Arc<[AtomicU64; 2]>);

impl LoadProgress {
    /// Sets the bytes that have been read, and those of the whole model.
    pub fn set(&self, read: u64, total: u64) {
        self.0[0].store(read, Ordering::Relaxed);
        self.0[1].store(total, Ordering::Relaxed);
    }

    /// Bytes that have been read, and those of the whole model; zeros until they are known.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed))
    }
}

/// How long a model without requests stays in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// Until its memory is needed.
    #[default]
    Unlimited,

    /// For this time, or until its memory is needed.
    For(Duration),
}

/// A model that a server may load.
#[derive(Clone)]
pub struct ModelSpec {
    pub(super) name: String,
    pub(super) aliases: Vec<String>,
    pub(super) identity: String,
    pub(super) keep_alive: Option<KeepAlive>,
    pub(super) is_pinned: bool,
    pub(super) opener: Arc<dyn OpenModel>,
}

impl ModelSpec {
    /// A model of this name, which is opened by the first request that names it.
    #[must_use]
    pub fn new(name: impl Into<String>, opener: impl OpenModel + 'static) -> Self {
        let name = name.into();
        Self {
            identity: name.clone(),
            name,
            aliases: vec![],
            keep_alive: None,
            is_pinned: false,
            opener: Arc::new(opener),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another name that requests may have for it.
    #[must_use]
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.aliases.push(name.into());
        self
    }

    /// What it is made of, such as its path and options. Where models are replaced, one of the same
    /// name and identity keeps running. Default: the name.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// How long it stays in memory without requests. Default: that of the registry.
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Whether it is never unloaded. Default: no.
    #[must_use]
    pub fn pinned(mut self, is_pinned: bool) -> Self {
        self.is_pinned = is_pinned;
        self
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases)
    }
}

impl fmt::Debug for ModelSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, aliases, keep_alive, is_pinned, .. } = self;
        let mut fields = formatter.debug_struct("ModelSpec");
        fields.field("name", name).field("aliases", aliases);
        fields.field("keep_alive", keep_alive).field("is_pinned", is_pinned).finish_non_exhaustive()
    }
}
