// Products of COLUMNS rows with a matrix that has one scale a row, 256 columns at a time. A block has four warps,
// two along each edge of its tile; activations go through the block's memory, codes are unpacked in registers.
//
// A sum does not mind the order of its columns, so a thread takes of each row one whole vector of packed codes,
// and activations of the same columns: nothing is moved within a vector.

const u32 STEP_QUADS = 4;             // vectors of a packed row in a step: 256 columns
const u32 TILE_OUTPUTS = 16;          // of one instruction, and its rows
const u32 TILE_ROWS = 8;
const u32 OUTPUT_TILES = 2;           // of a warp
const u32 ROW_TILES = COLUMNS / 2 / TILE_ROWS;
const u32 STEP_X_QUADS = STEP_QUADS * PLANES;
const u32 STRIDE = STEP_X_QUADS + 4;  // rows in the block's memory, so that eight threads meet no bank twice
const u32 EACH = COLUMNS * STEP_X_QUADS / LANES;    // vectors of activations that a thread brings in a step
const u32 RESULTS = OUTPUT_TILES * ROW_TILES * 4;
const u32 BLOCKS_AT_ONCE = 2;         // of a processor: how many registers a thread may have

struct Place {
    u32 first_row;      // of the block
    u32 warp_row;       // of the warp, counted from it
    u32 warp_output;
    u32 g, t;           // of the lane, as `add_tile` has them

    __device__ __forceinline__ u32 row(u32 result) const
    {
        return first_row + warp_row + result / 4 % ROW_TILES * TILE_ROWS + 2 * t + result % 2;
    }

    __device__ __forceinline__ u32 output_of(u32 result) const
    {
        return warp_output + result / 4 / ROW_TILES * TILE_OUTPUTS + g + result / 2 % 2 * 8;
    }

    __device__ __forceinline__ bool has(u32 result) const { return true; }
};

__device__ __forceinline__ Place place_of(const Shape& shape)
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 warp_output = (blockIdx.x * 2 + warp / 2) * (OUTPUT_TILES * TILE_OUTPUTS);
    return Place{blockIdx.y * COLUMNS, warp % 2 * (COLUMNS / 2), warp_output, lane / 4, lane % 4};
}

struct Ahead {};

__device__ __forceinline__ Ahead look_ahead(const Shape& shape, const Matrix& matrix, const Place& place)
{
    return Ahead{};
}

// Packed codes of a step: of rows g and g + 8 of each tile.
struct StepCodes {
    uint4 quads[OUTPUT_TILES][2];
};

__device__ __forceinline__ StepCodes codes_of_step(
    const Shape& shape, const Matrix& matrix, const Place& place, u32 step)
{
    const u32 quad = step * STEP_QUADS + place.t;
    StepCodes codes;
#pragma unroll
    for (u32 i = 0; i < OUTPUT_TILES * 2; i += 1) {
        const u32 output = min_of(place.warp_output + i * 8 + place.g, shape.outputs - 1);
        // Beyond the row there are zero codes, whose activations may be any that are there.
        codes.quads[i / 2][i % 2] =
            quad < quads_of(shape) ? matrix.row(shape, output)[quad] : make_uint4(0, 0, 0, 0);
    }
    return codes;
}

// Begins to bring a step's activations.
__device__ __forceinline__ void bring(
    uint4* x, const Shape& shape, const Input& input, const Matrix& matrix, const Place& place, u32 step)
{
#pragma unroll
    for (u32 i = 0; i < EACH; i += 1) {
        const u32 item = threadIdx.x + i * LANES;
        const u32 row = item / STEP_X_QUADS, at = item % STEP_X_QUADS;
        const u32 quad = min_of(step * STEP_QUADS + at % STEP_QUADS, quads_of(shape) - 1);
        begin_copy(x + row * STRIDE + at, input.place(matrix.side, place.first_row + row, at / STEP_QUADS, quad));
    }
}

__device__ __forceinline__ void add_step(
    i32 (&sums)[OUTPUT_TILES][ROW_TILES][4], const StepCodes& codes, const uint4* x, const Place& place)
{
#pragma unroll
    for (u32 plane = 0; plane < PLANES; plane += 1) {
        u32 a[OUTPUT_TILES][2][4];      // of both halves of a vector
#pragma unroll
        for (u32 i = 0; i < OUTPUT_TILES * 8; i += 1) {
            const u32 word = i / 4 % 2 * 2 + i % 4 / 2;
            a[i / 8][i / 4 % 2][i % 4] = word_of(codes.quads[i / 8][i % 2], word) >> (2 * plane) & CODES;
        }
#pragma unroll
        for (u32 n = 0; n < ROW_TILES; n += 1) {
            const u32 row = place.warp_row + n * TILE_ROWS + place.g;
            const uint4 b = x[row * STRIDE + plane * STEP_QUADS + place.t];
#pragma unroll
            for (u32 m = 0; m < OUTPUT_TILES; m += 1) {
                add_tile(sums[m][n], a[m][0], b.x, b.y);
                add_tile(sums[m][n], a[m][1], b.z, b.w);
            }
        }
    }
}

__device__ __forceinline__ void products_of(
    const Shape& shape, const Input& input, const Matrix& matrix, const Place& place, const Ahead& ahead,
    float (&results)[RESULTS])
{
    __shared__ uint4 x[2][COLUMNS * STRIDE];
    const u32 steps = (quads_of(shape) + STEP_QUADS - 1) / STEP_QUADS;
    i32 sums[OUTPUT_TILES][ROW_TILES][4] = {};
    // Another product may still read this memory.
    __syncthreads();
    bring(x[0], shape, input, matrix, place, 0);
    StepCodes codes = codes_of_step(shape, matrix, place, 0);
#pragma unroll 1
    for (u32 step = 0; step < steps; step += 1) {
        finish_copies();
        __syncthreads();
        // The next step is on its way while this one is computed; the last brings itself again.
        const u32 next = min_of(step + 1, steps - 1);
        bring(x[(step + 1) % 2], shape, input, matrix, place, next);
        const StepCodes next_codes = codes_of_step(shape, matrix, place, next);
        add_step(sums, codes, x[step % 2], place);
        codes = next_codes;
    }
    finish_copies();
#pragma unroll
    for (u32 result = 0; result < RESULTS; result += 1) {
        const u32 row = place.row(result), output = min_of(place.output_of(result), shape.outputs - 1);
        const i32 dot = sums[result / 4 / ROW_TILES][result / 4 % ROW_TILES][result % 4] - input.sum(matrix.side, row);
        results[result] = scaled(shape, matrix, output, dot, input.scale(matrix.side, row));
    }
}
