//! No twin of [`ternary_panel`](crate::ternary_panel): many rows go by tiles.

use crate::ternary_panel::TernaryPanel;
use fearless_simd::aarch64::Neon;

impl TernaryPanel for Neon {}
