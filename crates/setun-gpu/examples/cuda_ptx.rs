//! Writes the PTX of every CUDA kernel: `cuda_ptx FOLDER ARCHITECTURE…`. The stage `cuda` of
//! `cargo xtask test` gives it to the assembler.

use std::{env, error::Error, fs, path::PathBuf};

use setun_gpu::{
    cuda::{Target, compile},
    kernel::{Input, Kernel, Product},
};
use setun_ops::op::Activation;

/// Columns of real models whose rows blocks quantize by themselves.
const REAL_COLUMNS: [u32; 4] = [640, 2560, 4096, 6912];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("cuda_ptx FOLDER ARCHITECTURE…")?);
    for architecture in arguments {
        let target = Target::Ptx(architecture.parse()?);
        let folder = folder.join(&architecture);
        fs::create_dir_all(&folder)?;
        for kernel in Kernel::all().filter(|kernel| kernel.has_cuda()).chain(real_products()) {
            let code = compile(&kernel.cuda(), target)
                .map_err(|error| format!("{kernel:?} for {architecture}: {error}"))?;
            let code = String::from_utf8(code)?;
            fs::write(folder.join(file_name(kernel)), code.trim_end_matches('\0'))?;
        }
    }
    Ok(())
}

fn real_products() -> impl Iterator<Item = Kernel> {
    REAL_COLUMNS.into_iter().flat_map(|columns| {
        let input = Input::Floats { words: columns.next_multiple_of(128) / 4 };
        let product = Product { grouped: false, input };
        let gates = [Activation::ReluSquared, Activation::Silu];
        let gates = gates.map(|activation| Kernel::Gate(activation, product));
        gates.into_iter().chain([Kernel::TernaryMatmul(product)])
    })
}

/// As short as the variant allows, with nothing that a file system or a shell minds.
fn file_name(kernel: Kernel) -> String {
    let variant = match kernel {
        Kernel::TernaryMatmul(product) => of_product(product),
        Kernel::Gate(activation, product) => format!("{activation:?} {}", of_product(product)),
        Kernel::Embed(table) => format!("{table:?}"),
        Kernel::Head { table, columns } => format!("{table:?} rows-{columns}"),
        Kernel::RopeAppend(element) => format!("{element:?}"),
        Kernel::Attention { element, chunks } => {
            format!("{element:?} {}", if chunks { "chunks" } else { "whole" })
        }
        Kernel::Peak(products) => format!("{products:?}"),
        Kernel::Quantize { grouped } => if grouped { "grouped" } else { "" }.to_owned(),
        _ => String::new(),
    };
    let name = format!("{} {variant}", kernel.cuda().name).to_lowercase();
    format!("{}.ptx", name.trim().replace(' ', "."))
}

fn of_product(product: Product) -> String {
    let input = match product.input {
        Input::Tiles => "tiles".to_owned(),
        Input::Codes { columns } => format!("rows-{columns}"),
        Input::Floats { words } => format!("floats-{}", 4 * words),
    };
    if product.grouped { format!("grouped {input}") } else { input }
}
