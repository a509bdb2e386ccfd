// Activations that `quantize` has made, of each side: codes, scales and, with one scale a row, sums.

@group(0) @binding(2) var<storage, read> x_codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> x_codes_of_second: array<vec4<u32>>;

fn make_input(first_row: u32, lane: u32) {}

fn x_at(side: u32, at: u32) -> vec4<u32> {
    if side == 0u {
        return x_codes[at];
    }
    return x_codes_of_second[at];
}

fn x_quad(side: u32, row: u32, at: u32) -> vec4<u32> {
    return x_at(side, min(row, shape.capacity - 1u) * (shape.words / 4u) + at);
}

fn x_scale(side: u32, row: u32, group: u32) -> f32 {
    let at = shape.capacity * shape.words + min(row, shape.capacity - 1u) * shape.x_groups[side] + group;
    return bitcast<f32>(x_at(side, at / 4u)[at % 4u]);
}

fn x_sum(side: u32, row: u32) -> i32 {
    let at = shape.capacity * (shape.words + 1u) + min(row, shape.capacity - 1u);
    return bitcast<i32>(x_at(side, at / 4u)[at % 4u]);
}
