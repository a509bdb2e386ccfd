//! The files of the input and their rows, in chunks.

mod columns;

use std::{
    collections::{HashSet, VecDeque},
    future::ready,
    path::Path,
    sync::Arc,
};

use datafusion::{
    arrow::{compute::concat_batches, datatypes::SchemaRef, record_batch::RecordBatch},
    datasource::{file_format::options::ArrowReadOptions, listing::ListingTableUrl},
    error::DataFusionError,
    execution::{SendableRecordBatchStream, context::DataFilePaths},
    prelude::{CsvReadOptions, DataFrame, JsonReadOptions, ParquetReadOptions, SessionContext},
};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path as StorePath};
use sha2::{Digest, Sha256};
use url::Url;

use super::{
    chunk::Chunk,
    job::{BatchJob, Conversation, InputFile},
    requests,
};
use crate::{error::Error, identity::digits};
use columns::check_columns;

/// The files of a job's input, in the order of their paths.
pub(super) struct Input {
    store: Arc<dyn ObjectStore>,
    files: Vec<File>,
}

struct File {
    description: InputFile,
    rows: DataFrame,
    /// As it was listed; none of requests, which were read whole.
    listed: Option<ObjectMeta>,
}

/// The formats, by the ends of names.
const FORMATS: [&str; 6] = ["parquet", "csv", "json", "jsonl", "ndjson", "arrow"];

impl Input {
    /// Lists the files, checks their columns, and reads them once for their rows and hashes.
    pub(super) async fn open(context: &SessionContext, job: &BatchJob) -> Result<Self, Error> {
        if job.chunk_rows == 0 {
            return Err(input_error(job, "a chunk has 0 rows, expected 1 or more"));
        }
        let url = ListingTableUrl::parse(&job.input)?;
        let store = context.runtime_env().object_store(url.object_store())?;
        let state = context.state();
        let listed = url.list_all_files(&state, &store, "").await?;
        let mut found: Vec<_> = listed.try_collect().await?;
        found.retain(|file| is_read(&url, &file.location));
        found.sort_by(|one, other| one.location.cmp(&other.location));
        let (mut files, mut keys) = (vec![], HashSet::new());
        for file in found {
            let path = name_in(&url, &file.location);
            let is_requests = job.conversation == Conversation::Requests;
            let rows = if is_requests {
                requests(context, &store, &file.location, &mut keys).await?
            } else {
                let rows = read(context, &url, &file.location).await?;
                check_columns(job, &path, &rows)?;
                rows
            };
            let (bytes, count) = (file.size, count(&path, &rows).await?);
            let sha256 = hash(&store, &file).await?;
            let description = InputFile { path, bytes, sha256, rows: count };
            let listed = (!is_requests).then_some(file);
            files.push(File { description, rows, listed });
        }
        if files.is_empty() {
            let expected = FORMATS.join(", .");
            return Err(input_error(
                job,
                &format!("no file, expected names that end in .{expected}"),
            ));
        }
        Ok(Self { store, files })
    }

    pub(super) fn files(&self) -> Vec<InputFile> {
        self.files.iter().map(|file| file.description.clone()).collect()
    }

    pub(super) fn chunks(self, chunk_rows: usize) -> ChunkReader {
        let files = self.files.into_iter().enumerate().collect();
        ChunkReader { store: self.store, files, current: None, chunk_rows }
    }
}

fn input_error(job: &BatchJob, reason: &str) -> Error {
    Error::Input { input: job.input.clone(), reason: reason.to_owned() }
}

/// The format of a file, by its name.
fn format(path: &str) -> Option<&'static str> {
    let end = Path::new(path).extension()?.to_str()?;
    FORMATS.into_iter().find(|format| *format == end)
}

/// Whether a file has rows: its name ends in a format, and no folder on its way is hidden, as those with a manifest are.
fn is_read(url: &ListingTableUrl, file: &StorePath) -> bool {
    let is_hidden = |part: &str| part.starts_with(['_', '.']);
    let mut parts = url.strip_prefix(file).into_iter().flatten();
    format(file.as_ref()).is_some() && !parts.any(is_hidden)
}

/// The path of a file below the input, which may move.
fn name_in(url: &ListingTableUrl, file: &StorePath) -> String {
    let below = url.strip_prefix(file).into_iter().flatten().collect::<Vec<_>>().join("/");
    if below.is_empty() { file.filename().unwrap_or_default().to_owned() } else { below }
}

/// A file that was found, by its address: in a path, some characters would mean more than one.
struct Found(ListingTableUrl);

impl DataFilePaths for Found {
    fn to_urls(self) -> datafusion::error::Result<Vec<ListingTableUrl>> {
        Ok(vec![self.0])
    }
}

async fn read(
    context: &SessionContext,
    url: &ListingTableUrl,
    file: &StorePath,
) -> Result<DataFrame, Error> {
    let mut address = AsRef::<Url>::as_ref(&url.object_store()).clone();
    if let Ok(mut segments) = address.path_segments_mut() {
        segments.clear().extend(file.parts().map(|part| part.as_ref().to_owned()));
    }
    let found = Found(ListingTableUrl::try_new(address, None)?);
    let end = format!(".{}", format(file.as_ref()).unwrap_or_default());
    // Types are those of all rows: one that differs would end the job when its chunk is read.
    let all = usize::MAX;
    Ok(match end.as_str() {
        ".parquet" => context.read_parquet(found, ParquetReadOptions::default()).await?,
        ".csv" => {
            context.read_csv(found, CsvReadOptions::new().schema_infer_max_records(all)).await?
        }
        ".arrow" => context.read_arrow(found, ArrowReadOptions::default()).await?,
        _ => {
            let mut options = JsonReadOptions::default().file_extension(&end);
            options.schema_infer_max_records = all;
            context.read_json(found, options).await?
        }
    })
}

/// The requests of a file.
async fn requests(
    context: &SessionContext,
    store: &Arc<dyn ObjectStore>,
    file: &StorePath,
    keys: &mut HashSet<String>,
) -> Result<DataFrame, Error> {
    let wrong = |reason: String| Error::Input { input: file.to_string(), reason };
    let text = async { store.get(file).await?.bytes().await };
    let text = text.await.map_err(|error| wrong(error.to_string()))?;
    let rows = requests::read(&text, keys).map_err(wrong)?;
    Ok(context.read_batch(rows)?)
}

/// The hash of a file, of which a store has to give as many bytes as it lists.
async fn hash(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<String, Error> {
    let wrong = |reason| Error::Input { input: file.location.to_string(), reason };
    let failed = |error: object_store::Error| wrong(error.to_string());
    let mut bytes = store.get(&file.location).await.map_err(failed)?.into_stream();
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some(part) = bytes.try_next().await.map_err(failed)? {
        hash.update(&part);
        size += part.len() as u64;
    }
    if size != file.size {
        return Err(wrong(format!(
            "the store gives {size} bytes, expected {} as listed",
            file.size
        )));
    }
    Ok(digits(&hash.finalize()))
}

/// The number of a file's rows. Texts are read as their chunks will be: what cannot be read is said before any token.
async fn count(path: &str, rows: &DataFrame) -> Result<usize, Error> {
    let wrong = |error: DataFusionError| Error::Input {
        input: path.to_owned(),
        reason: error.strip_backtrace(),
    };
    if matches!(format(path), Some("parquet" | "arrow")) {
        return rows.clone().count().await.map_err(wrong);
    }
    let stream = rows.clone().execute_stream().await.map_err(wrong)?;
    let add = |sum, batch: RecordBatch| ready(Ok(sum + batch.num_rows()));
    stream.try_fold(0, add).await.map_err(wrong)
}

/// The chunks of all files, one after the other.
pub(super) struct ChunkReader {
    store: Arc<dyn ObjectStore>,
    files: VecDeque<(usize, File)>,
    current: Option<FileReader>,
    chunk_rows: usize,
}

struct FileReader {
    number: usize,
    description: InputFile,
    listed: Option<ObjectMeta>,
    stream: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Rows that were read and are in no chunk yet.
    left: Vec<RecordBatch>,
    offset: usize,
}

impl ChunkReader {
    /// Refuses a file that was replaced since the job began: that of the last chunk.
    pub(super) async fn check_unchanged(&mut self) -> Result<(), Error> {
        match &mut self.current {
            Some(file) => file.check_unchanged(&self.store).await,
            None => Ok(()),
        }
    }

    /// The next chunk, which its file's number and its first row name.
    pub(super) async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(file) = &mut self.current {
                let chunk = file.next(self.chunk_rows).await;
                if let Ok(Some(chunk)) = chunk {
                    return Ok(Some(chunk));
                }
                // It explains whatever is wrong.
                self.check_unchanged().await?;
                chunk?;
                self.current = None;
            }
            let Some((number, File { description, rows, listed })) = self.files.pop_front() else {
                return Ok(None);
            };
            let stream = rows.execute_stream().await?;
            let (schema, left, offset) = (stream.schema(), vec![], 0);
            let file = FileReader { number, description, listed, stream, schema, left, offset };
            self.current = Some(file);
        }
    }
}

impl FileReader {
    async fn next(&mut self, chunk_rows: usize) -> Result<Option<Chunk>, Error> {
        let mut count: usize = self.left.iter().map(RecordBatch::num_rows).sum();
        while count < chunk_rows
            && let Some(batch) = self.stream.next().await.transpose()?
        {
            count += batch.num_rows();
            self.left.push(batch);
        }
        if count < chunk_rows {
            self.check_rows(self.offset + count)?;
        }
        if count == 0 {
            return Ok(None);
        }
        let all = match &self.left[..] {
            [one] => one.clone(), // many small chunks of one batch
            several => concat_batches(&self.schema, several)?,
        };
        let rows = all.slice(0, chunk_rows.min(count));
        self.left = vec![all.slice(rows.num_rows(), count - rows.num_rows())];
        let name = format!("{:05}-{:010}", self.number, self.offset);
        self.offset += rows.num_rows();
        if self.offset > self.description.rows {
            self.check_rows(self.offset)?;
        }
        Ok(Some(Chunk { name, rows }))
    }

    /// Refuses a file that was replaced. One that has another version of the same bytes was touched.
    async fn check_unchanged(&mut self, store: &Arc<dyn ObjectStore>) -> Result<(), Error> {
        let Some(listed) = &self.listed else { return Ok(()) };
        let wrong = |reason| Error::Input { input: self.description.path.clone(), reason };
        let changed = || wrong("it was changed since the job began".to_owned());
        let now = store.head(&listed.location).await.map_err(|error| wrong(error.to_string()))?;
        if now.size != listed.size {
            return Err(changed());
        }
        if now.e_tag != listed.e_tag {
            if hash(store, &now).await? != self.description.sha256 {
                return Err(changed());
            }
            self.listed = Some(now);
        }
        Ok(())
    }

    /// Refuses a file that has other rows by now than when the job began.
    fn check_rows(&self, found: usize) -> Result<(), Error> {
        let InputFile { path, rows, .. } = &self.description;
        if found == *rows {
            return Ok(());
        }
        let reason = format!("it has {found} rows, expected {rows} as at the beginning of the job");
        Err(Error::Input { input: path.clone(), reason })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::session::plain_session;

    /// What reading a file ends with that was changed after the job was begun.
    async fn read_after(before: &str, after: Option<&str>) -> Result<usize, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.csv");
        fs::write(&path, before).expect("it is written");
        let job = BatchJob {
            input: path.to_str().expect("UTF-8").to_owned(),
            output: String::new(),
            conversation: Conversation::Prompt("story".into()),
            key: None,
            options: None,
            seed: 0,
            chunk_rows: 2,
            shard_rows: 1,
        };
        let context = plain_session().expect("a session");
        let input = Input::open(&context, &job).await.map_err(|error| error.to_string())?;
        if let Some(after) = after {
            fs::write(&path, after).expect("it is written");
        }
        let (mut chunks, mut rows) = (input.chunks(job.chunk_rows), 0);
        while let Some(chunk) = chunks.next().await.map_err(|error| error.to_string())? {
            rows += chunk.rows.num_rows();
        }
        Ok(rows)
    }

    #[tokio::test]
    async fn a_file_that_is_changed_ends_the_job() {
        let text = "story\nA\nB\nC\n";
        assert_eq!(read_after(text, None).await, Ok(3));
        assert_eq!(read_after(text, Some(text)).await, Ok(3), "it was touched");
        let others = ["A\nB\nD\n", "A\nB\nCDE\n", "A\nB\nC\nD\n", "A\n"];
        for other in others.map(|rows| format!("story\n{rows}")) {
            let error = read_after(text, Some(&other)).await.expect_err("it is another file");
            assert!(error.contains("`in.csv`: it was changed since the job began"), "{error}");
        }
    }
}
