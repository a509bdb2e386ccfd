//! The self-test of a device against the definitions, passed before a model is trusted to it.

use setun_ops::{
    BatchInputs, BufferId, OpsError,
    comparison::{Case, Disagreement, Output},
};

use crate::{backend::GpuBackend, executor::Executor, lowering::Fusion};

/// Steps that follow each other, where a case chooses.
const MULTI_STEPS: usize = 3;

/// How a device failed its self-test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// An operation differs from its definition.
    #[error(transparent)]
    Disagreement(#[from] Disagreement),

    /// The device could not do what it was asked.
    #[error(transparent)]
    Ops(#[from] OpsError),

    /// A step gives other bits where operations share launches.
    #[error("step {step}: buffer {} has other bits where operations share launches", buffer.0)]
    Shared {
        /// The step of the case.
        step: usize,
        /// The buffer.
        buffer: BufferId,
    },

    /// A row has other bits beside other rows.
    #[error(
        "buffer {} has other bits in a step of {} rows than in one of {}", buffer.0, rows[1], rows[0]
    )]
    Rows {
        /// Rows of the two steps.
        rows: [usize; 2],
        /// The buffer.
        buffer: BufferId,
    },
}

impl<E: Executor> GpuBackend<E> {
    /// Runs each operation of a case from the definitions' memory and compares what it gives as
    /// its [agreement](setun_ops::op::Agreement) says; then whole steps, whose bits must not
    /// depend on which operations share a launch; where a case chooses, also steps that follow
    /// each other.
    ///
    /// # Errors
    ///
    /// How the device failed.
    pub async fn self_test(&mut self, case: &Case) -> Result<(), SelfTestError> {
        let fusion = std::mem::replace(&mut self.fusion, Fusion::Apart);
        let result = self.compare(case).await;
        self.fusion = fusion;
        result
    }

    /// Compares the first steps of cases with equal weights, whose number of rows ascends: what
    /// a row becomes must not depend on how many there are.
    ///
    /// # Errors
    ///
    /// How the device failed.
    pub async fn self_test_rows(&mut self, cases: &[Case]) -> Result<(), SelfTestError> {
        let mut before: Option<(usize, Vec<Output>)> = None;
        for case in cases {
            let outputs = case.outputs(self, 1).await?;
            let count = case.steps.first().map_or(0, BatchInputs::rows);
            if let Some((fewer, expected)) = before {
                let differs = expected.iter().zip(&outputs).find(|(a, b)| {
                    let both = a.bytes.len().min(b.bytes.len());
                    a.bytes[..both] != b.bytes[..both]
                });
                if let Some((Output { buffer, .. }, _)) = differs {
                    return Err(SelfTestError::Rows { rows: [fewer, count], buffer: *buffer });
                }
            }
            before = Some((count, outputs));
        }
        Ok(())
    }

    async fn compare(&mut self, case: &Case) -> Result<(), SelfTestError> {
        case.compare_by_op(self).await?;
        let apart = case.outputs(self, case.steps.len()).await?;
        self.fusion = Fusion::Shared;
        let shared = case.outputs(self, case.steps.len()).await?;
        case.compare_multi_step(self, MULTI_STEPS).await?;
        let differs = apart.into_iter().zip(shared).find(|(apart, shared)| apart != shared);
        differs.map_or(Ok(()), |(Output { step, buffer, .. }, _)| {
            Err(SelfTestError::Shared { step, buffer })
        })
    }
}
