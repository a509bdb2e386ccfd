//! The check of a batch's input, before any of its requests is answered.

use std::{collections::HashSet, io, path::Path};

use setun::batch_file::{BatchLineError, BatchRequest};

use super::lines::{Line, Lines};
use crate::excerpt::{bounded, excerpt};
use crate::files::records::Fault;

/// Most faults of a file that are reported.
const MAX_FAULTS: usize = 100;

/// What a file has.
pub(super) struct Validated {
    pub(super) requests: usize,
    /// Why the batch fails; none of a file whose requests can be answered.
    pub(super) faults: Vec<Fault>,
}

/// Checks each line of a file: a request to this endpoint, with a key of its own.
pub(super) fn validate(
    path: &Path,
    endpoint: &str,
    max_requests: usize,
    max_line: usize,
) -> io::Result<Validated> {
    let mut lines = Lines::open(path, max_line)?;
    let (mut requests, mut faults, mut keys) = (0, vec![], HashSet::new());
    while let Some(line) = lines.next()?
        && faults.len() < MAX_FAULTS
    {
        let (number, line) = match line {
            Line::Whole(number, line) => (number, line),
            Line::TooLong(number) => {
                let message = format!("expected {max_line} bytes or less");
                faults.push(fault("line_too_long", message, None, number));
                continue;
            }
        };
        match BatchRequest::read_new(&line, &mut keys) {
            Ok(None) => {}
            Ok(Some(request)) if request.url != endpoint => {
                let found = excerpt(&request.url);
                let message =
                    format!("the url `{found}`, expected the endpoint of the batch, {endpoint}");
                faults.push(fault("mismatched_endpoint", message, Some("url"), number));
            }
            Ok(Some(_)) => requests += 1,
            Err(error) => faults.push(of_line(&error, number)),
        }
        if requests > max_requests {
            let message = format!("expected {max_requests} requests or less");
            return Ok(Validated { requests, faults: vec![of_file("too_many_requests", message)] });
        }
    }
    if requests == 0 && faults.is_empty() {
        faults.push(of_file("empty_file", "the input has no request".to_owned()));
    }
    Ok(Validated { requests, faults })
}

fn of_line(error: &BatchLineError, line: usize) -> Fault {
    let (code, param) = match error {
        BatchLineError::Method { .. } => ("invalid_method", Some("method")),
        BatchLineError::Url { .. } => ("invalid_url", Some("url")),
        BatchLineError::Repeated { .. } => ("duplicate_custom_id", Some("custom_id")),
        _ => ("invalid_json_line", None),
    };
    fault(code, error.to_string(), param, line)
}

/// A fault of the file as a whole.
pub(super) fn of_file(code: &str, message: String) -> Fault {
    Fault { code: code.to_owned(), message: bounded(message), param: None, line: None }
}

fn fault(code: &str, message: String, param: Option<&str>, line: usize) -> Fault {
    let param = param.map(str::to_owned);
    Fault { param, line: Some(line), ..of_file(code, message) }
}
