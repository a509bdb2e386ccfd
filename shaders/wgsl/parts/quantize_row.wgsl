// Codes of a row with one scale go to `put_codes`, four a word; the rest is their scale's bits and their sum.

fn quantize_row(row: u32, lane: u32) -> vec2<u32> {
    let inverse = inverse_of(row, lane);
    var bits = vec4<u32>();
    for (var four = lane; four * 4u < shape.x_width; four += LANES) {
        bits = max(bits, magnitudes(row, four, inverse));
    }
    let by = quantization_of(greatest_over_lanes(lane, greatest_of_four(bits)));
    var sums = vec4<i32>();
    for (var word = lane; word < shape.words; word += LANES) {
        let codes = four_codes(by, row, word, inverse);
        sums += codes;
        put_codes(row, word, pack(codes));
    }
    let sum = total_over_lanes(lane, sums.x + sums.y + sums.z + sums.w);
    return vec2<u32>(scale_bits(by), bitcast<u32>(sum));
}
