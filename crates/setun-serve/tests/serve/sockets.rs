//! Requests as bytes: wrong ones, other versions of HTTP, and right ones in pieces.

use crate::{
    cancellation::{Server, request},
    support::shared,
};

/// A body whose tokens are asked for.
const BODY: &str = r#"{"prompt": "A bear, ein Bär, 一只熊"}"#;

/// An end that frames no request.
const CLOSE: &str = "connection: close\r\n\r\n";

/// What the head or the body of a request says of its length, its host and its version; how the answer
/// begins, and a word in it. Where no answer has to come, the beginning is empty.
#[test]
fn requests_that_are_framed_wrongly_get_one_answer_of_their_fault() {
    let server = Server::start(shared());
    let many = "x: y\r\n".repeat(200);
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    let upgrade =
        "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n";
    let chunked = "transfer-encoding: chunked\r\n";
    for (head, body, begin, word) in [
        ("content-length: 9\r\n", "{\"prompt\": \"A\"}", "HTTP/1.1 400 ", "invalid_json"),
        ("content-length: -1\r\n", "{}", "HTTP/1.1 400 ", ""),
        ("content-length: 2x\r\n", "{}", "HTTP/1.1 400 ", ""),
        ("content-length: 99999999999999999999\r\n", "{}", "HTTP/1.1 400 ", ""),
        ("content-length: 99999999999\r\n", "{}", "HTTP/1.1 413 ", "request_too_large"),
        ("content-length: 2\r\ncontent-length: 3\r\n", "{}", "HTTP/1.1 400 ", ""),
        ("transfer-encoding: gzip\r\n", "{}", "HTTP/1.1 400 ", ""),
        (chunked, "zz\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 400 ", "incomplete_body"),
        (chunked, "fffffffffffffffff\r\n{}\r\n", "HTTP/1.1 400 ", "incomplete_body"),
        (chunked, "2\r\n{}xx0\r\n\r\n", "HTTP/1.1 400 ", "incomplete_body"),
        ("no colon\r\n", "", "HTTP/1.1 400 ", ""),
        ("spaced : x\r\n", "", "HTTP/1.1 400 ", ""),
        ("x: \0\r\n", "", "HTTP/1.1 400 ", ""),
        (&many, "", "HTTP/1.1 431 ", ""),
        (&long, "", "", ""),
        (upgrade, "", "HTTP/1.1 400 ", "invalid_json"),
        (
            "expect: 100-continue\r\ncontent-length: 2\r\n",
            "{}",
            "HTTP/1.1 100 ",
            "missing_required",
        ),
    ] {
        let head = format!("POST /tokenize HTTP/1.1\r\nhost: localhost\r\n{head}{CLOSE}{body}");
        let mut connection = server.send(&[]);
        connection.send(head.as_bytes());
        let answer = connection.rest();
        assert!(answer.starts_with(begin) && answer.contains(word), "{head:.300}: {answer}");
        assert_eq!(
            answer.matches("\"error\":").count(),
            usize::from(!word.is_empty()),
            "{head:.300}"
        );
        assert!(!answer.contains("HTTP/1.1 2"), "{head:.300}: {answer}");
    }
    for (head, begin, word) in [
        (
            "GET http://localhost/version HTTP/1.1\r\nhost: localhost\r\n",
            "HTTP/1.1 200 ",
            "version",
        ),
        ("GET /version HTTP/1.1\r\n", "HTTP/1.1 200 ", "version"),
        ("GET /version HTTP/1.1\r\nhost: localhost\r\nhost: a\r\n", "HTTP/1.1 4", ""),
        ("GET /version HTTP/1.0\r\n", "HTTP/1.0 200 ", "version"),
        ("GET /version HTTP/9.9\r\n", "HTTP/1.1 400 ", ""),
        ("GET /a b HTTP/1.1\r\n", "HTTP/1.1 400 ", ""),
        ("GET\r\n", "HTTP/1.1 400 ", ""),
        ("\r\n\r\nGET\r\n", "HTTP/1.1 400 ", ""),
        ("\x16\x03\x01\x02\0", "HTTP/1.1 400 ", ""),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "", ""),
    ] {
        let answer = server.send(format!("{head}{CLOSE}").as_bytes()).rest();
        assert!(answer.starts_with(begin) && answer.contains(word), "{head:?}: {answer}");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{head:?}: {answer}");
    }
    assert!(server.end());
}

/// With a length, in chunks that split letters, and behind another request; cut at each byte, and byte
/// by byte.
#[test]
fn requests_in_pieces_are_those_that_come_whole() {
    let server = Server::start(shared());
    let next = b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let with_length = request("/tokenize", &serde_json::from_str(BODY).expect("JSON"));
    for (request, answers) in
        [(with_length.clone(), 1), (in_chunks(), 1), ([&next[..], next, &with_length].concat(), 3)]
    {
        let expected = bodies(&server.send(&request).text());
        assert_eq!(expected.len(), answers, "{expected:?}");
        assert!(expected[answers - 1].contains("\"tokens\":["), "{expected:?}");
        let send = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut connection = server.send(&[]);
            pieces.for_each(|piece| connection.send(piece));
            bodies(&connection.text())
        };
        for cut in 1..request.len() {
            let pieces = [&request[..cut], &request[cut..]];
            assert_eq!(send(&mut pieces.into_iter()), expected, "cut at {cut}");
        }
        assert_eq!(send(&mut request.chunks(1)), expected);
    }
    assert!(server.end());
}

/// The body in chunks of three bytes, with an extension and a trailer.
fn in_chunks() -> Vec<u8> {
    let head = "POST /tokenize HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n";
    let mut request = format!("{head}{CLOSE}").into_bytes();
    for piece in BODY.as_bytes().chunks(3) {
        request.extend_from_slice(format!("{:x};a=b\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\nx: y\r\n\r\n");
    request
}

/// The bodies of answers in their order.
#[track_caller]
fn bodies(mut answers: &str) -> Vec<String> {
    let mut bodies = vec![];
    while !answers.is_empty() {
        assert!(answers.starts_with("HTTP/1.1 200 "), "{answers}");
        let (head, rest) = answers.split_once("\r\n\r\n").expect("a head");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
        bodies.push(rest[..length].to_owned());
        answers = &rest[length..];
    }
    bodies
}
