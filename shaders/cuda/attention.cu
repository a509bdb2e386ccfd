// attention: each row over the positions of its sequence up to its own, span by span
//
// Twin:      crates/setun-ops/src/attention.rs
// Grid:      one block a head (x) and QUERIES rows (y); or a head (x), a row (y) and a chunk of positions (z)

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS_AT_ONCE) attention(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ qkv,          // [rows, (heads + 2 kv_heads) × head_dim]
    const u32* __restrict__ keys, const u32* __restrict__ values,
    float* __restrict__ chunks,             // what launches over chunks of positions leave for each other
    float* __restrict__ out)                // [rows, heads × head_dim]
{
    const Step step{step_words};
    attend_by_block(shape, step, qkv, keys, values, chunks, out);
}
