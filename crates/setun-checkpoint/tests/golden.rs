//! The reader and its conversions against checkpoints that transformers wrote.

use crate::support::{MODELS, bytes_of, golden, read, tensors_of};
use setun_checkpoint::{
    Dtype, ModelConfig, Source, Tensor, TensorData,
    config::{LinearClass, QuantizationMode, RopeScaling},
    dense, master, packed,
};
use setun_ops::{
    TernaryMatrix,
    op::Activation,
    ternary::{Scales, code_at, row_bytes},
};

fn config(folder: &str) -> ModelConfig {
    read(Source::Folder, &golden(folder)).unwrap().config
}

#[test]
fn every_tensor_arrives_in_file_order() {
    for model in MODELS {
        let folder = golden(model);
        let checkpoint = read(Source::Folder, &folder).unwrap();
        let expected = tensors_of(&folder["model.safetensors"]);
        assert_eq!(checkpoint.tensors.len(), expected.len(), "{model}");
        let mut end = 0;
        for tensor in &checkpoint.tensors {
            let info = &tensor.info;
            let view = expected.tensor(&info.name).unwrap();
            assert_eq!(
                (info.dtype.to_string(), &info.shape[..]),
                (view.dtype().to_string(), view.shape()),
                "{model}"
            );
            assert_eq!(bytes_of(&tensor.data), view.data(), "{model} {}", info.name);
            assert!(end == 0 || info.range.start == end, "{model} {}", info.name);
            end = info.range.end;
        }
        assert_eq!(end, folder["model.safetensors"].len() as u64, "{model}");
    }
}

#[test]
fn wants_go_through_each_file_once() {
    for model in MODELS {
        let checkpoint = read(Source::Folder, &golden(model)).unwrap();
        let mut end = 0;
        for want in checkpoint.wants.iter().filter(|want| want.file == "model.safetensors") {
            let range = want.range.clone().unwrap();
            assert_eq!(range.start, end, "{model}");
            assert!(range.end - range.start <= 4 << 20, "{model}");
            end = range.end;
        }
    }
}

#[test]
fn configurations_are_read() {
    let bitnet = config("bitnet-h64/packed");
    assert_eq!(bitnet.architecture, "BitNetForCausalLM");
    assert_eq!((bitnet.hidden_size, bitnet.ffn_size, bitnet.layers.len()), (64, 176, 3));
    assert_eq!((bitnet.heads, bitnet.kv_heads, bitnet.head_dim), (2, 1, 32));
    assert_eq!((bitnet.vocab_size, bitnet.context_length), (263, 512));
    assert_eq!((bitnet.activation, bitnet.norm_eps), (Activation::ReluSquared, 1e-5));
    assert_eq!((bitnet.sub_norms, bitnet.tied_head), (true, true));
    assert_eq!(bitnet.quantization.linear_class, LinearClass::AutoBitLinear);
    assert_eq!(bitnet.quantization.mode, QuantizationMode::Offline);
    assert_eq!((bitnet.rope.theta, bitnet.rope.scaling), (500_000.0, RopeScaling::Default));
    assert_eq!((bitnet.bos_token, &bitnet.eos_tokens[..]), (Some(1), &[2][..]));
    assert_eq!(config("bitnet-h64/master").quantization.mode, QuantizationMode::Online);

    let llama = config("llama-rmsnorm-bias/packed");
    assert_eq!((llama.sub_norms, llama.tied_head), (false, false));
    assert_eq!((llama.attention_bias, llama.mlp_bias), (true, true));
    assert_eq!(llama.activation, Activation::Silu);
    assert_eq!(llama.quantization.linear_class, LinearClass::BitLinear);
    assert_eq!(llama.quantization.linear_norm_eps, Some(1e-6));

    let rope3 = config("llama-headdim-rope3/packed");
    assert_eq!((rope3.heads, rope3.head_dim, rope3.hidden_size), (3, 128, 192));
    let scaling = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 64,
    };
    assert_eq!(rope3.rope.scaling, scaling);

    let real = config("real-tinystories-1m");
    assert_eq!((real.activation, real.sub_norms), (Activation::Silu, true));
    assert_eq!((real.norm_eps, &real.eos_tokens[..]), (1e-12, &[1, 2][..]));
}

#[test]
fn packing_is_that_of_transformers() {
    let units = golden("units");
    let units = tensors_of(&units["units.safetensors"]);
    for index in 0..8 {
        let codes = units.tensor(&format!("pack.{index}.codes")).unwrap();
        let expected = units.tensor(&format!("pack.{index}.packed")).unwrap();
        let (rows, columns) = (codes.shape()[0], codes.shape()[1]);
        let tensor = Tensor::new(
            "pack",
            Dtype::U8,
            expected.shape(),
            TensorData::Bytes(expected.data().to_vec().into()),
        );
        let unpacked = packed::unpack(&tensor, rows, columns).unwrap();
        for (row, unpacked) in unpacked.chunks_exact(row_bytes(columns)).enumerate() {
            for column in 0..columns {
                let expected = codes.data()[row * columns + column].cast_signed() + 1;
                let found = code_at(unpacked, column).cast_signed();
                assert_eq!(found, expected, "{index} at {row}, {column}");
            }
        }
        // `new` also checks that the padding is that of the layout.
        let matrix = TernaryMatrix::new(rows, columns, unpacked, Scales::Tensor(1.0)).unwrap();
        assert_eq!(packed::pack("pack", &matrix).unwrap(), expected.data());
    }
}

#[test]
fn quantizing_follows_transformers_on_ties() {
    let units = golden("units");
    let units = tensors_of(&units["units.safetensors"]);
    let weights = floats(&units, "weight_ties.w");
    let tensor = Tensor::new("ties", Dtype::F32, &[4, 4], TensorData::F32(weights.into()));
    let (codes, scale) = master::quantize(&tensor).unwrap();
    let matrix = TernaryMatrix::new(4, 4, codes, Scales::Tensor(scale)).unwrap();
    let expected = units.tensor("weight_ties.codes").unwrap().data().to_vec();
    let dequantized = floats(&units, "weight_ties.dequantised");
    for place in 0..16 {
        let weight = matrix.weight(place / 4, place % 4);
        assert_eq!(weight, expected[place].cast_signed(), "{place}");
        assert_eq!(f32::from(weight) * scale, dequantized[place], "{place}");
    }
}

/// Packed and master folders of a name were made from the same weights.
#[test]
fn master_weights_give_the_packed_codes() {
    for name in ["bitnet-h64", "bitnet-untied-dead", "llama-bitlinear"] {
        let masters = read(Source::Folder, &golden(&format!("{name}/master"))).unwrap();
        let packed = read(Source::Folder, &golden(&format!("{name}/packed"))).unwrap();
        let class = packed.config.quantization.linear_class;
        let mut compared = 0;
        for tensor in packed.tensors.iter().filter(|tensor| tensor.info.dtype == Dtype::U8) {
            let name = &tensor.info.name;
            let master = masters.tensor(name);
            let (rows, columns) = master.info.expect_matrix().unwrap();
            let (codes, scale) = master::quantize(master).unwrap();
            assert_eq!(codes, packed::unpack(tensor, rows, columns).unwrap(), "{name}");
            let stored = packed.tensor(&format!("{name}_scale"));
            let stored = dense::weight_factor(stored, class).unwrap();
            assert!((scale / stored - 1.0).abs() < 1.0 / 256.0, "{name}: {scale}, {stored}");
            compared += 1;
        }
        assert_eq!(compared, 7 * packed.config.layers.len(), "{name}");
    }
}

/// The whole linear layer of the reference, from its master weights.
#[test]
fn quantized_masters_compute_the_reference_layer() {
    let units = golden("units");
    let units = tensors_of(&units["units.safetensors"]);
    for index in 0..8 {
        let name = |part: &str| format!("linear.{index}.{part}");
        let view = units.tensor(&name("master_bf16")).unwrap();
        let (rows, columns) = (view.shape()[0], view.shape()[1]);
        let weights = view.data().as_chunks::<2>().0;
        let weights = weights.iter().map(|bytes| half::bf16::from_le_bytes(*bytes)).collect();
        let tensor = Tensor::new("master", Dtype::Bf16, view.shape(), TensorData::Bf16(weights));
        let (codes, scale) = master::quantize(&tensor).unwrap();
        let matrix = TernaryMatrix::new(rows, columns, codes, Scales::Tensor(scale)).unwrap();
        let q = units.tensor(&name("q_autobitlinear_f32")).unwrap().data();
        let x_scales = floats(&units, &name("scale_autobitlinear_f32"));
        let expected = floats(&units, &name("y_autobitlinear_online_f32"));
        for (token, (q, x_scale)) in q.chunks_exact(columns).zip(x_scales).enumerate() {
            let expected = &expected[token * rows..][..rows];
            let absmax = expected.iter().fold(0.0_f32, |absmax, y| absmax.max(y.abs()));
            for (row, &expected) in expected.iter().enumerate() {
                let dot: i32 = (0..columns)
                    .map(|k| i32::from(matrix.weight(row, k)) * i32::from(q[k].cast_signed()))
                    .sum();
                #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
                let found = dot as f32 / x_scale * scale;
                let error = (found - expected).abs();
                assert!(error <= 2e-6 * absmax, "{index} {token} {row}: {found} {expected}");
            }
        }
    }
}

fn floats(units: &safetensors::SafeTensors<'_>, name: &str) -> Vec<f32> {
    let view = units.tensor(name).unwrap();
    assert_eq!(view.dtype(), safetensors::Dtype::F32, "{name}");
    view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
