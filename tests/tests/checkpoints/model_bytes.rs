//! Sources of a model's bytes: opened for a pass over them, and closed after it.

use std::sync::{Arc, Mutex};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    Device, Engine, Error, ErrorCode, ModelBytes, ModelFolder, ModelReader, ModelSource,
    ReadRequest, Source,
};
use setun_tests::golden::{Golden, MODELS};

/// What was done, in order, repetitions once.
type Log = Arc<Mutex<Vec<&'static str>>>;

/// The files of a model, the weights of which may be gone.
struct Logged {
    files: ModelFolder,
    log: Log,
    has_weights: bool,
}

impl Logged {
    async fn reader(has_weights: bool) -> (Result<ModelReader, Error>, Log) {
        let log = Log::default();
        let files = ModelFolder::new(Golden::read(MODELS[0]).folder);
        let bytes = Self { files, log: Arc::clone(&log), has_weights };
        let source = ModelSource::new(Source::Folder, "logged", bytes);
        (ModelReader::new(source).await, log)
    }

    fn note(&self, what: &'static str) {
        let mut log = self.log.lock().expect("no panic");
        if log.last() != Some(&what) {
            log.push(what);
        }
    }
}

impl ModelBytes for Logged {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        self.note("read");
        if want.range.is_some() && !self.has_weights {
            let (file, reason) = (want.file.clone(), "no connection".to_owned());
            return ready(Err(Error::Unreadable { file, reason })).boxed_local();
        }
        ModelBytes::read(&mut self.files, want, bytes)
    }

    fn rewind(&mut self) {
        self.note("rewind");
    }

    fn close(&mut self) {
        self.note("close");
        ModelBytes::close(&mut self.files);
    }
}

fn taken(log: &Log) -> Vec<&'static str> {
    std::mem::take(&mut log.lock().expect("no panic"))
}

#[test]
fn they_are_closed_once_a_model_is_read() {
    let (reader, log) = Logged::reader(true).now_or_never().expect("files do not wait");
    assert_eq!(taken(&log), ["rewind", "read"]);
    let engine = Engine::builder(reader.expect("a model")).device(Device::Scalar).build();
    assert_eq!(taken(&log), ["read", "close"]);
    drop(engine.expect("an engine"));

    let (reader, log) = Logged::reader(true).now_or_never().expect("files do not wait");
    let model = reader.expect("a model").read().now_or_never().expect("files do not wait");
    assert_eq!(taken(&log), ["rewind", "read", "close"]);
    drop(model.expect("a model"));
}

#[test]
fn they_are_closed_where_they_cannot_be_read() {
    let (reader, log) = Logged::reader(false).now_or_never().expect("files do not wait");
    let error = reader.err().expect("no weights");
    assert_eq!(error.code(), ErrorCode::Network);
    assert!(error.to_string().contains("no connection"), "{error}");
    assert_eq!(taken(&log), ["rewind", "read", "close"]);
}

/// A file whose size nobody knows before its end, as in a browser.
struct Stream(Vec<u8>);

impl ModelBytes for Stream {
    fn read<'a>(
        &'a mut self,
        want: &'a ReadRequest,
        bytes: &'a mut Vec<u8>,
    ) -> LocalBoxFuture<'a, Result<bool, Error>> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let range = want.range.clone().expect("a lone file is read in ranges");
        bytes.clear();
        bytes.extend_from_slice(&self.0[at(range.start)..at(range.end)]);
        ready(Ok(true)).boxed_local()
    }
}

#[test]
fn bytes_behind_a_container_are_found_where_its_size_is_not_known() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/setun/v1.setun");
    let whole = std::fs::read(path).expect("the fixture");
    let read = |bytes: Vec<u8>| {
        let source = ModelSource::new(Source::File("v1.setun".into()), "v1", Stream(bytes));
        let reader = ModelReader::new(source).now_or_never().expect("memory does not wait")?;
        reader.read().now_or_never().expect("memory does not wait").map(|_| ())
    };
    read(whole.clone()).expect("a model");
    for more in [1, 1000] {
        let error = read([&whole[..], &vec![0; more]].concat()).expect_err("bytes behind it");
        assert_eq!(error.code(), ErrorCode::BadCheckpoint);
        let expected = whole.len();
        let words = format!("has {} bytes, expected {expected}", expected + 1);
        assert!(error.to_string().contains(&words), "{error}");
    }
}
