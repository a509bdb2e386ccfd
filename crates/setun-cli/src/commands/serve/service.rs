//! The service manager that has started a server: its sockets, and messages to it.

use std::{io, net::TcpListener};

/// The socket that a service manager has opened (`LISTEN_FDS`).
pub(super) fn listener() -> io::Result<Option<TcpListener>> {
    #[cfg(unix)]
    if let Some(listener) = listenfd::ListenFd::from_env().take_tcp_listener(0)? {
        listener.set_nonblocking(true)?;
        return Ok(Some(listener));
    }
    Ok(None)
}

/// Tells the service manager a state such as `READY=1` (`NOTIFY_SOCKET`). Nothing without one.
pub(super) fn notify(state: &str) {
    #[cfg(target_os = "linux")]
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = send(&path, state); // the manager waits in vain, and says so itself
    }
    #[cfg(not(target_os = "linux"))]
    let _ = state;
}

#[cfg(target_os = "linux")]
fn send(path: &std::ffi::OsStr, state: &str) -> io::Result<()> {
    use std::os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn a_state_is_a_datagram() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("a socket");
        send(path.as_os_str(), "READY=1").expect("it is taken");
        let mut state = [0; 16];
        let length = manager.recv(&mut state).expect("a state");
        assert_eq!(&state[..length], b"READY=1");
    }
}
