//! Rows of a query, printed or written to a file.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use datafusion::{
    arrow::{
        csv, datatypes::SchemaRef, json::LineDelimitedWriter, record_batch::RecordBatch,
        util::pretty::pretty_format_batches_with_schema,
    },
    error::DataFusionError,
    parquet::arrow::ArrowWriter,
};
use setun::{
    ErrorCode,
    text::{JsonLines, escape_line_breaks},
};
use setun_cli::{CliError, output::Output};

use crate::queries::failed;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum PrintFormat {
    /// A table, when all rows are there
    #[default]
    Table,
    /// A JSON object a line
    Json,
    /// Comma-separated values below a header
    Csv,
}

/// Format of a file, by the end of its name.
#[derive(Clone, Copy)]
pub(super) enum FileFormat {
    Parquet,
    Json,
    Csv,
}

impl FileFormat {
    /// A path whose end names a format.
    pub(super) fn path(path: &str) -> Result<PathBuf, String> {
        let path = PathBuf::from(path);
        match Self::by_name(&path) {
            Some(_) => Ok(path),
            None => Err("expected a name that ends in .parquet, .jsonl or .csv".into()),
        }
    }

    /// The format of such a path.
    pub(super) fn of(path: &Path) -> Self {
        Self::by_name(path).unwrap_or(Self::Json)
    }

    fn by_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "jsonl" | "ndjson" | "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Where rows go.
pub(super) enum RowWriter<'a> {
    Table { output: &'a mut Output, schema: SchemaRef, rows: Vec<RecordBatch> },
    Lines { output: &'a mut Output, format: PrintFormat, has_header: bool },
    Json(LineDelimitedWriter<JsonLines<&'a mut (dyn Write + Send)>>),
    Csv(Box<csv::Writer<&'a mut (dyn Write + Send)>>),
    Parquet(Box<ArrowWriter<&'a mut (dyn Write + Send)>>),
}

impl<'a> RowWriter<'a> {
    pub(super) fn print(
        format: PrintFormat,
        schema: SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, CliError> {
        Ok(match format {
            PrintFormat::Table => Self::Table { output, schema, rows: vec![] },
            PrintFormat::Json => Self::Lines { output, format, has_header: false },
            PrintFormat::Csv => {
                check_flat(&schema)?;
                Self::Lines { output, format, has_header: false }
            }
        })
    }

    pub(super) fn file(
        format: FileFormat,
        schema: SchemaRef,
        file: &'a mut (dyn Write + Send),
    ) -> Result<Self, CliError> {
        Ok(match format {
            FileFormat::Json => Self::Json(LineDelimitedWriter::new(JsonLines::new(file))),
            FileFormat::Csv => {
                check_flat(&schema)?;
                Self::Csv(Box::new(csv::Writer::new(file)))
            }
            FileFormat::Parquet => {
                let writer = ArrowWriter::try_new(file, schema, None);
                Self::Parquet(Box::new(writer.map_err(failed)?))
            }
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), CliError> {
        match self {
            Self::Table { rows, .. } => rows.push(batch.clone()),
            Self::Lines { output, format, has_header } => {
                output.write(&lines(*format, batch, *has_header).map_err(failed)?)?;
                *has_header = true;
            }
            Self::Json(writer) => writer.write(batch).map_err(failed)?,
            Self::Csv(writer) => writer.write(batch).map_err(failed)?,
            Self::Parquet(writer) => writer.write(batch).map_err(failed)?,
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn end(self) -> Result<(), CliError> {
        match self {
            // A statement such as SET has no columns.
            Self::Table { schema, .. } if schema.fields().is_empty() => {}
            Self::Table { output, schema, rows } => {
                let table = pretty_format_batches_with_schema(schema, &rows);
                output.line(&table.map_err(failed)?.to_string())?;
            }
            Self::Lines { .. } | Self::Csv(_) => {}
            Self::Json(mut writer) => {
                writer.finish().map_err(failed)?;
                writer.into_inner().finish().map_err(failed)?;
            }
            Self::Parquet(writer) => drop(writer.close().map_err(failed)?),
        }
        Ok(())
    }
}

fn lines(
    format: PrintFormat,
    batch: &RecordBatch,
    has_header: bool,
) -> Result<String, DataFusionError> {
    let mut bytes = vec![];
    if let PrintFormat::Csv = format {
        csv::WriterBuilder::new().with_header(!has_header).build(&mut bytes).write(batch)?;
    } else {
        let mut writer = LineDelimitedWriter::new(&mut bytes);
        writer.write(batch)?;
        writer.finish()?;
        escape_line_breaks(&mut bytes, 0);
    }
    String::from_utf8(bytes).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Refuses columns that CSV has no way to write, before they are computed.
fn check_flat(schema: &SchemaRef) -> Result<(), CliError> {
    let nested = schema.fields().iter().find(|field| field.data_type().is_nested());
    nested.map_or(Ok(()), |field| {
        let (name, found) = (field.name(), field.data_type());
        let reason =
            format!("CSV has no way to write column `{name}` of type {found}: choose its fields");
        Err(CliError::Query { code: ErrorCode::BadOption, reason })
    })
}
