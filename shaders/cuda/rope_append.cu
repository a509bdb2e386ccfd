// rope_append: queries and keys turn by their positions, in place; keys and values enter the cache
//
// Twin:      crates/setun-ops/src/rope_append.rs
// Layout:    of the cache: [blocks, kv_heads, block_positions] vectors, as its element's part says
// Grid:      one block a row (x) and head (y): of queries, then of keys and values

struct Shape {
    u32 heads;
    u32 kv_heads;
    u32 head_dim;
    u32 block_positions;
    u32 positions;      // that the table has
};

extern "C" __global__ void __launch_bounds__(LANES) rope_append(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ rope,         // [positions, head_dim / 2] cosines, then sines
    float* qkv,                             // [rows, (heads + 2 kv_heads) × head_dim]
    u32* __restrict__ keys, u32* __restrict__ values)
{
    const Step step{step_words};
    const u32 row = blockIdx.x, head = blockIdx.y, lane = threadIdx.x;
    if (row >= step.rows()) {
        return;
    }
    const u32 half = shape.head_dim / 2;
    const u32 position = step.position(row);
    float* own = qkv + ((size_t)row * (shape.heads + 2 * shape.kv_heads) + head) * shape.head_dim;
    const float* cosines = rope + (size_t)position * half;
    const float* sines = cosines + (size_t)shape.positions * half;
    for (u32 i = lane; i < half; i += LANES) {
        const float a = own[i], b = own[i + half];
        own[i] = a * cosines[i] - b * sines[i];
        own[i + half] = b * cosines[i] + a * sines[i];
    }
    if (head < shape.heads) {
        return;
    }
    __syncthreads();
    const u32 block = step.block(step.slot(row), position / shape.block_positions);
    const u32 first = (block * shape.kv_heads + head - shape.heads) * shape.block_positions;
    const u32 vector = first + position % shape.block_positions;
    store(keys, vector, own, shape.head_dim, lane);
    store(values, vector, own + shape.kv_heads * shape.head_dim, shape.head_dim, lane);
}
