//! The user's cache folder, for what no checkout need make again.

use std::env;
use std::path::PathBuf;

use crate::shell::target;

/// `$XDG_CACHE_HOME/setun` or `~/.cache/setun`; without a home a folder of this checkout.
pub(crate) fn folder() -> PathBuf {
    let named = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let home = || env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    match (named, home()) {
        (Some(cache), _) => PathBuf::from(cache).join("setun"),
        (None, Some(home)) => PathBuf::from(home).join(".cache/setun"),
        (None, None) => target().join("xtask/cache"),
    }
}
