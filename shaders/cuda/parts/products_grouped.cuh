// An output of a matrix with a scale for each group of columns, groups ascending: each lane sums a group, then
// lane c < COLUMNS adds them up for its row. A matrix beside it may have one scale a row.

struct Ahead {};

__device__ __forceinline__ Ahead look_ahead(const Shape& shape, const Matrix& matrix, const Place& place)
{
    return Ahead{};
}

__device__ __forceinline__ i32 group_dot(
    const Shape& shape, const Input& input, const Matrix& matrix, u32 output, u32 row, u32 group)
{
    const u32 planes = shape.group_planes[matrix.side];
    const u32 end = min_of((group + 1) * planes, shape.blocks * PLANES);
    i32 sum = 0;
    for (u32 plane = group * planes; plane < end; plane += 1) {
        for (u32 half = 0; half < PLANE_QUADS; half += 1) {
            const u32 quad = plane / PLANES * BLOCK_QUADS + half;
            const uint4 packed = matrix.row(shape, output)[quad];
            const uint4 x = input.quad(matrix.side, row, plane % PLANES, quad);
#pragma unroll
            for (u32 k = 0; k < 4; k += 1) {
                const u32 codes = word_of(packed, k) >> (2 * (plane % PLANES)) & CODES;
                sum += dot4(codes, word_of(x, k), 0) - dot4(ONES, word_of(x, k), 0);
            }
        }
    }
    return sum;
}

__device__ __forceinline__ void products_of(
    const Shape& shape, const Input& input, const Matrix& matrix, const Place& place, const Ahead& ahead,
    float (&results)[RESULTS])
{
    const u32 groups = shape.groups[matrix.side];
    float acc = 0.0f;
    i32 own = 0;
    for (u32 first = 0; first < groups; first += LANES_EACH) {
        i32 dots[COLUMNS];
#pragma unroll
        for (u32 c = 0; c < COLUMNS; c += 1) {
            dots[c] = group_dot(shape, input, matrix, place.output, place.first_row + c, first + place.lane);
        }
        for (u32 group = first; group < min_of(first + LANES_EACH, groups); group += 1) {
#pragma unroll
            for (u32 c = 0; c < COLUMNS; c += 1) {
                const i32 dot = __shfl_sync(ALL, dots[c], group - first, LANES_EACH);
                own = c == place.lane ? dot : own;
            }
            acc += (float)own * matrix.scale(shape, place.output, group);
        }
    }
    const float x_scale = input.scale(matrix.side, place.row(0));
    if (shape.grouped[matrix.side] == 0) {
        results[0] = scaled(shape, matrix, place.output, own, x_scale);
        return;
    }
    const float y = acc * x_scale;
    results[0] = shape.bias[matrix.side] == BIAS_AFTER_SCALE ? y + matrix.bias[place.output] : y;
}
