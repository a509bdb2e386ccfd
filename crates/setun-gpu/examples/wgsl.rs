//! Prints every variant of every kernel as JSON, for compilers other than the parser of the tests:
//! `[{"name": …, "bindings": [access, …], "source": …}, …]`.

use setun_gpu::kernel::{Access, Dot, Kernel};

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    let variants =
        Kernel::all().flat_map(|kernel| [Dot::Packed, Dot::Shifts].map(|dot| (kernel, dot)));
    let list: Vec<_> = variants
        .map(|(kernel, dot)| {
            let own = kernel.accesses().iter().map(|access| match access {
                Access::Read => "read-only-storage",
                Access::Write => "storage",
            });
            let bindings: Vec<_> =
                ["uniform", "read-only-storage"].into_iter().chain(own).collect();
            let (name, source) = (format!("{kernel:?}, {dot:?}"), kernel.source(dot));
            serde_json::json!({ "name": name, "bindings": bindings, "source": source })
        })
        .collect();
    println!("{}", serde_json::Value::from(list));
}
