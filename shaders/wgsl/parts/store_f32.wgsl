fn store(vector: u32, key: u32, value: u32, lane: u32) {
    for (var i = lane; i < shape.head_dim; i += LANES) {
        keys[vector * shape.head_dim + i] = bitcast<u32>(qkv[key + i]);
        values[vector * shape.head_dim + i] = bitcast<u32>(qkv[value + i]);
    }
}
