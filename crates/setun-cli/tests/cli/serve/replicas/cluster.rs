//! Three servers behind `HAProxy` with the configuration of `deploy/`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::super::Server;
use crate::{support::free_port, wait::wait_for};

/// The configuration.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/haproxy.cfg");

/// Positions that the embedded model has.
pub(super) const CONTEXT: usize = 512;

/// Largest batch of a server.
pub(super) const MAX_CONCURRENT: usize = 32;

/// Its lines that choose a server.
const BALANCE: &str = "    balance hash var(txn.key)\n    hash-type consistent\n    \
                       hash-balance-factor 150\n";

/// How a server is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Balance {
    /// By the committed file.
    Committed,
    /// By it without bounds.
    Unbounded,
    /// In turns.
    RoundRobin,
}

impl Balance {
    pub(super) const ALL: [Self; 3] = [Self::Committed, Self::Unbounded, Self::RoundRobin];

    /// These in the place of [`BALANCE`].
    fn lines(self) -> Option<&'static str> {
        match self {
            Self::Committed => None,
            Self::Unbounded => Some("    balance hash var(txn.key)\n    hash-type consistent\n"),
            Self::RoundRobin => Some("    balance roundrobin\n"),
        }
    }
}

/// The servers and the proxy, which end when it is dropped.
pub(super) struct Cluster {
    servers: Vec<Server>,
    proxy: Child,
    /// Where the proxy listens.
    pub(super) address: String,
    folder: TempDir,
}

impl Cluster {
    pub(super) const NAMES: [&str; 3] = ["setun-1", "setun-2", "setun-3"];

    /// Servers whose prefix caches keep this many positions.
    pub(super) fn start(balance: Balance, prefix_positions: usize) -> Self {
        let servers: Vec<_> = Self::NAMES.map(|_| server(prefix_positions)).into();
        let folder = tempfile::tempdir().expect("a folder");
        let (proxy, address) = proxy(&folder, balance, &servers);
        let mut cluster = Self { servers, proxy, address, folder };
        wait_for("the proxy", || {
            let ended = cluster.proxy.try_wait().expect("its state");
            assert!(ended.is_none(), "HAProxy ended: {}", cluster.log());
            TcpStream::connect(&cluster.address).is_ok()
        });
        cluster
    }

    /// The server of this name.
    pub(super) fn server(&mut self, name: &str) -> &mut Server {
        let number = Self::NAMES.iter().position(|other| *other == name);
        &mut self.servers[number.expect("a server of the configuration")]
    }

    /// The most requests that each server had open at a time, as the proxy counts them.
    pub(super) fn max_open_requests(&self) -> Vec<usize> {
        let socket = self.folder.path().join("admin.sock");
        let mut socket = UnixStream::connect(socket).expect("the proxy's socket");
        socket.write_all(b"show stat\n").expect("it is read");
        let mut table = String::new();
        socket.read_to_string(&mut table).expect("UTF-8");
        let mut lines = table.trim_start_matches("# ").lines();
        let names: Vec<_> = lines.next().expect("names of columns").split(',').collect();
        let column = |name| names.iter().position(|other| *other == name).expect("a column");
        let (server, most) = (column("svname"), column("smax"));
        let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
        rows.filter(|row| row.get(server).is_some_and(|name| Self::NAMES.contains(name)))
            .map(|row| row[most].parse().expect("a number"))
            .collect()
    }

    /// What the proxy says.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Until the proxy says this.
    pub(super) fn wait_for(&self, words: &str) {
        wait_for(words, || self.log().contains(words));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // One that has ended by itself needs no end.
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

/// A server with the embedded model, one thread, and a prefix cache.
pub(super) fn server(prefix_positions: usize) -> Server {
    let home = tempfile::tempdir().expect("a folder");
    let config = home.path().join("serve.toml");
    let contexts = contexts(prefix_positions);
    let tables = format!(
        "[device]\nthreads = 1\n[batch]\nmax_concurrent = {MAX_CONCURRENT}\n\
         [context]\ncontexts = {contexts}\nprefix_positions = {prefix_positions}\n"
    );
    fs::write(&config, tables).expect("a file");
    let config = config.to_string_lossy().into_owned();
    Server::with_store(home, &["--config", &config, "--grace-time", "600"], "setun-stories")
}

/// Whole contexts that its cache grows to: beside the prefixes there is room for what runs.
pub(super) fn contexts(prefix_positions: usize) -> usize {
    prefix_positions.div_ceil(CONTEXT) + MAX_CONCURRENT
}

/// The proxy and where it will listen. Addresses are in its environment, so the committed file is as it is.
fn proxy(folder: &TempDir, balance: Balance, servers: &[Server]) -> (Child, String) {
    let log = fs::File::create(folder.path().join("log")).expect("a file");
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(configuration(folder.path(), balance));
    command.env("SETUN_ADMIN", folder.path().join("admin.sock"));
    for (number, server) in servers.iter().enumerate() {
        command.env(format!("SETUN_{}", number + 1), &server.address);
    }
    let address = format!("127.0.0.1:{}", free_port());
    command.env("SETUN_BIND", &address).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a file")).stderr(log);
    (command.spawn().expect("haproxy is installed"), address)
}

fn configuration(folder: &Path, balance: Balance) -> PathBuf {
    let Some(lines) = balance.lines() else { return COMMITTED.into() };
    let text = fs::read_to_string(COMMITTED).expect("a configuration");
    assert!(text.contains(BALANCE), "{text}");
    let path = folder.join("haproxy.cfg");
    fs::write(&path, text.replace(BALANCE, lines)).expect("a file");
    path
}
