//! Why there is no device, or why it cannot do what a model needs.

/// Why a GPU cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// This build does not reach such devices.
    #[error("this build is without the cargo feature `{wanted}`")]
    NotBuilt {
        /// The feature.
        wanted: &'static str,
    },

    /// There is no adapter of this kind.
    #[error("no {wanted} adapter: {reason}")]
    NoAdapter {
        /// What was looked for.
        wanted: &'static str,
        /// What the system said.
        reason: String,
    },

    /// There is an adapter, and it gives no device.
    #[error("{adapter} gives no device: {reason}")]
    NoDevice {
        /// Name of the adapter.
        adapter: String,
        /// What the driver said.
        reason: String,
    },
}
