// A key, or a value, enters a cache of int8: a code a column, and a scale for the vector.

__device__ void store(u32* cache, u32 vector, const float* x, u32 dim, u32 lane)
{
    const u32 words = (dim + 3) / 4;
    u32* own = cache + (size_t)vector * (words + 1);
    // By bits, so that what is not finite is the greatest.
    u32 most = 0;
    for (u32 i = lane; i < dim; i += LANES) {
        most = greatest_of(most, __float_as_uint(x[i]) & 0x7fffffffu);
    }
    most = greatest_over_block(lane, most);
    const bool is_finite = most < 0x7f800000u;
    const float found = __uint_as_float(most);
    const float absmax = found < 1e-5f ? 1e-5f : found;
    const float factor = 127.0f / absmax;
    for (u32 word = lane; word < words; word += LANES) {
        u32 packed = 0;
        for (u32 i = word * 4; is_finite && i < min_of(word * 4 + 4, dim); i += 1) {
            packed |= ((u32)code_of(x[i] * factor) & 0xffu) << (8 * (i % 4));
        }
        own[word] = packed;
    }
    if (lane == 0) {
        own[words] = is_finite ? __float_as_uint(absmax / 127.0f) : 0x7fc00000u;
    }
}
