//! The places where the rows of a job run: this process, or a cluster.

use datafusion::{arrow::array::ArrayRef, common::ScalarValue, logical_expr::ColumnarValue};

#[cfg(feature = "ballista")]
use super::shards;
use super::{Run, job::BatchJob, rows::OrderedRows};
#[cfg(feature = "ballista")]
use crate::cluster::Cluster;
use crate::{
    error::Error, functions::results, handle::ModelHandle, identity::Identity, settings::Settings,
};

/// What runs the rows of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Workers {
    /// The model of this process.
    Local(ModelHandle),
    /// Executors of a cluster, each with a model of its own.
    #[cfg(feature = "ballista")]
    Cluster(Cluster),
}

impl From<ModelHandle> for Workers {
    fn from(model: ModelHandle) -> Self {
        Self::Local(model)
    }
}

impl Workers {
    /// Checks the options, and tells the model.
    pub(super) async fn identity(&self, job: &BatchJob) -> Result<Identity, Error> {
        let function = job.conversation.function();
        match self {
            Self::Local(model) => {
                let loaded = model.loaded().await?;
                if let Some(options) = &job.options {
                    loaded.prepare(options).await?.map_err(|reason| Error::Argument {
                        function: function.name(),
                        reason: reason.to_string(),
                    })?;
                }
                Ok(loaded.identity().await?.clone())
            }
            #[cfg(feature = "ballista")]
            Self::Cluster(cluster) => cluster.identity(function, job.options.as_deref()).await,
        }
    }

    /// Texts of rows, which are a struct as `generate` and `chat` have it.
    pub(super) async fn texts(
        &self,
        run: Run<'_>,
        rows: OrderedRows<'_>,
    ) -> Result<ArrayRef, Error> {
        let job = run.job;
        let settings = Settings {
            seed: job.seed,
            model: run.model.fingerprint.clone(),
            chunk: rows.chunk.to_owned(),
            time: Some(run.time),
        };
        match self {
            Self::Local(handle) => {
                let (function, count) = (job.conversation.function(), rows.prompts.len());
                let second = rows.paths.map_or_else(
                    || ScalarValue::from(job.options.as_deref().unwrap_or("{}")).into(),
                    ColumnarValue::Array,
                );
                let mut arguments = vec![ColumnarValue::Array(rows.prompts), second];
                arguments.extend(rows.keys.map(ColumnarValue::Array));
                results(function, handle, settings, arguments, count).await
            }
            #[cfg(feature = "ballista")]
            Self::Cluster(cluster) => {
                shards::texts(cluster, job, settings, run.manifest, rows).await
            }
        }
    }

    /// How often a chunk is tried. A cluster loses executors, and starts others: with pauses it has half a minute.
    pub(super) fn attempts(&self) -> u32 {
        match self {
            Self::Local(_) => 1,
            #[cfg(feature = "ballista")]
            Self::Cluster(_) => 6,
        }
    }
}
