//! Parts of engines for tests.

use setun_text::SamplerOptions;

use crate::{
    device::{DeviceKind, DeviceReport, HeadType},
    fake_model::FakeModel,
    options::GenerateOptions,
    parts::{EngineParts, Replica},
};

/// Tokens of the models.
pub(super) const VOCABULARY: usize = 256;

/// This many equal models, without a tokenizer.
pub(super) fn parts(devices: usize) -> EngineParts {
    let replica = |_| Replica {
        model: Box::new(FakeModel { max_rows: 64, ..FakeModel::new(VOCABULARY, 1) }),
        backend: DeviceKind::Custom,
        level: "fake".into(),
        threads: 1,
        head: HeadType::Stored,
        weight_bytes: 0,
        report: DeviceReport::default(),
        max_blocks: usize::MAX,
        reload: None,
        draft: None,
    };
    EngineParts {
        name: "fake".into(),
        shape: None,
        tokenizer: None,
        template: None,
        eos_tokens: vec![],
        sampling: SamplerOptions::default(),
        defaults: GenerateOptions::default(),
        monitor: None,
        clock: setun_clock::Clock::system(),
        load_seconds: 0.0,
        warnings: vec![],
        report: DeviceReport::default(),
        self_tester: None,
        replicas: (0..devices).map(replica).collect(),
    }
}
