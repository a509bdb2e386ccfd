//! A proxy that hands out answers in pieces of a few bytes, so that events reach clients cut anywhere.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::test::seed;

/// Most bytes of a piece.
const MOST: u32 = 9;

/// Between two pieces, so that a client seldom reads them as one.
const PAUSE: Duration = Duration::from_micros(50);

/// Starts a proxy before a server, for as long as this process runs, and returns its address.
pub(super) fn start(url: &str) -> Result<String> {
    let server = url.strip_prefix("http://").context("an address")?.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = server.clone();
            // A connection that breaks is one that a side has closed, which the client tells.
            thread::spawn(move || pass(&client, &server));
        }
    });
    Ok(format!("http://{address}"))
}

fn pass(client: &TcpStream, server: &str) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut requested) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut requests, &mut requested);
        requested.shutdown(Shutdown::Write)
    });
    let ended = split(&server, client);
    client.shutdown(Shutdown::Both)?;
    server.shutdown(Shutdown::Both)?;
    ended
}

fn split(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut state = seed::current();
    let mut bytes = [0; 4096];
    loop {
        let read = from.read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        let mut rest = &bytes[..read];
        while !rest.is_empty() {
            // A linear congruential generator, whose high bits are the better ones.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let most = 1 + (state >> 16) % MOST;
            let (piece, after) = rest.split_at(rest.len().min(most as usize));
            to.write_all(piece)?;
            rest = after;
            thread::sleep(PAUSE);
        }
    }
}
