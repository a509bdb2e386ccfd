// A row of `quantize` with a scale for each group of columns: eight neighbouring threads take a group.

const u32 LANES_EACH = 8;

template <class Shape>
__device__ void quantize_row(const Shape& shape, const float* x, const Norm& norm, u32 row, u32 lane, u32* codes)
{
    u32* scales = codes + (size_t)shape.capacity * shape.words + (size_t)row * shape.groups;
    for (u32 first = 0; first < shape.groups; first += LANES / LANES_EACH) {
        const u32 group = first + lane / LANES_EACH;
        // The last has the padding too, and there are none beyond.
        const u32 begin = group < shape.groups ? group * shape.group_words : shape.words;
        const u32 end = group + 1 < shape.groups ? begin + shape.group_words : shape.words;
        float values[4];
        u32 most = 0;
        for (u32 word = begin + lane % LANES_EACH; word < end; word += LANES_EACH) {
            norm.four(values, x, shape.x_width, word);
#pragma unroll
            for (u32 k = 0; k < 4; k += 1) {
                most = greatest_of(most, __float_as_uint(values[k]) & 0x7fffffffu);
            }
        }
#pragma unroll
        for (u32 width = LANES_EACH / 2; width > 0; width /= 2) {
            most = greatest_of(most, __shfl_xor_sync(ALL, most, width));
        }
        const Quantization quantization{most};
        i32 sum = 0;
        for (u32 word = begin + lane % LANES_EACH; word < end; word += LANES_EACH) {
            norm.four(values, x, shape.x_width, word);
            codes[(size_t)row * shape.words + word] = quantization.pack(values, sum);
        }
        if (group < shape.groups && lane % LANES_EACH == 0) {
            scales[group] = __float_as_uint(quantization.scale());
        }
    }
}
