//! No version of [`ternary_panel`](crate::ternary_panel): many rows go by tiles.
//!
//! Products that widen take most of the instructions either way. For 64 codes of each of four
//! outputs and four rows a panel of 24 sums came to 187 vector instructions, and a tile is 180.

use crate::ternary_panel::TernaryPanel;
use fearless_simd::aarch64::Neon;

impl TernaryPanel for Neon {}
