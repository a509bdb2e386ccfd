//! The files of the input and their rows, in chunks.

use std::{collections::VecDeque, path::Path};

use datafusion::{
    arrow::{
        compute::concat_batches,
        datatypes::{DataType, SchemaRef},
        record_batch::RecordBatch,
    },
    datasource::{file_format::options::ArrowReadOptions, listing::ListingTableUrl},
    execution::SendableRecordBatchStream,
    prelude::{CsvReadOptions, DataFrame, JsonReadOptions, ParquetReadOptions, SessionContext},
};
use futures::{StreamExt, TryStreamExt};

use super::{
    chunk::Chunk,
    job::{BatchJob, Conversation, InputFile},
};
use crate::error::Error;

/// The files of a job's input, in the order of their paths.
pub(super) struct Input(Vec<File>);

struct File {
    description: InputFile,
    rows: DataFrame,
}

/// The formats, by the ends of names.
const FORMATS: [&str; 6] = ["parquet", "csv", "json", "jsonl", "ndjson", "arrow"];

impl Input {
    pub(super) async fn open(context: &SessionContext, job: &BatchJob) -> Result<Self, Error> {
        if job.chunk_rows == 0 {
            return Err(input_error(job, "a chunk has 0 rows, expected 1 or more"));
        }
        let url = ListingTableUrl::parse(&job.input)?;
        let store = context.runtime_env().object_store(url.object_store())?;
        let state = context.state();
        let listed = url.list_all_files(&state, &store, "").await?;
        let mut found: Vec<_> = listed.try_collect().await?;
        found.retain(|file| format(file.location.as_ref()).is_some());
        found.sort_by(|one, other| one.location.cmp(&other.location));
        let mut files = vec![];
        for file in found {
            let path = format!("{}{}", url.object_store().as_str(), file.location);
            let rows = read(context, &path).await?;
            check_columns(job, &path, &rows)?;
            let count = rows.clone().count().await?;
            let description = InputFile { path, bytes: file.size, rows: count };
            files.push(File { description, rows });
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

async fn read(context: &SessionContext, path: &str) -> Result<DataFrame, Error> {
    let end = format!(".{}", format(path).unwrap_or_default());
    Ok(match end.as_str() {
        ".parquet" => context.read_parquet(path, ParquetReadOptions::default()).await?,
        ".csv" => context.read_csv(path, CsvReadOptions::new()).await?,
        ".arrow" => context.read_arrow(path, ArrowReadOptions::default()).await?,
        _ => context.read_json(path, JsonReadOptions::default().file_extension(&end)).await?,
    })
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
    let name = job.conversation.column();
    let found = column(name)?.data_type();
    let (is_right, expected) = match job.conversation {
        Conversation::Prompt(_) => (is_text(found), "strings"),
        Conversation::Messages(_) => {
            (is_text(found) || is_list(found), "strings or lists of messages")
        }
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
        let all = concat_batches(&self.schema, &self.left)?;
        let rows = all.slice(0, chunk_rows.min(count));
        self.left = vec![all.slice(rows.num_rows(), count - rows.num_rows())];
        let name = format!("{:05}-{:010}", self.number, self.offset);
        self.offset += rows.num_rows();
        Ok(Some(Chunk { name, rows }))
    }
}
