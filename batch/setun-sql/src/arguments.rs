//! Arguments of a call as columns of texts.

use datafusion::{
    arrow::{
        array::{Array, StringViewArray},
        compute::cast,
        datatypes::DataType,
    },
    common::cast::as_string_view_array,
    error::DataFusionError,
    logical_expr::ColumnarValue,
};

/// One argument: a text, or none, for each row.
pub(crate) struct Texts {
    values: StringViewArray,
    /// Whether one value stands for all rows.
    pub(crate) is_literal: bool,
}

impl Texts {
    /// Any type of strings, dictionaries among them.
    pub(crate) fn new(argument: &ColumnarValue) -> Result<Self, DataFusionError> {
        let (array, is_literal) = match argument {
            ColumnarValue::Array(array) => (array.clone(), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let values = as_string_view_array(&cast(&array, &DataType::Utf8View)?)?.clone();
        Ok(Self { values, is_literal })
    }

    /// The text of a row; none where it is NULL.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let row = if self.is_literal { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }

    /// All texts, a literal once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.values.iter()
    }
}
