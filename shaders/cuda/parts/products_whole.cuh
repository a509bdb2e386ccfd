// An output of a matrix with one scale a row.

// One row alone: each plane's codes stay where they lie in their bytes, and its sum is 1, 4, 16 or 64 times what
// it should be, which saves the shifts. Several rows share what is unpacked.
const u32 SUMS = COLUMNS == 1 ? PLANES : 1;

// Activations that are loaded together take registers: four vectors, or one of each row.
const u32 PLANES_AT_ONCE = COLUMNS < PLANES ? PLANES / COLUMNS : 1;

// Vectors of a matrix that are asked for before the activations are there: they depend on nothing.
struct Ahead {
    uint4 quads[AHEAD];
};

__device__ __forceinline__ uint4 quad_at(const uint4* row, u32 quad, u32 quads)
{
    return quad < quads ? row[quad] : make_uint4(0, 0, 0, 0);
}

__device__ __forceinline__ Ahead look_ahead(const Shape& shape, const Matrix& matrix, const Place& place)
{
    const uint4* row = matrix.row(shape, place.output);
    Ahead ahead;
#pragma unroll
    for (u32 i = 0; i < AHEAD; i += 1) {
        ahead.quads[i] = quad_at(row, place.lane + i * LANES_EACH, quads_of(shape));
    }
    return ahead;
}

__device__ __forceinline__ void add_quad(
    i32 (&sums)[COLUMNS][SUMS], const uint4& packed, const Input& input, u32 side, u32 first_row, u32 quad)
{
#pragma unroll PLANES_AT_ONCE
    for (u32 plane = 0; plane < PLANES; plane += 1) {
#pragma unroll
        for (u32 c = 0; c < COLUMNS; c += 1) {
            const uint4 x = input.quad(side, first_row + c, plane, quad);
#pragma unroll
            for (u32 k = 0; k < 4; k += 1) {
                if (SUMS == PLANES) {
                    const u32 codes = word_of(packed, k) & (CODES << (2 * plane));
                    sums[0][plane % SUMS] = dot4(codes, word_of(x, k), sums[0][plane % SUMS]);
                } else {
                    const u32 codes = word_of(packed, k) >> (2 * plane) & CODES;
                    sums[c][0] = dot4(codes, word_of(x, k), sums[c][0]);
                }
            }
        }
    }
}

__device__ __forceinline__ void products_of(
    const Shape& shape, const Input& input, const Matrix& matrix, const Place& place, const Ahead& ahead,
    float (&results)[RESULTS])
{
    const uint4* row = matrix.row(shape, place.output);
    const u32 quads = quads_of(shape);
    i32 sums[COLUMNS][SUMS] = {};
    // Beyond the row there are zero codes, whose activations may be any that are there.
#pragma unroll
    for (u32 i = 0; i < AHEAD; i += 1) {
        const u32 quad = place.lane + i * LANES_EACH;
        add_quad(sums, ahead.quads[i], input, matrix.side, place.first_row, min_of(quad, quads - 1));
    }
#pragma unroll 2
    for (u32 quad = place.lane + AHEAD * LANES_EACH; quad < quads; quad += LANES_EACH) {
        add_quad(sums, row[quad], input, matrix.side, place.first_row, quad);
    }
    i32 own = 0;
#pragma unroll
    for (u32 c = 0; c < COLUMNS; c += 1) {
        i32 sum = sums[c][0];
#pragma unroll
        for (u32 plane = 1; plane < SUMS; plane += 1) {
            sum += sums[c][plane] >> (2 * plane);
        }
#pragma unroll
        for (u32 width = LANES_EACH / 2; width > 0; width /= 2) {
            sum += __shfl_xor_sync(ALL, sum, width);
        }
        own = c == place.lane ? sum : own;
    }
    const u32 at_row = place.row(0);
    const i32 dot = own - input.sum(matrix.side, at_row);
    results[0] = scaled(shape, matrix, place.output, dot, input.scale(matrix.side, at_row));
}
