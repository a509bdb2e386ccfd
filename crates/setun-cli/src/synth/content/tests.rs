//! Bytes by place, in each type; shares of values.

use super::*;

const ALL: [Content; 9] = [
    Content::Constant { value: 1.0, anchors: 3.5 },
    Content::Embedding { columns: 100, anchored: true },
    Content::Ternary { rows: 256, columns: 96, anchors: Anchors::Ignored },
    Content::Ternary { rows: 256, columns: 96, anchors: Anchors::Kept },
    Content::Ternary { rows: 256, columns: 96, anchors: Anchors::Weighed { share: 0.5, code: 0 } },
    Content::Master { step: 0.003 },
    Content::FakeQuantized { scale: 0.05 },
    Content::Codes,
    Content::GroupScales { scale: 0.03 },
];

#[test]
fn bytes_do_not_depend_on_how_they_are_read() {
    let types = |content: &Content| match content {
        Content::Ternary { .. } => &[Dtype::U8][..],
        Content::Codes => &[Dtype::U32],
        _ => &[Dtype::Bf16, Dtype::F16, Dtype::F32],
    };
    for (content, dtype) in
        ALL.iter().flat_map(|content| types(content).iter().map(move |dtype| (content, *dtype)))
    {
        let mut whole = vec![0; 4096];
        content.fill(5, dtype, 0, &mut whole);
        for (start, step) in [(0, 1), (3, 7), (8, 64), (101, 1000)] {
            let mut pieces = vec![0; whole.len() - start];
            for (index, piece) in pieces.chunks_mut(step).enumerate() {
                content.fill(5, dtype, start + index * step, piece);
            }
            assert_eq!(pieces, whole[start..], "{content:?} {dtype} from {start} by {step}");
        }
    }
}

/// Values of a tensor as `bf16`.
fn values(content: &Content, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; 2 * count];
    content.fill(1, Dtype::Bf16, 0, &mut bytes);
    bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
}

#[test]
fn a_wider_type_has_the_same_values() {
    let content = Content::Embedding { columns: 100, anchored: true };
    let expected = values(&content, 1000);
    let mut bytes = vec![0; 4000];
    content.fill(1, Dtype::F32, 0, &mut bytes);
    let floats: Vec<_> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    assert_eq!(floats, expected);
    content.fill(1, Dtype::F16, 0, &mut bytes[..2000]);
    let halves = bytes[..2000].chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]));
    assert_eq!(halves.map(f16::to_f32).collect::<Vec<_>>(), expected);
}

#[test]
fn master_weights_have_the_mean_magnitude_that_is_stated() {
    let values = values(&Content::Master { step: 0.125 }, 40_000);
    let mean = values.iter().map(|value| value.abs()).sum::<f32>() / 40_000.0;
    assert!((mean / (0.125 * MEAN_STEPS) - 1.0).abs() < 0.02, "{}", mean / 0.125);
}

#[test]
fn fake_quantized_weights_have_three_values_equally_often() {
    let values = values(&Content::FakeQuantized { scale: 0.5 }, 30_000);
    for expected in [-0.5, 0.0, 0.5] {
        let count = values.iter().filter(|&&value| value == expected).count();
        assert!((9_700..10_300).contains(&count), "{count} of {expected}");
    }
}

#[test]
fn codes_are_ternary_and_equally_often() {
    let mut bytes = vec![0; 30_000];
    ALL[2].fill(1, Dtype::U8, 0, &mut bytes);
    let mut counts = [0; 4];
    for byte in bytes {
        (0..4).for_each(|field| counts[usize::from(byte >> (2 * field) & 3)] += 1);
    }
    assert_eq!(counts[3], 0);
    assert!(counts[..3].iter().all(|count| (39_000..41_000).contains(count)), "{counts:?}");
}

#[test]
fn scales_and_biases_are_opposite_numbers_and_exact_in_both_half_types() {
    let scales = values(&Content::GroupScales { scale: 0.03 }, 1000);
    let biases = values(&Content::GroupScales { scale: -0.03 }, 1000);
    assert!(scales.iter().zip(&biases).all(|(scale, bias)| *bias == -scale && *scale > 0.0));
    assert!(scales.iter().all(|&scale| f16::from_f32(scale).to_f32() == scale));
    let mut distinct: Vec<_> = scales.iter().map(|scale| scale.to_bits()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 4);
}

#[test]
fn embeddings_are_exact_in_both_half_types() {
    let values = values(&Content::Embedding { columns: 100, anchored: false }, 40_000);
    assert!(values.iter().all(|&value| f16::from_f32(value).to_f32() == value));
    let count = f32::from(u16::try_from(values.len()).unwrap());
    let mean = values.iter().sum::<f32>() / count;
    let variance = values.iter().map(|x| x * x).sum::<f32>() / count;
    assert!(mean.abs() < 0.02, "{mean}");
    assert!((variance / EMBEDDING_VARIANCE - 1.0).abs() < 0.03, "{variance}");
}

#[test]
fn kept_anchors_get_nothing() {
    let mut bytes = vec![0; 64 * 96];
    ALL[3].fill(1, Dtype::U8, 0, &mut bytes);
    assert!(bytes.iter().all(|byte| byte & 3 == 1), "the first quarter is all anchors");
    assert!(bytes.iter().any(|byte| byte >> 2 & 3 != 1), "the second has none");
}
