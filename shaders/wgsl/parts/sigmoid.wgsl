// 1 / (1 + e^−x), and zero where the definition's exponential is infinite, as no number here may be

fn sigmoid(x: f32) -> f32 {
    return select(1.0 / (1.0 + exp_f32(-x)), 0.0, x < -88.37626);
}
