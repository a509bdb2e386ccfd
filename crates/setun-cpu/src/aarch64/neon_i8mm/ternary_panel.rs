//! No twin of [`ternary_panel`](crate::ternary_panel): many rows go by tiles.

use super::NeonI8mm;
use crate::ternary_panel::TernaryPanel;

impl TernaryPanel for NeonI8mm {}
