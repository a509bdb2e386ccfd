// A row of `quantize` with a scale for each group of columns: eight neighbouring lanes take a group.

const LANES_EACH: u32 = 8u;

var<workgroup> lane_greatest: array<u32, LANES>;

fn quantize(row: u32, lane: u32) {
    let inverse = inverse_of(row, lane);
    let own = lane / LANES_EACH;
    for (var first = 0u; first < shape.groups; first += LANES / LANES_EACH) {
        let words = words_of(first + own);
        var bits = vec4<u32>();
        for (var word = words.x + lane % LANES_EACH; word < words.y; word += LANES_EACH) {
            bits = max(bits, magnitudes(row, word, inverse));
        }
        lane_greatest[lane] = greatest_of_four(bits);
        workgroupBarrier();
        var most = 0u;
        for (var i = 0u; i < LANES_EACH; i += 1u) {
            most = max(most, lane_greatest[own * LANES_EACH + i]);
        }
        workgroupBarrier();
        let by = quantization_of(most);
        for (var word = words.x + lane % LANES_EACH; word < words.y; word += LANES_EACH) {
            put_codes(row, word, pack(four_codes(by, row, word, inverse)));
        }
        if first + own < shape.groups && lane % LANES_EACH == 0u {
            put_scale(row, first + own, scale_bits(by));
        }
    }
}

// Words of a group's codes, to the end of the padding in the last; none beyond.
fn words_of(group: u32) -> vec2<u32> {
    let begin = select(shape.words, group * shape.group_words, group < shape.groups);
    return vec2<u32>(begin, select(shape.words, begin + shape.group_words, group + 1u < shape.groups));
}
