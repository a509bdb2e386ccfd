#!/usr/bin/env python3
"""Makes the seeds of `corpus/safetensors` and `corpus/folder`: a model of each family, as small as
one can be. No package is needed; weights come from a seeded generator.

    python3 fuzz/seeds.py
"""
import json
import os
import random
import struct

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
BITNET_CONFIG = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}
BYTES = {"U8": 1, "F16": 2, "BF16": 2, "F32": 4}


def packed(rows, columns, values):
    """Four rows a byte."""
    codes = bytearray()
    for row in range(rows // 4):
        for column in range(columns):
            fields = (values.randrange(3) << (2 * field) for field in range(4))
            codes.append(sum(fields))
    return "U8", [rows // 4, columns], bytes(codes)


def floats(dtype, shape, values, choices=(0.5, 1.0, -0.25, 0.75)):
    count = 1
    for size in shape:
        count *= size
    data = bytearray()
    for _ in range(count):
        value = values.choice(choices)
        if dtype == "F16":
            data += struct.pack("<e", value)
        else:
            data += struct.pack("<f", value)[2 if dtype == "BF16" else 0:]
    return dtype, list(shape), bytes(data)


def model(family, store, config, values):
    """Tensors by name; `store` makes a linear layer's."""
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = config.get("head_dim", hidden // config["num_attention_heads"])
    query = config["num_attention_heads"] * head
    key = config["num_key_value_heads"] * head
    tensors = {"model.embed_tokens.weight": floats("BF16", [vocab, hidden], values)}
    layer = "model.layers.0."
    linears = {"self_attn.q_proj": (query, hidden), "self_attn.k_proj": (key, hidden),
               "self_attn.v_proj": (key, hidden), "self_attn.o_proj": (hidden, query),
               "mlp.gate_proj": (ffn, hidden), "mlp.up_proj": (ffn, hidden), "mlp.down_proj": (hidden, ffn)}
    norms = {"input_layernorm": hidden, "post_attention_layernorm": hidden}
    if family == "bitnet":
        norms |= {"self_attn.attn_sub_norm": hidden, "mlp.ffn_sub_norm": ffn}
    if family == "qwen3":
        norms |= {"self_attn.q_norm": head, "self_attn.k_norm": head}
    for name, size in norms.items():
        tensors[layer + name + ".weight"] = floats("BF16", [size], values)
    for name, (rows, columns) in linears.items():
        tensors |= store(layer + name, rows, columns, values)
    tensors["model.norm.weight"] = floats("F32", [hidden], values)
    if not config.get("tie_word_embeddings"):
        tensors["lm_head.weight"] = floats("F16", [vocab, hidden], values)
    return tensors


def offline(name, rows, columns, values):
    return {name + ".weight": packed(rows, columns, values),
            name + ".weight_scale": floats("BF16", [1], values, [0.5])}


def with_bias(name, rows, columns, values):
    return offline(name, rows, columns, values) | {
        name + ".bias": floats("BF16", [rows], values),
        name + ".rms_norm.weight": floats("BF16", [columns], values)}


def master(name, rows, columns, values):
    return {name + ".weight": floats("BF16", [rows, columns], values)}


def fake(name, rows, columns, values):
    return {name + ".weight": floats("F16", [rows, columns], values, [-0.5, 0.0, 0.5])}


def safetensors(tensors, metadata):
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def main():
    sizes = dict(hidden_size=8, intermediate_size=12, vocab_size=9, num_attention_heads=2,
                 num_key_value_heads=1, num_hidden_layers=1, max_position_embeddings=16)
    bitnet = dict(model_type="bitnet", tie_word_embeddings=True, **sizes)
    online = BITNET_CONFIG | {"quantization_mode": "online"}
    biased = dict(attention_bias=True, mlp_bias=True, quantization_config=BITNET_CONFIG | {
        "linear_class": "bitlinear", "use_rms_norm": True, "rms_norm_eps": 1e-6})
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4}
    models = {
        "bitnet-packed": ("bitnet", offline, bitnet | {"quantization_config": BITNET_CONFIG}),
        "bitnet-master": ("bitnet", master, bitnet | {"quantization_config": online}),
        "llama-bias": ("llama", with_bias, dict(model_type="llama", **sizes) | biased),
        "llama-shards": ("llama", fake, dict(model_type="llama", pretraining_model_parallel=2, **sizes)),
        "qwen3": ("qwen3", fake, dict(model_type="qwen3", head_dim=4, rope_scaling=yarn, **sizes)),
    }
    generation = b'{"do_sample":true,"temperature":0.6,"top_k":50,"top_p":0.9,"eos_token_id":[2,5]}'
    for folder in ("safetensors", "folder"):
        os.makedirs(os.path.join(CORPUS, folder), exist_ok=True)
    for seed, (name, (family, store, config)) in enumerate(models.items()):
        tensors = model(family, store, config, random.Random(seed))
        text = json.dumps(config, separators=(",", ":"))
        lone = safetensors(tensors, {"setun.file/config.json": text})
        write("safetensors", name, lone)
        weights = safetensors(tensors, None)
        write("folder", name, b"\0".join([text.encode(), generation, b"", weights]))
    index = json.dumps({"weight_map": {name: "a.safetensors" for name in tensors}}, separators=(",", ":"))
    write("folder", "index", b"\0".join([text.encode(), b"", index.encode(), weights]))


def write(folder, name, data):
    with open(os.path.join(CORPUS, folder, name), "wb") as file:
        file.write(data)


main()
