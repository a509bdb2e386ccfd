// ternary_matmul: y[row, output] = dot × (x_scale[row] × w_scale[output]), dot = Σ (code − 1) × x
//
// Twin:      crates/setun-ops/src/ternary_matmul.rs
// Grid:      one block for some outputs (x) and rows (y), as the part that has `Place` says

const u32 RESIDUAL_APART = 1;
const u32 RESIDUAL_IN_PLACE = 2;

extern "C" __global__ void __launch_bounds__(LANES, BLOCKS_AT_ONCE) ternary_matmul(
    const Shape shape, const u32* __restrict__ step_words, const void* __restrict__ x,
    const void* __restrict__ second,        // what else the input is made of
    const uint4* __restrict__ w,            // codes [outputs, blocks], then scales
    const float* __restrict__ bias,         // [outputs]
    const float* __restrict__ residual,     // [rows, outputs]
    float* __restrict__ y)                  // [rows, width]
{
    const Step step{step_words};
    const Place place = place_of(shape);
    const u32 rows = step.rows_of(shape.wanted);
    if (place.first_row >= rows) {
        return;
    }
    const Matrix matrix{w, bias, 0};
    const Ahead ahead = look_ahead(shape, matrix, place);
    const Input input = make_input(shape, x, second, place.first_row, threadIdx.x);
    float products[RESULTS];
    products_of(shape, input, matrix, place, ahead, products);
#pragma unroll
    for (u32 result = 0; result < RESULTS; result += 1) {
        const u32 row = place.row(result), output = place.output_of(result);
        if (!place.has(result) || row >= rows || output >= shape.outputs) {
            continue;
        }
        const size_t at = (size_t)row * shape.width + shape.first + output;
        if (shape.residual == RESIDUAL_APART) {
            y[at] = products[result] + residual[(size_t)row * shape.outputs + output];
        } else if (shape.residual == RESIDUAL_IN_PLACE) {
            y[at] += products[result];
        } else {
            y[at] = products[result];
        }
    }
}
