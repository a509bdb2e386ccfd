// Activations of one row that each block quantizes for itself, which saves a launch. Both sides share them.

const u32 QUADS = WORDS / 16;         // vectors of a packed row

struct Input {
    const u32* words;                 // [planes, quads, 4], so that neighbouring threads read neighbouring vectors
    QuantizedRow row;

    __device__ __forceinline__ uint4 quad(u32 side, u32 at_row, u32 plane, u32 quad) const
    {
        return ((const uint4*)words)[plane * QUADS + quad];
    }

    __device__ __forceinline__ float scale(u32 side, u32 at_row) const { return row.scale; }
    __device__ __forceinline__ i32 sum(u32 side, u32 at_row) const { return row.sum; }
};

struct SharedCodes {
    u32* words;

    __device__ __forceinline__ void put(u32 word, u32 packed)
    {
        const u32 block = word / (PLANES * BLOCK_WORDS), in_block = word % (PLANES * BLOCK_WORDS);
        const u32 plane = in_block / BLOCK_WORDS, in_plane = in_block % BLOCK_WORDS;
        words[(plane * QUADS + block * BLOCK_QUADS) * 4 + in_plane] = packed;
    }
};

__device__ __forceinline__ u32 quads_of(const Shape& shape) { return QUADS; }

__device__ __forceinline__ Input make_input(const Shape& shape, const void* x, const void* gain, u32 row, u32 lane)
{
    __shared__ uint4 row_codes[WORDS / 4];
    const float* own = (const float*)x + row * shape.x_width;
    Norm norm{nullptr, 1.0f};
    if (shape.has_norm != 0) {
        norm = Norm{(const float*)gain, inverse_rms(own, shape.x_width, shape.eps, lane)};
    }
    SharedCodes codes{(u32*)row_codes};
    const QuantizedRow quantized = quantize_row(own, shape.x_width, WORDS, norm, lane, codes);
    return Input{(const u32*)row_codes, quantized};
}
