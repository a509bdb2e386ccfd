//! A screen as numbers and bytes.

use setun_ops::{
    DenseMatrix, OpsError,
    aligned::Aligned,
    image::{ImageFields, WeightBytes},
    screen_dot::SCREEN_COLUMNS,
    ternary::MAX_COLUMNS,
};

use super::{BLOCK_TOKENS, BlockBounds, Screen};
use crate::memory::zeroed;

/// Floats of a block.
const BLOCK_FLOATS: usize = 3 * BLOCK_TOKENS;

impl Screen {
    /// Adds it to the image of its table.
    pub(crate) fn push_image<'a>(&'a self, image: &mut WeightBytes<'a>) {
        image.numbers.push(self.largest_norm.to_bits());
        image.parts.push((&*self.codes).into());
        let floats: Vec<f32> = self
            .blocks
            .iter()
            .flat_map(|BlockBounds { scale, error, norm }| [scale, error, norm])
            .flatten()
            .copied()
            .collect();
        image.parts.push(bytemuck::cast_slice(&floats).to_vec().into());
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
        let codes: Aligned<u8> = fields.elements()?;
        let floats: Aligned<f32> = fields.elements()?;
        let found = (codes.len(), floats.len());
        let blocks = rows.div_ceil(BLOCK_TOKENS);
        if found != (rows.saturating_mul(columns), blocks * BLOCK_FLOATS) {
            return Err(OpsError::Image { what: "its screen is of another size" });
        }
        let mut bounds: Aligned<BlockBounds> = zeroed(blocks, "a screen")?;
        for (block, floats) in bounds.iter_mut().zip(floats.as_chunks::<BLOCK_FLOATS>().0) {
            let part = |index: usize| std::array::from_fn(|row| floats[index * BLOCK_TOKENS + row]);
            *block = BlockBounds { scale: part(0), error: part(1), norm: part(2) };
        }
        Ok(Self { rows, columns, codes, blocks: bounds, largest_norm })
    }
}
