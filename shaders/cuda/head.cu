// head: logits[row, token] = scale × fold16(x × table[token])
//
// Twin:      crates/setun-ops/src/head.rs
// Grid:      one block for LANES / LANES_EACH tokens (x) and COLUMNS rows (y)

const u32 LANES_EACH = 4;               // threads of a token: each has four of the fold's lanes

struct Shape {
    u32 width;
    u32 stride;     // vectors of four words of a row of the table
    u32 first;      // first token of this part of the table
    u32 tokens;     // tokens of this part
    u32 vocab;      // tokens of all
    u32 wanted;
};

// Four neighbours of a row of x, zero beyond it.
__device__ __forceinline__ float4 x_four(const float* x, u32 width, u32 i)
{
    if (width % 4 == 0) {
        return *(const float4*)(x + i);
    }
    return make_float4(
        x[i], i + 1 < width ? x[i + 1] : 0.0f, i + 2 < width ? x[i + 2] : 0.0f, i + 3 < width ? x[i + 3] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(LANES) head(
    const Shape shape, const u32* __restrict__ step_words, const u32* __restrict__ table,
    const float* __restrict__ x,            // [rows, width]
    float* __restrict__ logits)             // [rows, vocab]
{
    const Step step{step_words};
    const u32 rows = step.rows_of(shape.wanted);
    const u32 first_row = blockIdx.y * COLUMNS;
    if (first_row >= rows) {
        return;
    }
    const u32 lane = threadIdx.x % LANES_EACH;
    const u32 own = blockIdx.x * (LANES / LANES_EACH) + threadIdx.x / LANES_EACH;
    // Threads beyond the table work on its last row and store nothing.
    const u32 token = min_of(own, shape.tokens - 1);
    const float* x_rows[COLUMNS];
#pragma unroll
    for (u32 c = 0; c < COLUMNS; c += 1) {
        x_rows[c] = x + (size_t)min_of(first_row + c, rows - 1) * shape.width;
    }
    float sums[COLUMNS][4] = {};
#pragma unroll 4
    for (u32 four = lane; four * 4 < shape.width; four += LANES_EACH) {
        const float4 values = table_four(table, token, shape.stride, four);
#pragma unroll
        for (u32 c = 0; c < COLUMNS; c += 1) {
            const float4 xs = x_four(x_rows[c], shape.width, four * 4);
            sums[c][0] += xs.x * values.x;
            sums[c][1] += xs.y * values.y;
            sums[c][2] += xs.z * values.z;
            sums[c][3] += xs.w * values.w;
        }
    }
    const float scale = table_scale(table, token, shape.stride);
#pragma unroll
    for (u32 c = 0; c < COLUMNS; c += 1) {
        // The fold's lanes 8 apart are two threads apart, those 4 apart are neighbours.
#pragma unroll
        for (u32 width = 2; width > 0; width /= 2) {
#pragma unroll
            for (u32 i = 0; i < 4; i += 1) {
                sums[c][i] += __shfl_down_sync(ALL, sums[c][i], width, LANES_EACH);
            }
        }
        const float sum = (sums[c][0] + sums[c][2]) + (sums[c][1] + sums[c][3]);
        if (lane == 0 && first_row + c < rows && own < shape.tokens) {
            logits[(size_t)(first_row + c) * shape.vocab + shape.first + own] = scale * sum;
        }
    }
}
