//! Rows of a chunk: in the order of their prompts, and as a file.

use datafusion::{
    arrow::array::{ArrayRef, RecordBatch, UInt32Array},
    error::DataFusionError,
    parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties},
};

use crate::error::Error;

/// The column of the results.
pub(super) const RESULT: &str = "result";

/// Rows of a chunk in the order of their prompts.
pub(super) struct OrderedRows<'a> {
    pub(super) chunk: &'a str,
    pub(super) prompts: ArrayRef,
    /// The keys, if a column has them.
    pub(super) keys: Option<ArrayRef>,
    /// The paths of requests.
    pub(super) paths: Option<ArrayRef>,
}

/// The order that undoes an order.
pub(super) fn inverse(order: &UInt32Array) -> UInt32Array {
    let mut places = vec![0; order.len()];
    for (place, &row) in (0..).zip(order.values()) {
        places[row as usize] = place;
    }
    places.into()
}

/// Rows as a Parquet file.
pub(super) fn parquet(rows: &RecordBatch) -> Result<Vec<u8>, Error> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let failed = |error| Error::Query(DataFusionError::from(error));
    let mut writer =
        ArrowWriter::try_new(vec![], rows.schema(), Some(properties)).map_err(failed)?;
    writer.write(rows).map_err(failed)?;
    writer.into_inner().map_err(failed)
}
