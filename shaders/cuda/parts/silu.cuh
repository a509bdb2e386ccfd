// silu: g / (1 + exp(−g))

__device__ __forceinline__ float gated(float g, float u) { return g / (1.0f + exp_f32(-g)) * u; }
