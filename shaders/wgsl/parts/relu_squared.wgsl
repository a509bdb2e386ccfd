// relu²: +0 where the gate is not positive, whatever the other is.

fn gated(g: f32, u: f32) -> f32 {
    if g <= 0.0 {
        return 0.0;
    }
    return g * g * u;
}
