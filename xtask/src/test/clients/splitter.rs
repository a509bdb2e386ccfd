//! A proxy that hands out answers in pieces of a few bytes, so that events reach clients cut anywhere.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// Most bytes of a piece.
const MOST: u64 = 9;

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
    let mut state = super::seed();
    let mut bytes = [0; 4096];
    loop {
        let mut read = match from.read(&mut bytes)? {
            0 => return Ok(()),
            read => &bytes[..read],
        };
        while !read.is_empty() {
            let most = usize::try_from(1 + next(&mut state) % MOST).unwrap_or(1);
            let (piece, rest) = read.split_at(most.min(read.len()));
            to.write_all(piece)?;
            read = rest;
            thread::sleep(PAUSE);
        }
    }
}

/// The generator splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
