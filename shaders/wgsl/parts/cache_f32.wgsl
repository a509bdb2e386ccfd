// Vectors of a cache of f32: head_dim words.

fn key_at(vector: u32, i: u32) -> f32 { return bitcast<f32>(keys[vector * shape.head_dim + i]); }
fn value_at(vector: u32, i: u32) -> f32 { return bitcast<f32>(values[vector * shape.head_dim + i]); }
fn key_scale(vector: u32) -> f32 { return 1.0; }
fn value_scale(vector: u32) -> f32 { return 1.0; }
