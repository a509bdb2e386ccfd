//! The model of a process: its engine, loaded once, and how many rows it has answered.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, try_join_all},
};
use setun::{Engine, GenerateOptions, options_from_json};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::spawn_blocking,
};

use crate::{error::Error, identity::Identity};

/// Loads a model; called again only if it has failed.
pub type Load =
    Box<dyn Fn() -> Result<Engine, Box<dyn std::error::Error + Send + Sync>> + Send + Sync>;

/// Answers a request, whose path and body it gets, with a status and a body.
pub type Respond = Arc<dyn Fn(String, String) -> BoxFuture<'static, (u16, String)> + Send + Sync>;

/// Makes what answers requests with an engine.
pub type MakeRespond = fn(&Engine) -> Respond;

/// The model that functions run: one engine a process, which all queries share.
#[derive(Clone)]
pub struct ModelHandle(Arc<Inner>);

struct Inner {
    load: Load,
    make_respond: Option<MakeRespond>,
    /// A load that was begun goes on, though the query that began it is cancelled.
    loading: Mutex<Option<Loading>>,
    counts: Counts,
}

type Loading = Shared<BoxFuture<'static, Result<Arc<Loaded>, Arc<str>>>>;

/// A loaded model.
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    /// Texts that may run at once, of all queries together.
    room: Semaphore,
    /// Options by their text. Grammars are in them, which take long to compile.
    options: Mutex<HashMap<String, Prepared>>,
    /// What answers requests, if this process does.
    pub(crate) respond: Option<Respond>,
    identity: OnceCell<Identity>,
}

/// Options that were read, or why they cannot be.
pub(crate) type Prepared = Result<Arc<GenerateOptions>, Arc<str>>;

#[derive(Default)]
struct Counts {
    rows: AtomicU64,
    errors: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    completion_tokens: AtomicU64,
}

/// What the functions of a model have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowCounts {
    /// Rows with a result, or with an `error`.
    pub rows: u64,
    /// Those of them with an `error`.
    pub errors: u64,
    /// Tokens of prompts and texts.
    pub prompt_tokens: u64,
    /// Those of them that the prefix cache had.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
}

/// Tokens of one row.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowTokens {
    pub(crate) prompt: usize,
    pub(crate) cached: usize,
    pub(crate) completion: usize,
}

/// A row that runs.
pub(crate) type RowFuture<'a, Row> = BoxFuture<'a, Result<(Row, RowTokens), Error>>;

/// Options that change nothing in a result, and those with which it depends on the time.
const LEFT_OUT: [&str; 6] =
    ["logprobs", "top_logprobs", "prompt_logprobs", "prompt_progress", "timeout", "queue_timeout"];

/// Options that are kept, each with its grammar.
const MAX_KEPT: usize = 256;

impl ModelHandle {
    /// A model that is loaded when a query first needs it, on a thread of its own.
    #[must_use]
    pub fn lazy(load: Load) -> Self {
        Self::answering(load, None)
    }

    /// The same; `respond` answers the requests of batch files with the engine.
    #[must_use]
    pub fn answering(load: Load, respond: impl Into<Option<MakeRespond>>) -> Self {
        let (loading, counts) = (Mutex::default(), Counts::default());
        Self(Arc::new(Inner { load, make_respond: respond.into(), loading, counts }))
    }

    /// Loads the model now, unless it is.
    ///
    /// # Errors
    ///
    /// As the loading function has them.
    pub async fn load(&self) -> Result<(), Error> {
        self.loaded().await.map(drop)
    }

    /// What the functions have done so far.
    #[must_use]
    pub fn counts(&self) -> RowCounts {
        let counts = &self.0.counts;
        let [rows, errors, prompt_tokens, cached_tokens, completion_tokens] = [
            &counts.rows,
            &counts.errors,
            &counts.prompt_tokens,
            &counts.cached_tokens,
            &counts.completion_tokens,
        ]
        .map(|count| count.load(Ordering::Relaxed));
        RowCounts { rows, errors, prompt_tokens, cached_tokens, completion_tokens }
    }

    pub(crate) async fn loaded(&self) -> Result<Arc<Loaded>, Error> {
        let loading = lock(&self.0.loading).get_or_insert_with(|| self.begin_load()).clone();
        loading.await.map_err(|reason| {
            *lock(&self.0.loading) = None; // the next query tries again
            Error::Load(reason.to_string())
        })
    }

    fn begin_load(&self) -> Loading {
        let (handle, make) = (self.clone(), self.0.make_respond);
        let loading = spawn_blocking(move || (handle.0.load)().map_err(|error| error.to_string()));
        let loaded = async move {
            let engine = loading.await.map_err(|error| error.to_string()).flatten();
            engine.map(|engine| Arc::new(Loaded::new(engine, make))).map_err(Arc::from)
        };
        loaded.boxed().shared()
    }

    /// Runs a function over rows, at once as far as there is room. The results are in order;
    /// that of a row which cannot be answered says why.
    pub(crate) async fn each_row<'a, Row: Send>(
        &'a self,
        rows: usize,
        run: impl Fn(usize) -> RowFuture<'a, Row> + Send,
    ) -> Result<Vec<Result<Row, String>>, Error> {
        self.each_row_of(rows, |_| 1, run).await
    }

    /// The same for rows of several texts; one of more than there is room for has all of it.
    pub(crate) async fn each_row_of<'a, Row: Send>(
        &'a self,
        rows: usize,
        texts: impl Fn(usize) -> usize + Send,
        run: impl Fn(usize) -> RowFuture<'a, Row> + Send,
    ) -> Result<Vec<Result<Row, String>>, Error> {
        let loaded = self.loaded().await?;
        let running = (0..rows).map(|row| self.in_room(&loaded, texts(row), run(row)));
        try_join_all(running.collect::<Vec<_>>()).await
    }

    async fn in_room<Row>(
        &self,
        loaded: &Loaded,
        texts: usize,
        row: RowFuture<'_, Row>,
    ) -> Result<Result<Row, String>, Error> {
        let texts = texts.clamp(1, loaded.engine.max_in_flight().max(1));
        let _places = loaded.room.acquire_many(u32::try_from(texts).unwrap_or(u32::MAX)).await;
        self.count(row.await)
    }

    fn count<Row>(
        &self,
        result: Result<(Row, RowTokens), Error>,
    ) -> Result<Result<Row, String>, Error> {
        let counts = &self.0.counts;
        let add = |count: &AtomicU64, more: usize| count.fetch_add(more as u64, Ordering::Relaxed);
        let result = match result {
            Ok((row, tokens)) => {
                add(&counts.prompt_tokens, tokens.prompt);
                add(&counts.cached_tokens, tokens.cached);
                add(&counts.completion_tokens, tokens.completion);
                Ok(row)
            }
            Err(Error::Row(reason)) => {
                add(&counts.errors, 1);
                Err(reason)
            }
            Err(error) => return Err(error),
        };
        add(&counts.rows, 1);
        Ok(result)
    }
}

impl From<Engine> for ModelHandle {
    fn from(engine: Engine) -> Self {
        Self::lazy(Box::new(move || Ok(engine.clone())))
    }
}

impl PartialEq for ModelHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ModelHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelHandle")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Loaded {
    fn new(engine: Engine, make: Option<MakeRespond>) -> Self {
        let room = Semaphore::new(engine.max_in_flight());
        let (respond, options) = (make.map(|make| make(&engine)), Mutex::default());
        Self { engine, room, options, respond, identity: OnceCell::new() }
    }

    pub(crate) async fn identity(&self) -> Result<&Identity, Error> {
        self.identity.get_or_try_init(|| Identity::of(&self.engine)).await
    }

    /// Refuses another model than a query is for.
    pub(crate) async fn check_is(&self, fingerprint: &str) -> Result<(), Error> {
        let found = self.identity().await?;
        if found.fingerprint == fingerprint {
            return Ok(());
        }
        let (model, found) = (found.name.clone(), found.fingerprint.clone());
        Err(Error::OtherModel { model, found, expected: fingerprint.to_owned() })
    }

    /// Options from their text, which are read and compiled once.
    pub(crate) async fn prepare(&self, text: &str) -> Result<Prepared, Error> {
        let kept = || lock(&self.options);
        if let Some(prepared) = kept().get(text) {
            return Ok(prepared.clone());
        }
        let (engine, owned) = (self.engine.clone(), text.to_owned());
        let read = spawn_blocking(move || read_options(&engine, &owned)).await;
        let prepared = match read.map_err(|error| Error::Row(error.to_string())).flatten() {
            Ok(options) => Ok(Arc::new(options)),
            Err(Error::Row(reason)) => Err(reason.into()),
            Err(error) => return Err(error),
        };
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(text.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

fn read_options(engine: &Engine, text: &str) -> Result<GenerateOptions, Error> {
    let fields = serde_json::from_str(text)
        .map_err(|error| Error::Row(format!("options: expected a JSON object: {error}")))?;
    options_from_json(engine, fields, &LEFT_OUT).map_err(|error| match error {
        setun::Error::Engine(error) => error.into(),
        error => Error::Row(error.to_string()),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
