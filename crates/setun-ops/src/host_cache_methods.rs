//! The methods of a backend whose cache is in host memory.

/// The methods of a [`Backend`](crate::Backend) whose cache is a [`HostCache`](crate::host_cache::HostCache).
#[macro_export]
macro_rules! host_cache_methods {
    () => {
        fn create_cache(
            &mut self,
            spec: &$crate::CacheSpec,
            blocks: usize,
        ) -> Result<Self::Cache, $crate::OpsError> {
            Self::Cache::new(*spec, blocks)
        }

        fn grow_cache(
            &mut self,
            cache: &mut Self::Cache,
            blocks: usize,
        ) -> Result<(), $crate::OpsError> {
            cache.grow(blocks)
        }

        fn shrink_cache(
            &mut self,
            cache: &mut Self::Cache,
            blocks: usize,
        ) -> Result<(), $crate::OpsError> {
            cache.shrink(blocks);
            Ok(())
        }

        fn grow_states(
            &mut self,
            cache: &mut Self::Cache,
            states: usize,
        ) -> Result<(), $crate::OpsError> {
            cache.states_mut().grow(states)
        }

        fn shrink_states(
            &mut self,
            cache: &mut Self::Cache,
            states: usize,
        ) -> Result<(), $crate::OpsError> {
            cache.states_mut().shrink(states);
            Ok(())
        }

        fn copy_states(
            &mut self,
            cache: &mut Self::Cache,
            pairs: &[($crate::StateId, $crate::StateId)],
        ) -> Result<(), $crate::OpsError> {
            cache.states_mut().copy(pairs)
        }

        async fn read_states(
            &mut self,
            cache: &Self::Cache,
            states: &[$crate::StateId],
            out: &mut [u8],
        ) -> Result<(), $crate::OpsError> {
            cache.states().read(states, out)
        }

        fn write_states(
            &mut self,
            cache: &mut Self::Cache,
            states: &[$crate::StateId],
            data: &[u8],
        ) -> Result<(), $crate::OpsError> {
            cache.states_mut().write(states, data)
        }

        fn copy_blocks(
            &mut self,
            cache: &mut Self::Cache,
            pairs: &[($crate::BlockId, $crate::BlockId)],
        ) -> Result<(), $crate::OpsError> {
            cache.copy_blocks(pairs)
        }

        async fn read_blocks(
            &mut self,
            cache: &Self::Cache,
            blocks: &[$crate::BlockId],
            out: &mut [u8],
        ) -> Result<(), $crate::OpsError> {
            cache.read_blocks(blocks, out)
        }

        fn write_blocks(
            &mut self,
            cache: &mut Self::Cache,
            blocks: &[$crate::BlockId],
            data: &[u8],
        ) -> Result<(), $crate::OpsError> {
            cache.write_blocks(blocks, data)
        }
    };
}
