//! An ONNX file beside the configuration of one of the models that the seeds are exports of.

#![no_main]

use setun_checkpoint::{Source, files};
use setun_fuzz::{read, trial::Folder};

const CONFIGS: [&[u8]; 2] = [
    include_bytes!("../../tests/fixtures/golden/bitnet-h64/packed/config.json"),
    include_bytes!("../../tests/fixtures/golden/llama-rmsnorm-bias/packed/config.json"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for config in CONFIGS {
        let folder = Folder::from([("model.onnx", bytes), (files::CONFIG, config)]);
        read(&Source::File("model.onnx".to_owned()), &folder);
    }
});
