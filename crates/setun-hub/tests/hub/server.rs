//! A server of files over HTTP/1.1 that misbehaves on demand, and counts its requests.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpListener, TcpStream},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Bytes that are written at a time.
const PIECE: usize = 16 << 10;

/// What a request said.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, with its query.
    pub(crate) path: String,
    pub(crate) range: Option<Range<u64>>,
    pub(crate) if_range: Option<String>,
    pub(crate) token: Option<String>,
}

/// How to answer a request for the bytes of a file.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Breaks the connection after this number of bytes of the body.
    Break(usize),
    /// Announces this number of bytes too many, and closes.
    SayMore(u64),
    /// Announces this number of bytes too few.
    SayFewer(u64),
    /// Flips a bit of the first byte that is sent.
    Wrong,
    /// Answers with a status and headers.
    Status(u16, Vec<(&'static str, String)>),
    /// Sends the whole file whatever was requested.
    IgnoreRange,
    /// Names another address.
    Redirect(String),
    /// Has another file from now on.
    Become(Vec<u8>, &'static str),
    /// The same, and gives a part of it only to a request for one of the first.
    BecomeUnasked(Vec<u8>, &'static str),
    /// Waits after each piece.
    Slow(Duration),
    /// Sends nothing of the body until this is set.
    Held(Arc<AtomicBool>),
    /// Sends single bytes, and waits after each.
    Trickle(Duration),
    /// Uses chunked transfer encoding, with this number of bytes too many.
    Chunked(usize),
}

struct Rule {
    path: String,
    /// Of these methods; empty for all.
    method: &'static str,
    /// Where the range begins, if that matters.
    start: Option<u64>,
    times: usize,
    act: Act,
}

#[derive(Clone)]
struct File {
    bytes: Arc<Vec<u8>>,
    etag: &'static str,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, File>,
    rules: Vec<Rule>,
    requests: Vec<Request>,
    /// Connections that are open.
    connections: usize,
    /// Bytes of bodies that went out.
    sent: u64,
    /// The `x-linked-etag` of redirects.
    linked: BTreeMap<String, String>,
}

/// See the module. It ends with the process.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State::default()));
        let server = Self { state, port };
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = accepting.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    /// An address of this server.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The host's name in the store.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1_{}", self.port)
    }

    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>, etag: &'static str) -> &Self {
        let file = File { bytes: Arc::new(bytes.into()), etag };
        self.state().files.insert(path.into(), file);
        self
    }

    /// How to answer the next `times` requests with bodies for a path.
    pub(crate) fn rule(&self, path: &str, times: usize, act: Act) -> &Self {
        self.add(path, "GET", None, times, act)
    }

    /// The same, of any method.
    pub(crate) fn rule_of_all(&self, path: &str, times: usize, act: Act) -> &Self {
        self.add(path, "", None, times, act)
    }

    /// The same, of requests whose range begins at a byte.
    pub(crate) fn rule_at(&self, path: &str, start: u64, times: usize, act: Act) -> &Self {
        self.add(path, "GET", Some(start), times, act)
    }

    fn add(
        &self,
        path: &str,
        method: &'static str,
        start: Option<u64>,
        times: usize,
        act: Act,
    ) -> &Self {
        self.state().rules.push(Rule { path: path.into(), method, start, times, act });
        self
    }

    pub(crate) fn clear_rules(&self) {
        self.state().rules.clear();
    }

    /// Sets the `x-linked-etag` of redirects of this path.
    pub(crate) fn link(&self, path: &str, etag: &str) -> &Self {
        self.state().linked.insert(path.into(), etag.into());
        self
    }

    /// Requests so far, which are forgotten.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().requests)
    }

    /// First bytes of the ranges of a file that were requested so far, sorted; all are forgotten.
    pub(crate) fn starts(&self, path: &str) -> Vec<u64> {
        let gets = self
            .requests()
            .into_iter()
            .filter(|request| request.method == "GET" && request.path == path);
        let mut starts: Vec<_> =
            gets.map(|request| request.range.map_or(u64::MAX, |range| range.start)).collect();
        starts.sort_unstable();
        starts
    }

    /// Bytes of bodies that went out so far; counting begins anew.
    pub(crate) fn sent(&self) -> u64 {
        std::mem::take(&mut self.state().sent)
    }

    /// Bytes of bodies that went out so far.
    pub(crate) fn sent_so_far(&self) -> u64 {
        self.state().sent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections that are open.
    #[allow(dead_code, reason = "the tests of the command ask")]
    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    fn serve(&self, stream: TcpStream) {
        self.state().connections += 1;
        self.answer_all(stream);
        self.state().connections -= 1;
    }

    fn answer_all(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
        let mut stream = stream;
        while let Some(request) = read_request(&mut reader) {
            self.state().requests.push(request.clone());
            if self.answer(&request, &mut stream).is_err() {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// The rule for a request, one time of which is used up.
    fn act(&self, request: &Request) -> Option<Act> {
        let mut state = self.state();
        let start = request.range.as_ref().map(|range| range.start);
        let rule = state.rules.iter_mut().find(|rule| {
            rule.times > 0
                && rule.path == request.path
                && (rule.method.is_empty() || rule.method == request.method)
                && (rule.start.is_none() || rule.start == start)
        })?;
        rule.times -= 1;
        Some(rule.act.clone())
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut act = self.act(request);
        let mut unasked = false;
        if let Some(Act::Become(bytes, etag) | Act::BecomeUnasked(bytes, etag)) = &act {
            self.put(&request.path, bytes.clone(), etag);
            unasked = matches!(act, Some(Act::BecomeUnasked(..)));
            act = None;
        }
        match &act {
            Some(Act::Status(status, headers)) => return head(stream, *status, headers, Some(0)),
            Some(Act::Redirect(location)) => {
                let mut headers = vec![("location", location.clone())];
                let linked = self.state().linked.get(&request.path).cloned();
                headers.extend(linked.map(|etag| ("x-linked-etag", etag)));
                return head(stream, 302, &headers, Some(0));
            }
            _ => {}
        }
        let file = self.state().files.get(&request.path).cloned();
        let Some(File { bytes, etag }) = file else { return head(stream, 404, &[], Some(0)) };
        let ignored = matches!(act, Some(Act::IgnoreRange));
        let same = request.if_range.as_ref().is_none_or(|known| unasked || known == etag);
        let range = request.range.clone().filter(|_| !ignored && same);
        let mut headers = vec![("etag", etag.to_owned())];
        if !ignored {
            headers.push(("accept-ranges", "bytes".into()));
        }
        let size = bytes.len();
        let (status, body) = match range {
            Some(range) if range.start >= size as u64 => {
                headers.push(("content-range", format!("bytes */{size}")));
                return head(stream, 416, &headers, Some(0));
            }
            Some(range) => {
                let at = |offset: u64| usize::try_from(offset).unwrap_or(size).min(size);
                let (start, end) = (at(range.start), at(range.end));
                headers.push(("content-range", format!("bytes {start}-{}/{size}", end - 1)));
                (206, &bytes[start..end])
            }
            None => (200, &bytes[..]),
        };
        if request.method == "HEAD" {
            return head(stream, status, &headers, Some(body.len() as u64));
        }
        self.send(status, &headers, body, act.as_ref(), stream)
    }

    fn send(
        &self,
        status: u16,
        headers: &[(&str, String)],
        body: &[u8],
        act: Option<&Act>,
        stream: &mut TcpStream,
    ) -> std::io::Result<()> {
        let mut body = body.to_vec();
        let mut length = Some(body.len() as u64);
        let (mut most, mut pause, mut size) = (usize::MAX, Duration::ZERO, PIECE);
        match act {
            Some(Act::Break(after)) => most = *after,
            Some(Act::SayMore(more)) => {
                length = length.map(|length| length + more);
                most = body.len();
            }
            Some(Act::SayFewer(fewer)) => length = length.map(|length| length - fewer),
            Some(Act::Wrong) => body[0] ^= 1,
            Some(Act::Slow(wait)) => pause = *wait,
            Some(Act::Trickle(wait)) => (pause, size) = (*wait, 1),
            Some(Act::Chunked(extra)) => {
                body.extend(vec![0xAA; *extra]);
                length = None;
            }
            _ => {}
        }
        head(stream, status, headers, length)?;
        while matches!(act, Some(Act::Held(go)) if !go.load(Ordering::Relaxed)) {
            thread::sleep(Duration::from_millis(5));
        }
        let mut gone = 0;
        for piece in body.chunks(size) {
            let piece = &piece[..piece.len().min(most - gone)];
            // Before the client can have it, which may look at once.
            self.state().sent += piece.len() as u64;
            if length.is_none() {
                write!(stream, "{:x}\r\n", piece.len())?;
            }
            stream.write_all(piece)?;
            if length.is_none() {
                stream.write_all(b"\r\n")?;
            }
            stream.flush()?;
            gone += piece.len();
            if gone == most {
                break;
            }
            thread::sleep(pause);
        }
        if length.is_none() {
            stream.write_all(b"0\r\n\r\n")?;
        }
        if most < usize::MAX {
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

fn head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    length: Option<u64>,
) -> std::io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} Some\r\n").into_bytes();
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n")?;
    }
    match length {
        Some(length) => write!(text, "content-length: {length}\r\n\r\n")?,
        None => write!(text, "transfer-encoding: chunked\r\n\r\n")?,
    }
    stream.write_all(&text)?;
    stream.flush()
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut request = Request { method, path, range: None, if_range: None, token: None };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim().split_once(':') else { return Some(request) };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1);
            }
            "if-range" => request.if_range = Some(value.to_owned()),
            "authorization" => request.token = Some(value.to_owned()),
            _ => {}
        }
    }
}
