//! Lines of a file, each within a bound.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use futures::{Stream, stream};
use setun::batch_file::{BatchRequest, id_of};
use tokio::{sync::mpsc, task::spawn_blocking};

/// Requests that are read before there is a place for them.
const AHEAD: usize = 4;

/// The lines of a file.
pub(super) struct Lines {
    reader: BufReader<File>,
    number: usize,
    most: usize,
}

/// A line, with its number from 1.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Whole(usize, Vec<u8>),
    /// It has more bytes than a line may have.
    TooLong(usize),
}

impl Lines {
    pub(super) fn open(path: &Path, most: usize) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(File::open(path)?), number: 0, most })
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = vec![];
        let limit = u64::try_from(self.most).unwrap_or(u64::MAX).saturating_add(1);
        self.reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > self.most {
            self.skip()?;
            return Ok(Some(Line::TooLong(self.number)));
        }
        Ok(Some(Line::Whole(self.number, line)))
    }

    /// Passes over the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let there = self.reader.fill_buf()?;
            let end = there.iter().position(|&byte| byte == b'\n');
            let (length, is_over) = (there.len(), there.is_empty() || end.is_some());
            self.reader.consume(end.map_or(length, |end| end + 1));
            if is_over {
                return Ok(());
            }
        }
    }
}

/// The requests of a file that has been validated, but for those whose ids are done. They are read as they are
/// asked for.
pub(super) fn requests(
    path: PathBuf,
    most: usize,
    done: HashSet<String>,
) -> impl Stream<Item = io::Result<BatchRequest>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    spawn_blocking(move || {
        let read = || {
            let mut lines = Lines::open(&path, most)?;
            while let Some(line) = lines.next()? {
                let Line::Whole(_, line) = line else { continue };
                let request = BatchRequest::read(&line)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                let Some(request) = request.filter(|one| !done.contains(&id_of(&one.custom_id)))
                else {
                    continue;
                };
                if sender.blocking_send(Ok(request)).is_err() {
                    break; // nobody asks any more
                }
            }
            Ok(())
        };
        if let Err(error) = read() {
            let _ = sender.blocking_send(Err(error));
        }
    });
    stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|request| (request, receiver))
    })
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let path = env::temp_dir().join(format!("setun-lines-{}", process::id()));
        fs::write(&path, b"ab\n\nabcd\nabc\nabcdefg").expect("it is written");
        let mut lines = Lines::open(&path, 3).expect("a file");
        let mut all = vec![];
        while let Some(line) = lines.next().expect("it is read") {
            all.push(line);
        }
        fs::remove_file(&path).expect("it is removed");
        let whole = |number, line: &[u8]| Line::Whole(number, line.to_vec());
        let long = Line::TooLong;
        assert_eq!(all, [whole(1, b"ab"), whole(2, b""), long(3), whole(4, b"abc"), long(5)]);
    }
}
