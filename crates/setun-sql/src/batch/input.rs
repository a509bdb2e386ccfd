//! The files of the input and their rows, in chunks.

use std::{
    collections::{HashSet, VecDeque},
    path::Path,
    sync::Arc,
};

use datafusion::{
    arrow::{
        compute::concat_batches,
        datatypes::{DataType, SchemaRef},
        record_batch::RecordBatch,
    },
    datasource::{file_format::options::ArrowReadOptions, listing::ListingTableUrl},
    execution::{SendableRecordBatchStream, context::DataFilePaths},
    prelude::{CsvReadOptions, DataFrame, JsonReadOptions, ParquetReadOptions, SessionContext},
};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, path::Path as StorePath};
use sha2::{Digest, Sha256};
use url::Url;

use super::{
    chunk::Chunk,
    job::{BatchJob, Conversation, InputFile},
    requests,
    rows::RESULT,
};
use crate::{error::Error, identity::digits};

/// The files of a job's input, in the order of their paths.
pub(super) struct Input(Vec<File>);

struct File {
    description: InputFile,
    rows: DataFrame,
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
            let rows = if job.conversation == Conversation::Requests {
                requests(context, &store, &file.location, &mut keys).await?
            } else {
                let rows = read(context, &url, &file.location).await?;
                check_columns(job, &path, &rows)?;
                rows
            };
            let (bytes, count) = (file.size, rows.clone().count().await?);
            let sha256 = hash(&store, &file.location).await?;
            files.push(File { description: InputFile { path, bytes, sha256, rows: count }, rows });
        }
        if files.is_empty() {
            let expected = FORMATS.join(", .");
            return Err(input_error(
                job,
                &format!("no file, expected names that end in .{expected}"),
            ));
        }
        Ok(Self(files))
    }

    pub(super) fn files(&self) -> Vec<InputFile> {
        self.0.iter().map(|file| file.description.clone()).collect()
    }

    pub(super) fn chunks(self, chunk_rows: usize) -> ChunkReader {
        let files = self.0.into_iter().map(|file| file.rows).enumerate().collect();
        ChunkReader { files, current: None, chunk_rows }
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

async fn hash(store: &Arc<dyn ObjectStore>, file: &StorePath) -> Result<String, Error> {
    let failed = |error: object_store::Error| Error::Input {
        input: file.to_string(),
        reason: error.to_string(),
    };
    let mut bytes = store.get(file).await.map_err(failed)?.into_stream();
    let mut hash = Sha256::new();
    while let Some(part) = bytes.try_next().await.map_err(failed)? {
        hash.update(&part);
    }
    Ok(digits(&hash.finalize()))
}

fn check_columns(job: &BatchJob, path: &str, rows: &DataFrame) -> Result<(), Error> {
    let wrong = |reason| Error::Input { input: path.to_owned(), reason };
    let column = |name: &str| {
        let fields = rows.schema().fields();
        fields.iter().find(|field| field.name() == name).ok_or_else(|| {
            let known: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            wrong(format!("no column `{name}`, expected one of {}", known.join(", ")))
        })
    };
    job.key.as_deref().map(column).transpose()?;
    if column(RESULT).is_ok() {
        return Err(wrong(format!("it has a column `{RESULT}`, which is the name of the results")));
    }
    let name = job.conversation.column();
    let found = column(name)?.data_type();
    let (is_right, expected) = match job.conversation {
        Conversation::Prompt(_) => (is_text(found), "strings"),
        Conversation::Messages(_) => {
            (is_text(found) || is_list(found), "strings or lists of messages")
        }
        Conversation::Requests => (is_text(found), "requests"),
    };
    if is_right {
        return Ok(());
    }
    Err(wrong(format!("column `{name}` has the type {found}, expected {expected}")))
}

fn is_text(found: &DataType) -> bool {
    match found {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Lists of messages, as JSON lines have them.
fn is_list(found: &DataType) -> bool {
    let (DataType::List(field) | DataType::LargeList(field)) = found else { return false };
    matches!(field.data_type(), DataType::Struct(_))
}

/// The chunks of all files, one after the other.
pub(super) struct ChunkReader {
    files: VecDeque<(usize, DataFrame)>,
    current: Option<FileReader>,
    chunk_rows: usize,
}

struct FileReader {
    number: usize,
    stream: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Rows that were read and are in no chunk yet.
    left: Vec<RecordBatch>,
    offset: usize,
}

impl ChunkReader {
    /// The next chunk, which its file's number and its first row name.
    pub(super) async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(file) = &mut self.current {
                if let Some(chunk) = file.next(self.chunk_rows).await? {
                    return Ok(Some(chunk));
                }
                self.current = None;
            }
            let Some((number, rows)) = self.files.pop_front() else { return Ok(None) };
            let stream = rows.execute_stream().await?;
            let schema = stream.schema();
            self.current = Some(FileReader { number, stream, schema, left: vec![], offset: 0 });
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
        Ok(Some(Chunk { name, rows }))
    }
}
