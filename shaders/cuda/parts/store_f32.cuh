// A key, or a value, enters a cache of f32.

__device__ void store(u32* cache, u32 vector, const float* x, u32 dim, u32 lane)
{
    for (u32 i = lane; i < dim; i += LANES) {
        cache[(size_t)vector * dim + i] = __float_as_uint(x[i]);
    }
}
