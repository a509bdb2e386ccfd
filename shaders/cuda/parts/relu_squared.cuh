// relu²: +0 where the gate is not positive, whatever the other is.

__device__ __forceinline__ float gated(float g, float u) { return g <= 0.0f ? 0.0f : g * g * u; }
