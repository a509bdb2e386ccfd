// silu: g / (1 + exp(−g))

fn gated(g: f32, u: f32) -> f32 {
    return g / (1.0 + exp_f32(-g)) * u;
}
