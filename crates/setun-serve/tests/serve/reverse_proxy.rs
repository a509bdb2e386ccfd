//! Reverse proxies before a server, configured as docs/serving.md says.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

use crate::wait::wait_for;

/// A program that has to be on the `PATH`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    Haproxy,
    Nginx,
    Caddy,
}

/// A proxy that ends when it is dropped.
pub(crate) struct ReverseProxy {
    process: Child,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
}

impl ReverseProxy {
    /// Waits until it listens.
    pub(crate) fn start(program: Program, server: SocketAddr) -> Self {
        let address = free_address();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(address.port().to_string());
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("configuration");
        let configuration = program.configuration(server, address, &folder);
        fs::write(&file, configuration).expect("a file");
        let process = program.command(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let mut proxy = Self { process, folder, address };
        wait_for("the proxy", || {
            let ended = proxy.process.try_wait().expect("its state");
            assert!(ended.is_none(), "{program:?} ended, see {}: {ended:?}", file.display());
            TcpStream::connect(address).is_ok()
        });
        proxy
    }
}

impl Drop for ReverseProxy {
    fn drop(&mut self) {
        // One that has ended by itself needs no end.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Program {
    fn command(self, file: &Path) -> Command {
        let (name, arguments): (_, &[&str]) = match self {
            Self::Haproxy => ("haproxy", &["-db", "-f"]),
            Self::Nginx => ("nginx", &["-e", "stderr", "-c"]),
            Self::Caddy => ("caddy", &["run", "--adapter", "caddyfile", "--config"]),
        };
        let mut command = Command::new(name);
        command.args(arguments).arg(file);
        command
    }

    /// The documented configuration for these addresses, without TLS.
    fn configuration(self, server: SocketAddr, address: SocketAddr, folder: &Path) -> String {
        let heading = format!("{self:?}");
        let text = documented(&heading).replace("127.0.0.1:8080", &server.to_string());
        let replaced = |place, by: &str| {
            assert!(text.contains(place), "{heading}: {text}");
            text.replace(place, by)
        };
        match self {
            Self::Haproxy => {
                replaced(":443 ssl crt /etc/haproxy/example.org.pem", &address.to_string())
            }
            Self::Nginx => format!(
                "daemon off; master_process off; pid {folder}/pid; events {{ worker_connections 8192; }}\n\
                 http {{ access_log off; server {{ listen {address};\n{text}\n}} }}\n",
                folder = folder.display()
            ),
            Self::Caddy => {
                let site = format!("http://localhost:{} {{", address.port());
                format!("{{\n    admin off\n}}\n{}", replaced("example.org {", &site))
            }
        }
    }
}

/// The indented lines below the line that begins so and ends with a colon.
fn documented(heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serving.md");
    let text = fs::read_to_string(path).expect("a document");
    let is_heading = |line: &&str| {
        let begins = line.get(..heading.len()).is_some_and(|it| it.eq_ignore_ascii_case(heading));
        begins && line.ends_with(':')
    };
    let below = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    let lines = below.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.collect::<Vec<_>>().join("\n")
}

/// An address that nobody listens at. Systems give out higher ports, so nobody is given it meanwhile.
fn free_address() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (process::id() % 1000) as u16 * 4;
    loop {
        let port = first + TAKEN.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
