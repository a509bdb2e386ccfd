// gate: out = activation(gate(x)) × up(x)
//
// Twin:      crates/setun-ops/src/gate.rs
// Grid:      one block for some outputs (x) and rows (y), as the part that has `Place` says

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS_AT_ONCE) gate(
    const Shape shape, const u32* __restrict__ step_words, const void* __restrict__ x,
    const void* __restrict__ second,        // what else the input is made of
    const uint4* __restrict__ w,            // gate: codes [outputs, blocks], then scales
    const uint4* __restrict__ up,           // likewise
    const float* __restrict__ bias,         // of the gate, [outputs]
    const float* __restrict__ up_bias,      // [outputs]
    float* __restrict__ out)                // [rows, outputs]
{
    const Step step{step_words};
    const Place place = place_of(shape);
    const u32 rows = step.rows_of(shape.wanted);
    if (place.first_row >= rows) {
        return;
    }
    const Matrix first{w, bias, 0}, other{up, up_bias, 1};
    const Ahead ahead = look_ahead(shape, first, place);
    const Ahead ahead_of_other = look_ahead(shape, other, place);
    const Input input = make_input(shape, x, second, place.first_row, threadIdx.x);
    float g[RESULTS], u[RESULTS];
    products_of(shape, input, first, place, ahead, g);
    products_of(shape, input, other, place, ahead_of_other, u);
#pragma unroll
    for (u32 result = 0; result < RESULTS; result += 1) {
        const u32 row = place.row(result), output = place.output_of(result);
        if (place.has(result) && row < rows && output < shape.outputs) {
            out[(size_t)row * shape.width + output] = gated(g[result], u[result]);
        }
    }
}
