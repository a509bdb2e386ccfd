//! Models split over the processor and the system's Vulkan device: close to the CPU, and of two
//! stages on the device to the bit as of one.

use std::path::Path;

use setun::{
    forward::{ModelError, RequestedOutput, Split, TransformerOptions},
    ops::{CacheElement, OpsError, ScalarBackend},
};
use setun_cpu::{CpuBackend, CpuOptions};
use setun_gpu::{GpuBackend, Recorder};
use setun_tests::{
    checkpoint,
    golden::{Golden, MODELS},
    run::{Runner, assert_near, transformer},
    stages::{NewStage, Session, on, stages},
};

use super::{device, gpu};

fn cpu() -> CpuBackend {
    CpuBackend::new(CpuOptions { level: None, threads: Some(2) }).expect("a level")
}

fn options(cache_element: CacheElement) -> TransformerOptions {
    TransformerOptions { cache_element, ranked: true, ..TransformerOptions::default() }
}

/// Two stages, the first of one layer.
fn split(folder: &Path, two: [NewStage<'_>; 2], cache: CacheElement) -> Split {
    let layers = checkpoint::weights(folder).0.layers.len();
    let two = [1, layers - 1].into_iter().zip(two).collect();
    let stages = stages(folder, two, options(cache)).expect("stages");
    Split::new(stages).expect("a model").with_piece_rows(10)
}

fn goldens() -> impl Iterator<Item = Golden> {
    let all = MODELS.into_iter().map(Golden::read);
    all.filter(|golden| checkpoint::weights(&golden.folder).0.layers.len() > 1)
}

#[test]
fn tokens_are_those_of_the_cpu() {
    for golden in goldens() {
        let ids = golden.ids("p33.ids");
        let whole = transformer(&golden.folder, cpu(), options(CacheElement::F32));
        let expected = Runner::over(Box::new(whole)).logits(&ids, ids.len());
        let orders: [[NewStage<'_>; 2]; 2] = [[on(cpu()), on(gpu())], [on(gpu()), on(cpu())]];
        for two in orders {
            let split = split(&golden.folder, two, CacheElement::F32);
            let found = Runner::over(Box::new(split)).logits(&ids, ids.len());
            let _ = assert_near(&expected, &found, &golden.folder.display().to_string());
        }
    }
}

#[test]
fn two_stages_on_the_device_are_one() {
    let elements = [CacheElement::F32, CacheElement::F16, CacheElement::Int8];
    for (golden, element) in goldens().zip(elements.into_iter().cycle()) {
        let whole = transformer(&golden.folder, gpu(), options(element));
        let expected = Session::new(whole).everything();
        let split = split(&golden.folder, [on(gpu()), on(gpu())], element);
        let found = Session::new(split).everything();
        assert!(found == expected, "{}, {element:?}", golden.folder.display());
    }
}

/// A device that has no memory for a long prompt fails that step, and not those that are short.
#[test]
fn memory_that_runs_out_in_a_stage_is_an_error() {
    let folder = Golden::read("bitnet-h64/packed").folder;
    let short = |session: &mut Session| {
        let sequence = session.cache.create();
        let batch = session.extend(&[(sequence, &[8; 9], &RequestedOutput::Logits)]);
        let given = session.run(&batch);
        session.cache.remove(sequence);
        given
    };
    let is_memory = |error| {
        assert!(matches!(error, ModelError::Ops(OpsError::OutOfMemory { .. })), "{error}");
    };
    let split = split(&folder, [on(ScalarBackend), on(gpu())], CacheElement::F16);
    let expected = short(&mut Session::new(split)).expect("a step");
    let mut recovered = 0;
    for limit in (0..).map(|step| 40_000 + step * 20_000) {
        let limited = GpuBackend::new(Recorder::new(device()).with_limit(limit)).expect("memory");
        let two = vec![(1, on(ScalarBackend)), (2, on(limited))];
        let stages = match stages(&folder, two, options(CacheElement::F16)) {
            Ok(stages) => stages,
            Err(error) => {
                is_memory(error);
                continue;
            }
        };
        let split = Split::new(stages).expect("a model").with_piece_rows(1000);
        let mut session = Session::new(split);
        let sequence = session.cache.create();
        let batch = session.extend(&[(sequence, &[1; 200], &RequestedOutput::Logits)]);
        let Err(error) = session.run(&batch) else { break };
        is_memory(error);
        session.cache.remove(sequence);
        match short(&mut session) {
            Ok(given) => {
                assert!(given == expected, "with {limit} bytes");
                recovered += 1;
            }
            Err(error) => is_memory(error),
        }
    }
    assert!(recovered > 0, "no limit let a short step in and not a long one");
}
