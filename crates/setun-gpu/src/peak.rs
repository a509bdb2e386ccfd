//! Products alone, as many as a device can: the definition of the kernel `peak`.
//!
//! Each lane has [`CHAINS`] sums that begin at the lane's number and theirs. Of four bytes each, a
//! sum grows in each round by the dot product of [`CODES`] with its own four bytes, so that no
//! compiler can foresee it; of tiles, by the product of two tiles that repeat [`CODES`] and
//! [`ACTIVATIONS`]. A lane writes the sum of its sums.

use crate::kernel::PeakProducts;

/// Independent sums of a lane: while one waits for its products the others go on.
pub const CHAINS: u32 = 8;

/// Lanes of a workgroup.
pub const LANES: u32 = 256;

/// Codes of weights, four bytes from 0 to 2.
pub const CODES: u32 = 0x0102_0001;

/// Activations, four signed bytes: 3, -2, 1, 5 from the lowest.
pub const ACTIVATIONS: u32 = 0x0501_fe03;

/// Multiply-adds of a lane in a round.
#[must_use]
pub fn multiply_adds(products: PeakProducts) -> u32 {
    match products {
        PeakProducts::Dots => CHAINS * 4,
        // A warp multiplies 16 rows of 32 with 8 columns.
        PeakProducts::Tiles => CHAINS * (16 * 32 * 8 / 32),
    }
}

/// What a lane of any workgroup writes.
#[must_use]
pub fn sum(products: PeakProducts, lane: u32, rounds: u32) -> u32 {
    let chain = |chain: u32| {
        let mut sum = lane.wrapping_add(chain);
        match products {
            PeakProducts::Dots => {
                for _ in 0..rounds {
                    sum = sum.wrapping_add_signed(dot4(CODES, sum));
                }
                sum
            }
            PeakProducts::Tiles => {
                let grown = (32 / 4 * dot4(CODES, ACTIVATIONS)).cast_unsigned();
                4_u32.wrapping_mul(sum.wrapping_add(grown.wrapping_mul(rounds)))
            }
        }
    };
    (0..CHAINS).map(chain).fold(0, u32::wrapping_add)
}

fn dot4(codes: u32, activations: u32) -> i32 {
    let pairs = codes.to_le_bytes().into_iter().zip(activations.to_le_bytes());
    pairs.map(|(code, activation)| i32::from(code) * i32::from(activation.cast_signed())).sum()
}
