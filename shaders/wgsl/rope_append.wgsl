// rope_append: queries and keys turn by their positions, in place; keys and values enter the cache
//
// Twin:      crates/setun-ops/src/rope_append.rs
// Layout:    of the cache: [blocks, kv_heads, block_positions] vectors, as its element's part says
// Grid:      one workgroup a row

const LANES: u32 = 128u;

struct Shape {
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    block_positions: u32,
    positions: u32,     // that the table has
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> rope: array<f32>;             // [positions, head_dim / 2] cosines, then sines
@group(0) @binding(3) var<storage, read_write> qkv: array<f32>;        // [rows, (heads + 2 kv_heads) × head_dim]
@group(0) @binding(4) var<storage, read_write> keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= batch_rows() {
        return;
    }
    let half = shape.head_dim / 2u;
    let first = row * (shape.heads + 2u * shape.kv_heads) * shape.head_dim;
    let position = position_of(row);
    let sines = shape.positions * half;
    for (var pair = lane; pair < (shape.heads + shape.kv_heads) * half; pair += LANES) {
        let at = first + pair / half * shape.head_dim + pair % half;
        let cosine = rope[position * half + pair % half];
        let sine = rope[sines + position * half + pair % half];
        let a = qkv[at];
        let b = qkv[at + half];
        qkv[at] = a * cosine - b * sine;
        qkv[at + half] = b * cosine + a * sine;
    }
    storageBarrier();
    let block = block_of(slot_of(row), position / shape.block_positions);
    for (var head = 0u; head < shape.kv_heads; head += 1u) {
        let vector = (block * shape.kv_heads + head) * shape.block_positions + position % shape.block_positions;
        let key = first + (shape.heads + head) * shape.head_dim;
        store(vector, key, key + shape.kv_heads * shape.head_dim, lane);
    }
}
