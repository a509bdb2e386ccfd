// Lanes of an output work on it together; lane c < COLUMNS ends with that of row `first_row + c`.

const u32 LANES_EACH = 8;             // a block has LANES / LANES_EACH outputs

struct Place {
    u32 lane;         // of the output
    u32 first_row;
    u32 own_output;   // may lie beyond the matrix: then the last is worked on, and nothing stored
    u32 output;

    __device__ __forceinline__ u32 row(u32 result) const { return first_row + lane; }
    __device__ __forceinline__ u32 output_of(u32 result) const { return own_output; }
    __device__ __forceinline__ bool has(u32 result) const { return lane < COLUMNS; }
};

const u32 RESULTS = 1;                // that a thread ends with
const u32 BLOCKS_AT_ONCE = 3;         // of a processor: how many registers a thread may have

__device__ __forceinline__ Place place_of(const Shape& shape)
{
    const u32 output = blockIdx.x * (LANES / LANES_EACH) + threadIdx.x / LANES_EACH;
    return Place{
        threadIdx.x % LANES_EACH, blockIdx.y * COLUMNS, output, min_of(output, shape.outputs - 1)};
}
