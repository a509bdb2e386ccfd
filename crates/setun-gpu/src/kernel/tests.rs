//! Every variant of every kernel, as drivers of each kind get it.

use naga::{
    Module, ShaderStage,
    back::{hlsl, msl, spv},
    front::wgsl,
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};

use super::*;
use crate::lowering::MAX_OWN_WORDS;

/// Kernels of the widest row that is quantized in passing too.
fn kernels() -> impl Iterator<Item = Kernel> {
    let words = u32::try_from(MAX_OWN_WORDS).expect("a small number");
    let widest = move |product: Product| match product.input {
        Input::Floats { .. } => Some(Product { input: Input::Floats { words }, ..product }),
        Input::Codes { .. } | Input::Tiles => None,
    };
    let widest = move |kernel| match kernel {
        Kernel::TernaryMatmul(product) => widest(product).map(Kernel::TernaryMatmul),
        Kernel::Gate(activation, product) => {
            widest(product).map(|product| Kernel::Gate(activation, product))
        }
        _ => None,
    };
    Kernel::all().chain(Kernel::all().filter_map(widest))
}

fn each(check: impl Fn(Kernel, &Module, &ModuleInfo)) {
    for kernel in kernels() {
        for language in Language::all() {
            let source = kernel.source(language);
            let capabilities = match language.reduction {
                Reduction::Shared => Capabilities::empty(),
                Reduction::Subgroup => Capabilities::SUBGROUP,
            };
            let module = wgsl::parse_str(&source)
                .unwrap_or_else(|error| panic!("{kernel:?}: {}", error.emit_to_string(&source)));
            let info = Validator::new(ValidationFlags::all(), capabilities)
                .validate(&module)
                .unwrap_or_else(|error| panic!("{kernel:?}: {}", error.emit_to_string(&source)));
            check(kernel, &module, &info);
        }
    }
}

#[test]
fn every_variant_binds_its_arguments() {
    each(|kernel, module, _| {
        let storage = module
            .global_variables
            .iter()
            .filter(|(_, variable)| matches!(variable.space, naga::AddressSpace::Storage { .. }));
        assert_eq!(storage.count(), kernel.accesses().len() + 1, "{kernel:?}");
        // WebGPU promises no more than these, and 16 KiB of a workgroup's memory.
        assert!(kernel.accesses().len() < 8, "{kernel:?}");
        let layouts = module
            .global_variables
            .iter()
            .filter(|(_, variable)| variable.space == naga::AddressSpace::WorkGroup);
        let context = module.to_ctx();
        let bytes: u32 =
            layouts.map(|(_, variable)| module.types[variable.ty].inner.size(context)).sum();
        assert!(bytes <= 16_384, "{kernel:?}: {bytes} bytes of a workgroup's memory");
    });
}

#[test]
fn every_variant_becomes_spirv() {
    each(|kernel, module, info| {
        let words = spv::write_vec(module, info, &spv::Options::default(), None);
        assert!(!words.unwrap_or_else(|error| panic!("{kernel:?}: {error}")).is_empty());
    });
}

#[test]
fn every_variant_becomes_msl() {
    let options =
        msl::Options { lang_version: (2, 4), fake_missing_bindings: true, ..<_>::default() };
    each(|kernel, module, info| {
        let pipeline = msl::PipelineOptions::default();
        let (source, _) = msl::write_string(module, info, &options, &pipeline)
            .unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
        assert!(source.contains("kernel void"), "{kernel:?}");
    });
}

#[test]
fn every_variant_becomes_hlsl() {
    let options = hlsl::Options { fake_missing_bindings: true, ..<_>::default() };
    each(|kernel, module, info| {
        let mut source = String::new();
        let entry =
            hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, "main".into())) };
        hlsl::Writer::new(&mut source, &options, &entry)
            .write(module, info, None)
            .unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
        assert!(source.contains("numthreads"), "{kernel:?}");
    });
}
