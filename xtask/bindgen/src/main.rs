//! Binds a compiled module to JavaScript, and reports what a shipped module really contains.
//!
//! `setun-bindgen bind MODULE.wasm FOLDER` writes `setun.js`, `setun.d.ts` and `setun_bg.wasm`,
//! and for a threaded module `threads.js` and `memory.js`.
//! `setun-bindgen rank MODULE.wasm` names its functions so that like ones lie together.
//! `setun-bindgen snip MODULE.wasm PART ...` makes a trap of each function with a part in its name.
//! `setun-bindgen scan MODULE.wasm` prints a JSON object: instructions by proposal, and memory.

mod bind;
mod order;
mod rank;
mod scan;
mod snip;

use std::path::Path;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bind", module, folder] => bind::bind(Path::new(module), Path::new(folder)),
        ["rank", module] => Ok(std::fs::write(module, rank::rank(&std::fs::read(module)?)?)?),
        ["snip", module, ref parts @ ..] => {
            Ok(std::fs::write(module, snip::snip(&std::fs::read(module)?, parts)?)?)
        }
        ["scan", module] => {
            println!("{}", scan::scan(&std::fs::read(module)?)?);
            Ok(())
        }
        _ => bail!(
            "usage: setun-bindgen bind MODULE.wasm FOLDER | rank MODULE.wasm | \
             snip MODULE.wasm PART ... | scan MODULE.wasm"
        ),
    }
}
