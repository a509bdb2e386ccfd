//! No twin of [`ternary_panel`](crate::ternary_panel) yet: many rows go by tiles.

use super::Simd128;
use crate::ternary_panel::TernaryPanel;

impl TernaryPanel for Simd128 {}
