//! `dense_matmul`: a small matrix of floats times rows of floats.
//!
//! `out[row][o] = fold16(x[row] · weight[o])`, the weight's row widened as in [`head`](crate::head).

use crate::op::Agreement;

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 16 };
