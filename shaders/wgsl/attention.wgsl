// attention: each row over the positions of its sequence up to its own, span by span
//
// Twin:      crates/setun-ops/src/attention.rs, whose maximum is that of all spans; here each span has
//            its own, and sums so far are scaled to the greater one
// Grid:      one workgroup a head (x) and a row (y); a lane for each position of a span

const LANES: u32 = 64u;
const SPAN: u32 = 64u;
const MOST_HEAD_DIM: u32 = 256u;
const COLUMNS_A_LANE: u32 = 4u;       // MOST_HEAD_DIM / LANES
const LEAST: f32 = -3.4028234e38;

struct Shape {
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    block_positions: u32,
    inverse_sqrt: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> qkv: array<f32>;         // [rows, (heads + 2 kv_heads) × head_dim]
@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;   // [rows, heads × head_dim]

var<workgroup> query: array<f32, MOST_HEAD_DIM>;
var<workgroup> vectors: array<u32, SPAN>;
var<workgroup> weights: array<f32, SPAN>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let row = group.y;
    if row >= batch_rows() {
        return;
    }
    let d = shape.head_dim;
    for (var i = lane; i < d; i += LANES) {
        query[i] = qkv[(row * (shape.heads + 2u * shape.kv_heads) + head) * d + i];
    }
    let kv_head = head / (shape.heads / shape.kv_heads);
    let last = position_of(row);
    let slot = slot_of(row);
    var greatest = LEAST;
    var total = 0.0;
    var sums: array<f32, COLUMNS_A_LANE>;
    for (var first = 0u; first <= last; first += SPAN) {
        let position = first + lane;
        workgroupBarrier();
        var score = LEAST;
        if position <= last {
            let block = block_of(slot, position / shape.block_positions);
            let vector = (block * shape.kv_heads + kv_head) * shape.block_positions + position % shape.block_positions;
            vectors[lane] = vector;
            score = dot_key(vector) * key_scale(vector) * shape.inverse_sqrt;
        }
        let span_greatest = greatest_float_over_lanes(lane, score);
        var weight = 0.0;
        if position <= last {
            weight = exp_f32(score - span_greatest);
        }
        let span_total = sum_over_lanes(lane, weight);
        if position <= last {
            weights[lane] = weight * value_scale(vectors[lane]);
        }
        workgroupBarrier();
        let both = max(greatest, span_greatest);
        let before = exp_f32(greatest - both);
        let now = exp_f32(span_greatest - both);
        greatest = both;
        total = total * before + span_total * now;
        for (var k = 0u; k < COLUMNS_A_LANE; k += 1u) {
            let i = k * LANES + lane;
            if i < d {
                sums[k] = sums[k] * before + sum_values(i, min(last + 1u - first, SPAN)) * now;
            }
        }
    }
    for (var k = 0u; k < COLUMNS_A_LANE; k += 1u) {
        let i = k * LANES + lane;
        if i < d {
            out[(row * shape.heads + head) * d + i] = sums[k] / total;
        }
    }
}

fn dot_key(vector: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < shape.head_dim; i += 1u) {
        sum += query[i] * key_at(vector, i);
    }
    return sum;
}

fn sum_values(i: u32, count: u32) -> f32 {
    var sum = 0.0;
    for (var j = 0u; j < count; j += 1u) {
        sum += weights[j] * value_at(vectors[j], i);
    }
    return sum;
}

fn greatest_float_over_lanes(lane: u32, value: f32) -> f32 {
    lane_floats[lane] = value;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            lane_floats[lane] = max(lane_floats[lane], lane_floats[lane + width]);
        }
        workgroupBarrier();
    }
    let greatest = lane_floats[0];
    workgroupBarrier();
    return greatest;
}
