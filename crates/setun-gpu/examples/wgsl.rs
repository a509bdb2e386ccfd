//! Prints every variant of every kernel as JSON, for compilers other than the parser of the tests:
//! `[{"name": …, "bindings": [access, …], "features": [name, …], "source": …}, …]`.

use setun_gpu::kernel::{Access, Kernel, Language, Reduction};

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    let variants =
        Kernel::all().flat_map(|kernel| Language::all().map(move |language| (kernel, language)));
    let list: Vec<_> = variants
        .map(|(kernel, language)| {
            let storage = |access: &Access| match access {
                Access::Read => "read-only-storage",
                Access::Write => "storage",
            };
            let step = storage(&kernel.step_access());
            let own = kernel.accesses().iter().map(storage);
            let bindings: Vec<_> = ["uniform", step].into_iter().chain(own).collect();
            let features: &[&str] = match language.reduction {
                Reduction::Shared => &[],
                Reduction::Subgroup => &["subgroups"],
            };
            serde_json::json!({
                "name": format!("{kernel:?}, {language:?}"),
                "bindings": bindings,
                "features": features,
                "source": kernel.standard_source(language),
            })
        })
        .collect();
    println!("{}", serde_json::Value::from(list));
}
