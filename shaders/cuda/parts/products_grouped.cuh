// An output by groups of columns, of weights or of activations: each lane has the terms of a run, then lane c < COLUMNS
// adds them up for its row, runs ascending. Another matrix beside may have one scale a row, as have its activations: its
// terms are integers.

struct Ahead {};

__device__ __forceinline__ Ahead look_ahead(const Shape& shape, const Matrix& matrix, const Place& place)
{
    return Ahead{};
}

__device__ __forceinline__ i32 run_dot(
    const Shape& shape, const Input& input, const Matrix& matrix, u32 output, u32 row, u32 run)
{
    const u32 planes = shape.run_planes[matrix.side];
    i32 sum = 0;
    for (u32 plane = run * planes; plane < (run + 1) * planes; plane += 1) {
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
    const u32 side = matrix.side, runs = shape.runs[side];
    const bool grouped = shape.grouped[side] != 0;
    float acc = 0.0f;
    i32 sum = 0;
    for (u32 first = 0; first < runs; first += LANES_EACH) {
        const u32 run = min_of(first + place.lane, runs - 1);
        const float w = matrix.scale(shape, place.output, run / shape.w_runs[side]);
        u32 terms[COLUMNS];
#pragma unroll
        for (u32 c = 0; c < COLUMNS; c += 1) {
            const i32 dot = run_dot(shape, input, matrix, place.output, place.first_row + c, run);
            const float t = input.group_scale(side, place.first_row + c, run / shape.x_runs[side]);
            terms[c] = grouped ? __float_as_uint((float)dot * (t * w)) : (u32)dot;
        }
        for (u32 at = 0; at < min_of(LANES_EACH, runs - first); at += 1) {
            u32 own = 0;
#pragma unroll
            for (u32 c = 0; c < COLUMNS; c += 1) {
                const u32 term = __shfl_sync(ALL, terms[c], at, LANES_EACH);
                own = c == place.lane ? term : own;
            }
            if (grouped) {
                acc += __uint_as_float(own);
            } else {
                sum += (i32)own;
            }
        }
    }
    if (!grouped) {
        results[0] = scaled(shape, matrix, place.output, sum, input.scale(side, place.row(0)));
        return;
    }
    results[0] = shape.bias[side] == BIAS_AFTER_SCALE ? acc + matrix.bias[place.output] : acc;
}
