//! Columns that the files of an input must have.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::new_null_array,
        datatypes::{DataType, Field, Schema},
        record_batch::RecordBatch,
    },
    prelude::DataFrame,
};

use super::super::{
    job::{BatchJob, Conversation},
    rows::{RESULT, parquet},
};
use crate::error::Error;

/// Refuses a file without the columns of a job, or with columns that its results cannot have.
pub(super) fn check_columns(job: &BatchJob, path: &str, rows: &DataFrame) -> Result<(), Error> {
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
    check_can_be_written(rows.schema().as_arrow()).map_err(|error| wrong(error.to_string()))?;
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

/// Refuses types that Parquet has not, by a row of them.
fn check_can_be_written(schema: &Schema) -> Result<(), Error> {
    let fields = schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
    let fields: Vec<_> = fields.collect();
    let columns = fields.iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let row = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    parquet(&row).map(drop)
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
