#!/usr/bin/env python3
"""Makes the seeds of `corpus/safetensors` and `corpus/folder`: a model of each family, as small as
one can be; small ones of `corpus/gguf`, `corpus/onnx` and `corpus/setun`, beside the fixtures,
which are many times as long; and of `corpus/headers` what stands in these before the data. No package is needed; weights come from a seeded generator.

    python3 fuzz/seeds.py
"""
import hashlib
import json
import os
import random
import struct

import hybrid_seeds

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
    for folder in ("safetensors", "folder", "headers"):
        os.makedirs(os.path.join(CORPUS, folder), exist_ok=True)
    for seed, (name, (family, store, config)) in enumerate(models.items()):
        tensors = model(family, store, config, random.Random(seed))
        text = json.dumps(config, separators=(",", ":"))
        lone = safetensors(tensors, {"setun.file/config.json": text})
        write("safetensors", name, lone)
        write("headers", name, lone[:8 + int.from_bytes(lone[:8], "little")])
        weights = safetensors(tensors, None)
        write("folder", name, b"\0".join([text.encode(), generation, b"", weights]))
    index = json.dumps({"weight_map": {name: "a.safetensors" for name in tensors}}, separators=(",", ":"))
    write("folder", "index", b"\0".join([text.encode(), b"", index.encode(), weights]))
    for name, config, index, tensors in hybrid_seeds.folders(sizes, floats):
        config = json.dumps(config, separators=(",", ":"))
        write("config", name, config.encode())
        write("folder", name, b"\0".join([config.encode(), generation, index.encode(), safetensors(tensors, None)]))
        if not index:
            lone = safetensors(tensors, {"setun.file/config.json": config})
            write("safetensors", name, lone)
            write("headers", name, lone[:8 + int.from_bytes(lone[:8], "little")])
    other_formats(sizes)


# ---- GGUF

def gguf_text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def gguf_value(value):
    """A value with its type: a whole number, a float, a text, or a list of one of these."""
    if isinstance(value, list):
        kind, first = gguf_value(value[0])[:4], value[0]
        rest = b"".join(gguf_value(each)[4:] for each in value)
        assert all(type(each) is type(first) for each in value)
        return struct.pack("<I", 9) + kind + struct.pack("<Q", len(value)) + rest
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if value < 0:
        return struct.pack("<Ii", 5, value)
    return struct.pack("<II", 4, value)


GGUF_BLOCKS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q8_0": (8, 32, 34), "BF16": (30, 1, 2),
               "I2_S": (36, 4, 1), "Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18), "IQ1_BN": (134, 64, 13),
               "IQ2_BN": (135, 64, 16)}
NO_THREE = [byte for byte in range(256) if all(byte >> shift & 3 != 3 for shift in (0, 2, 4, 6))]


def gguf_data(kind, rows, columns, values):
    """Some codes, each with a scale of 0.5."""
    codes = lambda count: bytes(values.choice(NO_THREE) for _ in range(count))
    half, single = struct.pack("<e", 0.5), struct.pack("<f", 0.5)
    if kind in BYTES:
        return floats(kind, [rows, columns], values, (-0.5, 0.0, 0.5))[2]
    if kind == "I2_S":
        return codes(rows * columns // 4) + single + bytes(28)
    if kind == "Q8_0":
        return b"".join(half + values.randbytes(32) for _ in range(rows * columns // 32))
    if kind == "Q1_0":
        return b"".join(half + values.randbytes(16) for _ in range(rows * columns // 128))
    if kind == "Q2_0":
        return b"".join(half + codes(16) for _ in range(rows * columns // 64))
    before = single if kind == "IQ2_BN" else half
    middle = codes if kind == "IQ2_BN" else values.randbytes
    return b"".join(before + middle(columns // 64 * (16 if kind == "IQ2_BN" else 13))
                    for _ in range(rows))


def gguf(architecture, hidden, ffn, head, kinds, values, more=()):
    """One layer with one head; `kinds` are those of the linear layers, then of embedding, gains."""
    tokens = ["<s>", "</s>", "a", "b", "ab"]
    prefix = architecture + "."
    keys = {"general.architecture": architecture, prefix + "context_length": 16,
            prefix + "embedding_length": hidden, prefix + "block_count": 1,
            prefix + "feed_forward_length": ffn, prefix + "attention.head_count": 1,
            prefix + "attention.head_count_kv": 1, prefix + "rope.dimension_count": head,
            prefix + "attention.layer_norm_rms_epsilon": 1e-5, prefix + "rope.freq_base": 1e4,
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [3, 3, 1, 1, 1], "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 1}
    if head != hidden:
        keys |= {prefix + "attention.key_length": head, prefix + "attention.value_length": head}
    keys |= dict(more)
    linears = {"attn_q": (head, hidden), "attn_k": (head, hidden), "attn_v": (head, hidden),
               "attn_output": (hidden, head), "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden),
               "ffn_down": (hidden, ffn)}
    gains = {"attn_norm": hidden, "ffn_norm": hidden}
    if architecture.startswith("bitnet"):
        gains |= {"attn_sub_norm": head, "ffn_sub_norm": ffn}
    if architecture == "qwen3":
        gains |= {"attn_q_norm": head, "attn_k_norm": head}
    tensors = [("token_embd.weight", [len(tokens), hidden], kinds[7]),
               ("output_norm.weight", [hidden], kinds[8])]
    tensors += [(f"blk.0.{name}.weight", [size], "F16") for name, size in gains.items()]
    tensors += [(f"blk.0.{name}.weight", list(shape), kind)
                for (name, shape), kind in zip(linears.items(), kinds)]
    return gguf_file(keys, tensors, values)


def gguf_file(keys, tensors, values):
    """Header and data."""
    infos, data = b"", b""
    for name, shape, kind in tensors:
        number, _, _ = GGUF_BLOCKS[kind]
        rows, columns = ([1] + shape)[-2:]
        dims = b"".join(struct.pack("<Q", size) for size in reversed(shape))
        infos += gguf_text(name) + struct.pack("<I", len(shape)) + dims
        infos += struct.pack("<IQ", number, len(data))
        data += gguf_data(kind, rows, columns, values)
        data += bytes(-len(data) % 32)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    head += b"".join(gguf_text(key) + gguf_value(value) for key, value in keys.items()) + infos
    return head + bytes(-len(head) % 32), data


# ---- ONNX

def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_tensor(name, shape, kind, data):
    dims = b"".join(field(1, size) for size in shape)
    return field(5, dims + field(2, kind) + field(8, name) + field(9, data))


def onnx_node(op, name, inputs, **attributes):
    out = b"".join(field(1, each) for each in inputs) + field(2, name + "/output_0")
    out += field(3, name) + field(4, op)
    for key, value in attributes.items():
        out += field(5, field(1, key) + field(3, value) + field(20, 2))
    return field(1, out + field(7, "com.microsoft"))


ONNX_LAYERS = ("attn/q_proj", "attn/k_proj", "attn/v_proj", "attn/o_proj", "mlp/gate_proj",
               "mlp/up_proj", "mlp/down_proj")
ONNX_GAINS = ("input_layernorm", "post_attention_layernorm", "attn.attn_sub_norm", "mlp.ffn_sub_norm")


def onnx(values, bits):
    """The model of the target's small configuration: layers in every form of `MatMulNBits` and as
    floats, one table of so many bits as embedding and head."""
    size, vocab = 16, 9
    codes = lambda count: bytes(values.choice(NO_THREE) for _ in range(count))
    nodes, tensors = b"", b""
    parts = ["embed_tokens_quant", "embed_tokens_scales", "embed_tokens_zp"]
    tensors += onnx_tensor(parts[0], [vocab, size * bits // 8], 2, codes(vocab * size * bits // 8))
    tensors += onnx_tensor(parts[1], [vocab, 1], 10, floats("F16", [vocab], values)[2])
    tensors += onnx_tensor(parts[2], [vocab, 1], 2, bytes([1] * vocab))
    nodes += onnx_node("GatherBlockQuantized", "/model/embed_tokens/Gather",
                       [parts[0], "ids", *parts[1:]], bits=bits, block_size=size, gather_axis=0,
                       quantize_axis=1)
    for gain in ["layers.0." + each for each in ONNX_GAINS] + ["norm"]:
        name = f"model.{gain}.weight"
        tensors += onnx_tensor(name, [size], 1, floats("F32", [size], values)[2])
        nodes += onnx_node("LayerNorm", "/" + gain, ["x", name])
    for index, layer in enumerate(ONNX_LAYERS):
        path, names = f"/model/layers.0/{layer}/MatMul", [f"w{index}", f"s{index}", f"z{index}"]
        if layer.endswith("o_proj"):
            weight = floats("F16", [size, size], values, (-0.5, 0.0, 0.5))[2]
            tensors += onnx_tensor(names[0], [size, size], 10, weight)
            nodes += onnx_node("MatMul", path, ["x", names[0]])
            continue
        tensors += onnx_tensor(names[0], [size, 1, 4], 2, codes(size * 4))
        tensors += onnx_tensor(names[1], [size], 1, struct.pack("<f", 0.5) * size)
        zeros = (2, bytes([1] * size)) if index % 2 else (1, struct.pack("<f", 1) * size)
        tensors += onnx_tensor(names[2], [size, 1], *zeros)
        nodes += onnx_node("MatMulNBits", path, ["x", *names], K=size, N=size, bits=2, block_size=size)
    nodes += onnx_node("MatMulNBits", "/lm_head/MatMul", ["x", *parts], K=size, N=vocab, bits=bits,
                       block_size=size)
    return field(1, 10) + field(2, "setun-seed") + field(7, nodes + field(2, "g") + tensors)


# ---- .setun

ROOM = 4096  # of what stands before the data


def trits(rows, columns, values):
    row = lambda: [values.randrange(3) for _ in range(columns)] + [1] * (-columns % 5)
    return b"".join(bytes(sum(digit * 3 ** place for place, digit in enumerate(codes[at:at + 5]))
                          for at in range(0, len(codes), 5)) for codes in (row() for _ in range(rows)))


def as_trits(scales):
    """A maker of linear layers with scales of this shape."""
    def store(name, rows, columns, values):
        shape = [rows if size == "rows" else size for size in scales]
        return {name + ".weight": ("TRITS", [rows, columns], trits(rows, columns, values)),
                name + ".weight_scale": floats("F32", shape, values, [0.5])}
    return store


def container(tensors, config, chunk_bytes):
    content = b"".join(data for _, _, data in tensors.values())
    cuts, start = [0], 0
    for _, _, data in tensors.values():
        start += len(data)
        if start - cuts[-1] >= chunk_bytes or start == len(content):
            cuts.append(start)
    chunks = [{"offset": ROOM + a, "stored": b - a, "bytes": b - a,
               "sha256": hashlib.sha256(content[a:b]).hexdigest()} for a, b in zip(cuts, cuts[1:])]
    entries = [{"name": name, "dtype": dtype, "shape": shape}
               for name, (dtype, shape, _) in tensors.items()]
    manifest = {"version": 1, "parts": [{"file": "model.setun", "bytes": ROOM + len(content)}],
                "files": [{"name": "config.json", "text": json.dumps(config, separators=(",", ":"))}],
                "tensors": entries, "chunks": chunks}
    manifest = json.dumps(manifest, separators=(",", ":")).encode()
    manifest += b" " * (ROOM - 48 - len(manifest))
    head = struct.pack("<6sHQ", b"SETUN", 1, len(manifest))
    return head + hashlib.sha256(head + manifest).digest() + manifest + content


def other_formats(sizes):
    plain = ["F16"] * 7
    ggufs = {
        "bitnet-f16": gguf("bitnet-b1.58", 8, 12, 8, plain + ["F16", "F32"], random.Random(11)),
        "llama-mixed": gguf("llama", 64, 8, 8, ["Q2_0", "IQ2_BN", "IQ1_BN", "F16", "Q2_0", "IQ2_BN",
                                                "BF16", "Q8_0", "Q8_0"], random.Random(12)),
        "qwen3-i2_s": gguf("qwen3", 128, 4, 4, ["I2_S", "I2_S", "I2_S", "F16", "I2_S", "I2_S", "F16",
                                                "BF16", "F16"], random.Random(13)),
        "qwen3-q1_0": gguf("qwen3", 128, 128, 128, ["Q1_0"] * 8 + ["F16"], random.Random(17)),
        "qwen35-rotated": gguf_file(*hybrid_seeds.gguf(), random.Random(18)),
    }
    files = {f"gguf/{name}": head + data for name, (head, data) in ggufs.items()}
    files |= {f"headers/gguf-{name}": head for name, (head, _) in ggufs.items()}
    files |= {
        "onnx/two-bits": onnx(random.Random(14), 2),
        "onnx/four-bits": onnx(random.Random(15), 4),
    }
    bitnet = dict(model_type="bitnet", tie_word_embeddings=True, **sizes)
    llama = dict(model_type="llama", tie_word_embeddings=True, **sizes)
    for name, family, config, scales in (("bitnet", "bitnet", bitnet, [1]),
                                         ("llama-rows", "llama", llama, ["rows", 1])):
        config = config | {"quantization_config": BITNET_CONFIG}
        tensors = model(family, as_trits(scales), config, random.Random(16))
        files["setun/" + name] = container(tensors, config, 256)
    # What stands before the data; in ONNX these are part of it.
    files["headers/onnx"] = files["onnx/two-bits"]
    files["headers/setun"] = files["setun/bitnet"][:ROOM]
    for name, data in files.items():
        os.makedirs(os.path.join(CORPUS, os.path.dirname(name)), exist_ok=True)
        write("", name, data)


def write(folder, name, data):
    with open(os.path.join(CORPUS, folder, name), "wb") as file:
        file.write(data)


main()
