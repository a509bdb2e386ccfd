//! A screen as numbers and bytes.

use setun_ops::{
    DenseMatrix, OpsError,
    aligned::Aligned,
    image::{ImageFields, WeightBytes},
    screen_dot::SCREEN_COLUMNS,
    ternary::MAX_COLUMNS,
};

use super::{BLOCK_TOKENS, BlockBounds, Screen};

impl Screen {
    /// Adds it to the image of its table.
    pub(crate) fn push_image<'a>(&'a self, image: &mut WeightBytes<'a>) {
        image.numbers.push(self.largest_norm.to_bits());
        image.parts.push((&*self.codes).into());
        image.parts.push(bytemuck::cast_slice(&self.blocks).into());
    }

    /// The screen of a table, from its image.
    pub(crate) fn take_image(
        fields: &mut ImageFields,
        table: &DenseMatrix,
    ) -> Result<Self, OpsError> {
        let largest_norm = f64::from_bits(fields.number()?);
        let rows = table.rows();
        if rows == 0 || !(1..=MAX_COLUMNS).contains(&table.columns()) {
            return Err(OpsError::Image { what: "its table can have no screen" });
        }
        let columns = table.columns().next_multiple_of(SCREEN_COLUMNS);
        let (codes, blocks): (Aligned<u8>, Aligned<BlockBounds>) =
            (fields.elements()?, fields.elements()?);
        let expected = (rows.checked_mul(columns), rows.div_ceil(BLOCK_TOKENS));
        if expected != (Some(codes.len()), blocks.len()) {
            return Err(OpsError::Image { what: "its screen is of another size" });
        }
        Ok(Self::of_codes(rows, columns, codes, blocks, largest_norm))
    }
}
