//! No twin of [`ternary_panel`](crate::ternary_panel): many rows go by tiles.

use super::NeonDotprod;
use crate::ternary_panel::TernaryPanel;

impl TernaryPanel for NeonDotprod {}
