// A code a column, and a scale for the vector: crates/setun-ops/src/quantize.rs.

fn store(vector: u32, key: u32, value: u32, lane: u32) {
    let words = (shape.head_dim + 3u) / 4u;
    let at = vector * (words + 1u);
    let key_absmax = absmax(key, lane);
    let value_absmax = absmax(value, lane);
    for (var word = lane; word < words; word += LANES) {
        keys[at + word] = four_codes(key, word, key_absmax);
        values[at + word] = four_codes(value, word, value_absmax);
    }
    if lane == 0u {
        keys[at + words] = scale_bits(key_absmax);
        values[at + words] = scale_bits(value_absmax);
    }
}

// By bits, so that what is not finite is the greatest.
fn absmax(first: u32, lane: u32) -> u32 {
    var most = 0u;
    for (var i = lane; i < shape.head_dim; i += LANES) {
        most = max(most, bitcast<u32>(qkv[first + i]) & 0x7fffffffu);
    }
    return greatest_over_lanes(lane, most);
}

fn four_codes(first: u32, word: u32, absmax: u32) -> u32 {
    var packed = 0u;
    if absmax >= 0x7f800000u {
        return packed;
    }
    let factor = 127.0 / max(bitcast<f32>(absmax), 1e-5);
    for (var i = word * 4u; i < min(word * 4u + 4u, shape.head_dim); i += 1u) {
        let code = i32(clamp(round(qkv[first + i] * factor), -127.0, 127.0));
        packed |= (bitcast<u32>(code) & 0xffu) << (8u * (i % 4u));
    }
    return packed;
}

fn scale_bits(absmax: u32) -> u32 {
    if absmax >= 0x7f800000u {
        return 0x7fc00000u;
    }
    return bitcast<u32>(max(bitcast<f32>(absmax), 1e-5) / 127.0);
}
