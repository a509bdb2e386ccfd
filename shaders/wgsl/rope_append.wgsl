// rope_append: queries and keys turn by their positions, in place; keys and values enter the cache
//
// Twin:      crates/setun-ops/src/rope_append.rs
// Layout:    of the cache: [blocks, kv_heads, block_positions] vectors, as its element's part says
// Grid:      one workgroup a row (x) and head (y): of queries, then of keys and values

const LANES: u32 = 128u;

struct Shape {
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    block_positions: u32,
    positions: u32,     // that the table has
    half: u32,          // of the columns that turn, the first of a head
    width: u32,         // of a row
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> rope: array<f32>;             // [positions, half] cosines, then sines
@group(0) @binding(3) var<storage, read_write> qkv: array<f32>;        // [rows, width]: heads of queries, keys and values first
@group(0) @binding(4) var<storage, read_write> keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= batch_rows() {
        return;
    }
    let half = shape.half;
    let head = group.y;
    let first = row * shape.width + head * shape.head_dim;
    let position = position_of(row);
    let sines = shape.positions * half;
    for (var i = lane; i < half; i += LANES) {
        let cosine = rope[position * half + i];
        let sine = rope[sines + position * half + i];
        let a = qkv[first + i];
        let b = qkv[first + half + i];
        qkv[first + i] = a * cosine - b * sine;
        qkv[first + half + i] = b * cosine + a * sine;
    }
    if head < shape.heads {
        return;
    }
    storageBarrier();
    let block = block_of(slot_of(row), position / shape.block_positions);
    let own = (block * shape.kv_heads + head - shape.heads) * shape.block_positions;
    store(own + position % shape.block_positions, first, first + shape.kv_heads * shape.head_dim, lane);
}
