// To the nearest, ties to even, by integers; beyond ±65504 saturated.

fn round_f16(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return sign | 0x7e00u;
    }
    if magnitude >= 0x477fe000u {
        return sign | 0x7bffu;
    }
    if magnitude < 0x38800000u {
        // Beside one half the last place is that of a subnormal f16.
        return sign | (bitcast<u32>(bitcast<f32>(magnitude) + 0.5) - 0x3f000000u);
    }
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}

fn store(vector: u32, key: u32, value: u32, lane: u32) {
    let words = shape.head_dim / 2u;
    for (var i = lane; i < words; i += LANES) {
        keys[vector * words + i] = round_f16(qkv[key + 2u * i]) | (round_f16(qkv[key + 2u * i + 1u]) << 16u);
        values[vector * words + i] = round_f16(qkv[value + 2u * i]) | (round_f16(qkv[value + 2u * i + 1u]) << 16u);
    }
}
