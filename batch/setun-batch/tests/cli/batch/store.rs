//! A store that speaks the part of S3's interface that a job needs, and that fails as it is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// The bucket.
pub(super) const BUCKET: &str = "bucket";

/// A store, which serves until the tests end.
#[derive(Clone)]
pub(super) struct Store(Arc<Inner>);

struct Inner {
    port: u16,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Of 100 requests, how many fail.
    failing: u64,
    /// Bytes that it adds to the sizes that it tells without a body.
    lie: i64,
    conditions: Conditions,
    /// Objects whose first put has been refused.
    refused: Mutex<BTreeSet<String>>,
    requests: AtomicU64,
    failures: AtomicU64,
}

/// What a store does with puts that must not replace an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conditions {
    Kept,
    /// It replaces what is there.
    Ignored,
    /// It refuses the first put of each object, as if another one were under way.
    Conflicting,
}

struct Request {
    method: String,
    /// Without the bucket.
    key: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Status, headers and body of an answer.
type Answer = (u16, String, Vec<u8>);

/// How a request fails.
#[derive(Clone, Copy)]
enum Failure {
    Status(u16),
    /// The body ends before the length that is said.
    Truncated,
    /// The connection is closed before anything is done.
    Closed,
    /// What is asked for is done, and its answer lost.
    Lost,
}

impl Store {
    pub(super) fn start(failing: u64, lie: i64, conditions: Conditions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (objects, requests, failures, refused) = Default::default();
        let inner = Inner { port, objects, failing, lie, conditions, refused, requests, failures };
        let store = Self(Arc::new(inner));
        let served = store.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = served.clone();
                thread::spawn(move || store.serve(stream));
            }
        });
        store
    }

    /// The environment of a process that uses it.
    pub(super) fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ACCESS_KEY_ID", "key".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.0.port)),
        ]
    }

    pub(super) fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.objects.lock().expect("no panic")
    }

    /// How many requests have failed.
    pub(super) fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    fn serve(&self, stream: TcpStream) {
        let Some(request) = read(&stream) else { return };
        let failure = self.failure(&request.method);
        if let Some(Failure::Closed) = failure {
            return;
        }
        let (status, headers, body) = match failure {
            Some(Failure::Status(status)) => (status, String::new(), b"<Error/>".to_vec()),
            _ => self.answer(&request),
        };
        if let Some(Failure::Lost) = failure {
            return;
        }
        let (mut length, mut sent) = (body.len(), body.len());
        if let Some(Failure::Truncated) = failure {
            sent /= 2;
        }
        if let Some(size) = headers.split("x-size: ").nth(1) {
            let size: i64 = size.trim().parse().expect("a number"); // the body is not sent
            length = usize::try_from(size + self.0.lie).expect("a size");
        }
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
        );
        let mut stream = stream;
        // A client that has left needs no answer.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
    }

    /// How the next request fails, if it does.
    fn failure(&self, method: &str) -> Option<Failure> {
        let number = self.0.requests.fetch_add(1, Ordering::Relaxed);
        // The multiplier spreads the failing ones.
        let drawn = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        if drawn % 100 >= self.0.failing {
            return None;
        }
        self.0.failures.fetch_add(1, Ordering::Relaxed);
        Some(match drawn / 100 % 4 {
            0 => Failure::Status(500),
            1 => Failure::Status(503),
            2 if method == "GET" => Failure::Truncated,
            2 => Failure::Lost,
            _ => Failure::Closed,
        })
    }

    fn answer(&self, request: &Request) -> Answer {
        let mut objects = self.objects();
        let none = || (404, String::new(), b"<Error><Code>NoSuchKey</Code></Error>".to_vec());
        match &*request.method {
            "GET" if request.query.contains("list-type=2") => {
                let prefix = parameter(&request.query, "prefix");
                (200, "content-type: application/xml\r\n".into(), self.list(&objects, &prefix))
            }
            "GET" | "HEAD" => match objects.get(&request.key) {
                None => none(),
                Some(bytes) => object(request, bytes),
            },
            "PUT" => {
                let must_be_new = request.headers.contains_key("if-none-match")
                    && self.0.conditions != Conditions::Ignored;
                if must_be_new && objects.contains_key(&request.key) {
                    return (412, String::new(), vec![]);
                }
                let mut refused = self.0.refused.lock().expect("no panic");
                if must_be_new
                    && self.0.conditions == Conditions::Conflicting
                    && refused.insert(request.key.clone())
                {
                    return (409, String::new(), vec![]);
                }
                objects.insert(request.key.clone(), request.body.clone());
                (200, format!("etag: \"{}\"\r\n", request.body.len()), vec![])
            }
            "DELETE" => {
                objects.remove(&request.key);
                (204, String::new(), vec![])
            }
            other => panic!("{other} {} {}", request.key, request.query),
        }
    }

    fn list(&self, objects: &BTreeMap<String, Vec<u8>>, prefix: &str) -> Vec<u8> {
        let mut text = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        for (key, bytes) in objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let size = i64::try_from(bytes.len()).expect("a size") + self.0.lie;
            write!(
                text,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"{}\"</ETag>\
                 <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                bytes.len()
            )
            .expect("a text");
        }
        (text + "</ListBucketResult>").into_bytes()
    }
}

/// An object, or a part of it.
fn object(request: &Request, bytes: &[u8]) -> Answer {
    let size = bytes.len();
    let common = format!("etag: \"{size}\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n");
    if request.method == "HEAD" {
        return (200, format!("{common}x-size: {size}\r\n"), vec![]);
    }
    let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes="));
    let Some((start, end)) = range.and_then(|range| range.split_once('-')) else {
        return (200, common, bytes.to_vec());
    };
    let start: usize = start.parse().expect("a number");
    let end = end.parse().map_or(size, |end: usize| (end + 1).min(size));
    if start >= size {
        return (416, common, vec![]);
    }
    let range = format!("content-range: bytes {start}-{}/{size}\r\n", end - 1);
    (206, common + &range, bytes[start..end].to_vec())
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = vec![];
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let mut words = lines.first()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.trim_start_matches('/').strip_prefix(BUCKET)?.trim_start_matches('/');
    let headers: BTreeMap<_, _> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, key: decoded(key), query: query.to_owned(), headers, body })
}

fn parameter(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| decoded(value))
        .unwrap_or_default()
}

/// Without percent-encoding.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).expect("UTF-8")
}
