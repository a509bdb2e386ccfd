//! The processes of a cluster on this machine.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::support::{command, free_port, send};

/// A scheduler and its executors, which end with it.
pub(super) struct Cluster {
    pub(super) port: u16,
    scheduler: Child,
    pub(super) executors: Vec<Executor>,
    environment: Vec<(&'static str, String)>,
    /// Tokens that executors had generated when they were killed.
    lost: u64,
}

pub(super) struct Executor {
    child: Child,
    probes: u16,
}

/// The counter of tokens.
pub(super) const GENERATED: &str = "generation_tokens_total";

/// Longest time for a process to be ready.
const START: Duration = Duration::from_mins(1);

impl Cluster {
    pub(super) fn start(executors: usize) -> Self {
        Self::with(executors, &[])
    }

    /// A cluster whose processes have these variables in their environment.
    pub(super) fn with(executors: usize, environment: &[(&'static str, String)]) -> Self {
        let (port, environment) = (free_port(), environment.to_vec());
        let scheduler = scheduler(port, &environment);
        let mut cluster = Self { port, scheduler, executors: vec![], environment, lost: 0 };
        cluster.await_port();
        (0..executors).for_each(|_| cluster.add(&[]));
        cluster
    }

    pub(super) fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Starts an executor, which is ready then.
    pub(super) fn add(&mut self, more: &[&str]) {
        let executor = self.spawn(more);
        let ready = || get(executor.probes, "/readyz").is_some_and(|text| text.contains(" 200 "));
        await_it(ready, "an executor");
        self.executors.push(executor);
    }

    pub(super) fn spawn(&self, more: &[&str]) -> Executor {
        let (address, probes) = (self.address(), free_port());
        let served = format!("127.0.0.1:{probes}");
        let mut args = vec!["executor", "--scheduler", &address, "--listen", "127.0.0.1:0"];
        args.extend(["--advertise", "localhost", "--probes", &served, "--threads", "1"]);
        args.extend(more);
        let mut executor = command(&args);
        executor.envs(self.environment.clone()).stderr(Stdio::piped());
        let child = executor.spawn().expect("the command is built");
        Executor { child, probes }
    }

    pub(super) fn kill_executor(&mut self, number: usize) {
        let mut executor = self.executors.remove(number);
        self.lost += executor.count(GENERATED);
        send("-KILL", &executor.child);
        executor.child.wait().expect("its end");
    }

    /// Kills the scheduler and starts another at its port.
    pub(super) fn restart_scheduler(&mut self) {
        send("-KILL", &self.scheduler);
        self.scheduler.wait().expect("its end");
        self.scheduler = scheduler(self.port, &self.environment);
        self.await_port();
    }

    fn await_port(&self) {
        await_it(|| TcpStream::connect(("127.0.0.1", self.port)).is_ok(), "the scheduler");
    }

    /// Tokens that all executors have generated, also those that were killed.
    pub(super) fn generated(&self) -> u64 {
        self.lost + self.counts(GENERATED).iter().sum::<u64>()
    }

    /// The most bytes that each executor has had.
    pub(super) fn peak_memory(&self) -> Vec<u64> {
        let of = |executor: &Executor| {
            let status = format!("/proc/{}/status", executor.child.id());
            let status = fs::read_to_string(status).expect("a running process");
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
            1024 * kilobytes.and_then(|count| count.parse::<u64>().ok()).expect("a size")
        };
        if cfg!(target_os = "linux") { self.executors.iter().map(of).collect() } else { vec![] }
    }

    /// A counter of each executor.
    pub(super) fn counts(&self, name: &str) -> Vec<u64> {
        self.executors.iter().map(|executor| executor.count(name)).collect()
    }
}

impl Executor {
    fn count(&self, name: &str) -> u64 {
        let text = get(self.probes, "/metrics").expect("metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("setun_batch_{name} ")));
        line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
    }

    /// Its status and its words, once it has ended by itself.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let mut words = String::new();
        let errors = self.child.stderr.as_mut().expect("a pipe");
        errors.read_to_string(&mut words).expect("UTF-8");
        (self.child.wait().expect("its end").code(), words)
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        send("-TERM", &self.child);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let executors = self.executors.iter_mut().map(|executor| &mut executor.child);
        for child in executors.chain([&mut self.scheduler]) {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

fn scheduler(port: u16, environment: &[(&str, String)]) -> Child {
    let listen = format!("127.0.0.1:{port}");
    let mut scheduler = command(&["scheduler", "--listen", &listen, "--executor-timeout", "10"]);
    scheduler.envs(environment.iter().cloned()).stderr(Stdio::null());
    scheduler.spawn().expect("the command is built")
}

fn await_it(done: impl Fn() -> bool, what: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < START, "{what} is not ready");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The answer to a request, with its head.
pub(super) fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(START)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
