//! Shares of tenants in an engine.

use super::Engine;
use crate::request_slots::tenant_share;

impl Engine {
    /// The same engine for requests of one tenant. Tenants share the places of a batch: the one with the
    /// fewest goes first, and none has more than [`tenant_places`](Self::tenant_places).
    /// [`priority`](crate::GenerateOptions::priority) orders the requests of one tenant, and does not
    /// put them before those of others.
    #[must_use]
    pub fn with_tenant(mut self, tenant: u64) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Most generations of a tenant in a batch, each sample and beam by itself.
    #[must_use]
    pub fn tenant_places(&self) -> usize {
        tenant_share(self.shared.max_concurrent)
    }

    /// Most generations that a tenant should have running and waiting.
    #[must_use]
    pub fn tenant_requests(&self) -> usize {
        tenant_share(self.schedulers.iter().map(|scheduler| scheduler.slots.most()).sum())
    }
}
