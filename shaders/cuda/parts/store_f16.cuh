// A key, or a value, enters a cache of f16: to the nearest, ties to even; beyond ±65504 saturated.

__device__ u32 round_f16(float x)
{
    const u32 bits = __float_as_uint(x);
    const u32 sign = bits >> 16 & 0x8000u;
    const u32 magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return sign | 0x7e00u;
    }
    if (magnitude >= 0x477fe000u) {
        return sign | 0x7bffu;
    }
    if (magnitude < 0x38800000u) {
        // Beside one half the last place is that of a subnormal f16.
        return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u);
    }
    return sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
}

__device__ void store(u32* cache, u32 vector, const float* x, u32 dim, u32 lane)
{
    for (u32 i = lane; i < dim / 2; i += LANES) {
        cache[(size_t)vector * (dim / 2) + i] = round_f16(x[2 * i]) | round_f16(x[2 * i + 1]) << 16;
    }
}
