// Activations that `quantize` has made, of each side: codes, scales and, with one scale a row, sums.

struct Input {
    const uint4* codes[2];
    u32 capacity;
    u32 words;
    u32 groups[2];

    __device__ __forceinline__ u32 row(u32 row) const { return min_of(row, capacity - 1); }

    // Activations of a plane of a packed quad.
    __device__ __forceinline__ const uint4* place(u32 side, u32 at_row, u32 plane, u32 quad) const
    {
        const u32 at = (quad / BLOCK_QUADS * PLANES + plane) * PLANE_QUADS + quad % BLOCK_QUADS;
        return codes[side] + row(at_row) * (words / 4) + at;
    }

    __device__ __forceinline__ uint4 quad(u32 side, u32 at_row, u32 plane, u32 quad) const
    {
        return *place(side, at_row, plane, quad);
    }

    __device__ __forceinline__ float scale(u32 side, u32 at_row) const
    {
        return ((const float*)codes[side])[capacity * words + row(at_row)];
    }

    __device__ __forceinline__ float group_scale(u32 side, u32 at_row, u32 group) const
    {
        return ((const float*)codes[side])[capacity * words + row(at_row) * groups[side] + group];
    }

    __device__ __forceinline__ i32 sum(u32 side, u32 at_row) const
    {
        return ((const i32*)codes[side])[capacity * (words + 1) + row(at_row)];
    }
};

__device__ __forceinline__ u32 quads_of(const Shape& shape) { return shape.blocks * BLOCK_QUADS; }

__device__ __forceinline__ Input make_input(const Shape& shape, const void* x, const void* second, u32 row, u32 lane)
{
    return Input{
        {(const uint4*)x, (const uint4*)second}, shape.capacity, shape.words, {shape.x_groups[0], shape.x_groups[1]}};
}
