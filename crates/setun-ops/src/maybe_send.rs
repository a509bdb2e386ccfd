//! `Send` where there are threads.

/// `Send` where there are threads; nothing in WebAssembly, where handles of its host are not.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + ?Sized> MaybeSend for T {}

/// `Send` where there are threads; nothing in WebAssembly, where handles of its host are not.
#[cfg(target_family = "wasm")]
pub trait MaybeSend {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSend for T {}
