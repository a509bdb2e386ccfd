// attention: each row over the positions of its sequence up to its own
//
// Twin:      crates/setun-ops/src/attention.rs (whose maximum is that of all positions; here each chunk has its own,
//            and what chunks come to is added up in ascending order, scaled to the greater maximum)
// Grid:      one workgroup for QUERIES heads of one kv head (x) and a row (y); in mode SPLIT for a chunk of it (z)

const LANES: u32 = 64u;
const QUERIES: u32 = 4u;
const CHUNK: u32 = 512u;              // positions
const MAX_FOURS: u32 = 64u;          // of a head: 256 / 4
const LEAST: f32 = -3.4028234e38;

const WHOLE: u32 = 0u;                // all chunks, to `out`
const SPLIT: u32 = 1u;                // one chunk, to `chunks`
const FOLD: u32 = 2u;                 // from `chunks` to `out`

struct Shape {
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    block_positions: u32,
    inverse_sqrt: f32,
    mode: u32,
    max_chunks: u32,                 // of a row
    chunk_positions: u32,            // of CUDA
    width: u32,                      // of a row of qkv
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> qkv: array<f32>;             // [rows, width]: heads of queries, keys and values first
@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<u32>;
@group(0) @binding(5) var<storage, read_write> chunks: array<vec4<f32>>;  // of a row, kv group and chunk: greatest, total, sums
@group(0) @binding(6) var<storage, read_write> out: array<f32>;       // [rows, heads × head_dim]

// A component is a query's.
var<workgroup> query: array<array<vec4<f32>, QUERIES>, MAX_FOURS>;
var<workgroup> weights: array<vec4<f32>, CHUNK>;
var<workgroup> vectors: array<u32, CHUNK>;

// What positions come to. Lanes beyond the head's fours have no sums.
struct Sums {
    greatest: vec4<f32>,
    total: vec4<f32>,
    values: array<vec4<f32>, QUERIES>,
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if row >= batch_rows() {
        return;
    }
    let each = shape.heads / shape.kv_heads;
    let groups = (each + QUERIES - 1u) / QUERIES;
    let kv_head = group.x / groups;
    let first_head = kv_head * each + group.x % groups * QUERIES;
    let heads = min(QUERIES, (kv_head + 1u) * each - first_head);
    load_queries(row, first_head, heads, lane);
    let fours = (shape.head_dim + 3u) / 4u;
    let place = (row * shape.kv_heads * groups + group.x) * shape.max_chunks;
    let size = 2u + fours * QUERIES;
    let last = position_of(row);
    let begin = select(0u, group.z, shape.mode == SPLIT);
    let end = select(last / CHUNK + 1u, min(group.z, last / CHUNK) + 1u, shape.mode == SPLIT);
    var all: Sums;
    all.greatest = vec4<f32>(LEAST);
    for (var chunk = begin; chunk < end; chunk += 1u) {
        var found: Sums;
        let at = (place + chunk) * size;
        if shape.mode == FOLD {
            found.greatest = chunks[at];
            found.total = chunks[at + 1u];
            for (var q = 0u; q < QUERIES && lane < fours; q += 1u) {
                found.values[q] = chunks[at + 2u + q * fours + lane];
            }
        } else {
            found = attend(slot_of(row), kv_head, chunk * CHUNK, min(last + 1u - chunk * CHUNK, CHUNK), lane);
        }
        if shape.mode == SPLIT {
            chunks[at] = found.greatest;
            chunks[at + 1u] = found.total;
            for (var q = 0u; q < QUERIES && lane < fours; q += 1u) {
                chunks[at + 2u + q * fours + lane] = found.values[q];
            }
        }
        let both = max(all.greatest, found.greatest);
        let before = exp_four(all.greatest - both);
        let now = exp_four(found.greatest - both);
        all.greatest = both;
        all.total = fma(all.total, before, found.total * now);
        for (var q = 0u; q < QUERIES; q += 1u) {
            all.values[q] = fma(all.values[q], vec4<f32>(before[q]), found.values[q] * now[q]);
        }
    }
    if shape.mode == SPLIT {
        return;
    }
    for (var q = 0u; q < heads; q += 1u) {
        let result = all.values[q] / all.total[q];
        for (var i = 0u; i < 4u && lane * 4u + i < shape.head_dim; i += 1u) {
            out[(row * shape.heads + first_head + q) * shape.head_dim + lane * 4u + i] = result[i];
        }
    }
}

fn load_queries(row: u32, first_head: u32, heads: u32, lane: u32) {
    let d = shape.head_dim;
    for (var i = lane; i < MAX_FOURS * QUERIES; i += LANES) {
        let q = min(i % QUERIES, heads - 1u);
        let at = row * shape.width + (first_head + q) * d;
        var four = vec4<f32>();
        for (var k = 0u; k < 4u && i / QUERIES * 4u + k < d; k += 1u) {
            four[k] = qkv[at + i / QUERIES * 4u + k];
        }
        query[i / QUERIES][i % QUERIES] = four;
    }
    workgroupBarrier();
}

// `count` positions from `first` on.
fn attend(slot: u32, kv_head: u32, first: u32, count: u32, lane: u32) -> Sums {
    var found: Sums;
    found.greatest = vec4<f32>(LEAST);
    for (var i = lane; i < count; i += LANES) {
        let block = block_of(slot, (first + i) / shape.block_positions);
        let vector = (block * shape.kv_heads + kv_head) * shape.block_positions + (first + i) % shape.block_positions;
        let score = score_of(vector) * key_scale(vector) * shape.inverse_sqrt;
        vectors[i] = vector;
        weights[i] = score;
        found.greatest = max(found.greatest, score);
    }
    found.greatest = greatest_four_over_lanes(lane, found.greatest);
    for (var i = lane; i < count; i += LANES) {
        let weight = exp_four(weights[i] - found.greatest);
        found.total += weight;
        weights[i] = weight * value_scale(vectors[i]);
    }
    found.total = sum_four_over_lanes(lane, found.total);
    add_values(&found, count, lane);
    return found;
}

fn score_of(vector: u32) -> vec4<f32> {
    var score = vec4<f32>();
    for (var four = 0u; four * 4u < shape.head_dim; four += 1u) {
        let key = key_four(vector, four);
        let q = query[four];
        score += vec4<f32>(dot(q[0], key), dot(q[1], key), dot(q[2], key), dot(q[3], key));
    }
    return score;
}

// Lanes share the positions of a four: their sums are added up in ascending order.
fn add_values(found: ptr<function, Sums>, count: u32, lane: u32) {
    let fours = (shape.head_dim + 3u) / 4u;
    let shares = LANES / fours;
    let four = lane % fours;
    var sums: array<vec4<f32>, QUERIES>;
    for (var i = lane / fours; i < count && lane < shares * fours; i += shares) {
        let value = value_four(vectors[i], four);
        let weight = weights[i];
        sums[0] = fma(value, vec4<f32>(weight.x), sums[0]);
        sums[1] = fma(value, vec4<f32>(weight.y), sums[1]);
        sums[2] = fma(value, vec4<f32>(weight.z), sums[2]);
        sums[3] = fma(value, vec4<f32>(weight.w), sums[3]);
    }
    workgroupBarrier();
    for (var q = 0u; q < QUERIES; q += 1u) {
        weights[q * LANES + lane] = sums[q];
    }
    workgroupBarrier();
    for (var q = 0u; q < QUERIES && lane < fours; q += 1u) {
        for (var share = 0u; share < shares; share += 1u) {
            (*found).values[q] += weights[q * LANES + share * fours + lane];
        }
    }
    // Another chunk may follow in the same memory.
    workgroupBarrier();
}

fn is_whole(four: u32) -> bool { return 4u * four + 2u < shape.head_dim; }
fn exp_four(x: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp_f32(x.x), exp_f32(x.y), exp_f32(x.z), exp_f32(x.w)); }
