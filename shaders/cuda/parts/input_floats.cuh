// Activations of one row that each block quantizes for itself, which saves a launch. Both sides share them. A thread
// reads what it needs of the row once, all together: memory answers late.

const u32 QUADS = WORDS / 16;         // vectors of a packed row
const u32 WORDS_EACH = (WORDS + LANES - 1) / LANES;    // words of codes that a thread makes
const u32 STAGED_WORDS = 8 * LANES;                    // whose squares are in the block's memory at a time
const bool GAINS_AHEAD = WORDS_EACH <= 14;             // registers hold them beside the row

struct Input {
    const u32* words;                 // [planes, quads, 4], so that neighbouring threads read neighbouring vectors
    float row_scale;
    i32 row_sum;

    __device__ __forceinline__ uint4 quad(u32 side, u32 at_row, u32 plane, u32 quad) const
    {
        return ((const uint4*)words)[plane * QUADS + quad];
    }

    __device__ __forceinline__ float scale(u32 side, u32 at_row) const { return row_scale; }
    __device__ __forceinline__ float group_scale(u32 side, u32 at_row, u32 group) const { return row_scale; }
    __device__ __forceinline__ i32 sum(u32 side, u32 at_row) const { return row_sum; }
};

__device__ __forceinline__ u32 quads_of(const Shape& shape) { return QUADS; }

// Four neighbours, zero beyond the row.
__device__ __forceinline__ float4 four_of(const float* row, u32 width, u32 word)
{
    const u32 i = word * 4;
    if (width % 4 == 0) {
        return i < width ? ((const float4*)row)[word] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    return make_float4(
        i < width ? row[i] : 0.0f, i + 1 < width ? row[i + 1] : 0.0f, i + 2 < width ? row[i + 2] : 0.0f,
        i + 3 < width ? row[i + 3] : 0.0f);
}

__device__ __forceinline__ void fours_of(float4 (&fours)[WORDS_EACH], const float* row, u32 width, u32 lane)
{
#pragma unroll
    for (u32 k = 0; k < WORDS_EACH; k += 1) {
        fours[k] = four_of(row, width, lane + k * LANES);
    }
}

// `inverse_rms` of what the threads hold.
__device__ __forceinline__ float inverse_rms_held(const float4 (&x)[WORDS_EACH], u32 width, float eps, u32 lane)
{
    __shared__ float4 squares[STAGED_WORDS];
    float sum = 0.0f;
#pragma unroll
    for (u32 first = 0; first < WORDS_EACH; first += STAGED_WORDS / LANES) {
#pragma unroll
        for (u32 k = first; k < WORDS_EACH && k < first + STAGED_WORDS / LANES; k += 1) {
            squares[lane + (k - first) * LANES] =
                make_float4(x[k].x * x[k].x, x[k].y * x[k].y, x[k].z * x[k].z, x[k].w * x[k].w);
        }
        __syncthreads();
        const u32 begin = first * LANES * 4;
        const u32 count = begin < width ? min_of(width - begin, STAGED_WORDS * 4) : 0;
        add_squares(sum, (const float*)squares, count, lane);
        __syncthreads();
    }
    return inverse_rms_of(sum, width, eps, lane);
}

__device__ __forceinline__ u32 magnitude(float value) { return __float_as_uint(value) & 0x7fffffffu; }

__device__ __forceinline__ u32 greatest_magnitude(const float4 (&x)[WORDS_EACH])
{
    u32 most = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS_EACH; k += 1) {
        most = greatest_of(most, greatest_of(magnitude(x[k].x), magnitude(x[k].y)));
        most = greatest_of(most, greatest_of(magnitude(x[k].z), magnitude(x[k].w)));
    }
    return most;
}

// Where the word has its place among the planes.
__device__ __forceinline__ u32 place_of_word(u32 word)
{
    const u32 block = word / (PLANES * BLOCK_WORDS), in_block = word % (PLANES * BLOCK_WORDS);
    const u32 plane = in_block / BLOCK_WORDS, in_plane = in_block % BLOCK_WORDS;
    return (plane * QUADS + block * BLOCK_QUADS) * 4 + in_plane;
}

__device__ __forceinline__ Input make_input(const Shape& shape, const void* x, const void* gain, u32 row, u32 lane)
{
    __shared__ uint4 row_codes[WORDS / 4];
    const u32 width = shape.x_width;
    float4 fours[WORDS_EACH];
    fours_of(fours, (const float*)x + row * width, width, lane);
    if (shape.has_norm != 0) {
        float4 gains[WORDS_EACH];
        if (GAINS_AHEAD) {
            fours_of(gains, (const float*)gain, width, lane);
        }
        const float inverse = inverse_rms_held(fours, width, shape.eps, lane);
#pragma unroll
        for (u32 k = 0; k < WORDS_EACH; k += 1) {
            const float4 own = GAINS_AHEAD ? gains[k] : four_of((const float*)gain, width, lane + k * LANES);
            fours[k] = make_float4(
                fours[k].x * inverse * own.x, fours[k].y * inverse * own.y, fours[k].z * inverse * own.z,
                fours[k].w * inverse * own.w);
        }
    }
    const Quantization quantization{greatest_over_block(lane, greatest_magnitude(fours))};
    i32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS_EACH; k += 1) {
        const u32 word = lane + k * LANES;
        if (word < WORDS) {
            const float values[4] = {fours[k].x, fours[k].y, fours[k].z, fours[k].w};
            ((u32*)row_codes)[place_of_word(word)] = quantization.pack(values, sum);
        }
    }
    sum = total_over_block(lane, sum);
    return Input{(const u32*)row_codes, quantization.scale(), sum};
}
