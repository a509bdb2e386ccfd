// silu: g / (1 + exp(−g)), and zero where the definition's exponential is infinite, as no number here may be

fn gated(g: f32, u: f32) -> f32 {
    return select(g / (1.0 + exp_f32(-g)), 0.0, g < -88.37626 && g > -3e38) * u;
}
