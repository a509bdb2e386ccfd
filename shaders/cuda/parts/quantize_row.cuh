// A row of `quantize` with one scale.

template <class Shape>
__device__ void quantize_row(const Shape& shape, const float* x, const Norm& norm, u32 row, u32 lane, u32* codes)
{
    u32 most = 0;
#pragma unroll 4
    for (u32 i = lane; i < shape.x_width; i += LANES) {
        most = greatest_of(most, __float_as_uint(norm.of(x, i)) & 0x7fffffffu);
    }
    const Quantization quantization{greatest_over_block(lane, most)};
    i32 sum = 0;
    for (u32 word = lane; word < shape.words; word += LANES) {
        float values[4];
        norm.four(values, x, shape.x_width, word);
        codes[(size_t)row * shape.words + word] = quantization.pack(values, sum);
    }
    sum = total_over_block(lane, sum);
    if (lane == 0) {
        u32* scales = codes + (size_t)shape.capacity * shape.words;
        scales[row] = __float_as_uint(quantization.scale());
        scales[shape.capacity + row] = (u32)sum;
    }
}
