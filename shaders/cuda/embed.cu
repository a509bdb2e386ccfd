// embed: out[row] = the table's row of the token
//
// Twin:      crates/setun-ops/src/embed.rs
// Grid:      one block a row

struct Shape {
    u32 width;
    u32 stride;     // vectors of four words of a row of the table
    u32 first;      // first token of this part of the table
    u32 tokens;     // tokens of this part
};

extern "C" __global__ void embed(
    const Shape shape, const u32* __restrict__ step_words, const u32* __restrict__ table,
    float* __restrict__ out)                // [rows, width]
{
    const Step step{step_words};
    const u32 row = blockIdx.x;
    if (row >= step.rows()) {
        return;
    }
    const u32 token = step.token(row) - shape.first;
    if (token >= shape.tokens) {
        return;
    }
    const float scale = table_scale(table, token, shape.stride);
    for (u32 four = threadIdx.x; four * 4 < shape.width; four += LANES) {
        const float4 values = table_four(table, token, shape.stride, four);
        const float scaled[4] = {values.x * scale, values.y * scale, values.z * scale, values.w * scale};
        for (u32 i = 0; i < 4 && four * 4 + i < shape.width; i += 1) {
            out[(size_t)row * shape.width + four * 4 + i] = scaled[i];
        }
    }
}
