"""Seeds of the hybrid family, which `seeds.py` writes."""
import json
import random


def folders(sizes, floats):
    """A model of the hybrid family, the same within a model of images, and a pack with a rotation: of each its
    name, `config.json`, index and tensors."""
    text = sizes | dict(num_hidden_layers=2, head_dim=4, linear_num_key_heads=1, linear_num_value_heads=2,
                        linear_key_head_dim=4, linear_value_head_dim=4, linear_conv_kernel_dim=4,
                        rope_parameters={"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.5})
    types = ["linear_attention", "full_attention"]
    tied = dict(tie_word_embeddings=True)
    plain = dict(architectures=["Qwen3_5ForCausalLM"], full_attention_interval=2, **text, **tied)
    wrapper = dict(model_type="qwen3_5", text_config=dict(layer_types=types, **text), vision_config={"depth": 1}, **tied)
    pack = dict(model_type="prism_hadamard_qwen35", hadamard_config="hadamard.json", schema_version=2,
                gdn_activation_layout="grouped", text_config=dict(layer_types=types, **text),
                modules=[{"path": "model.layers.1.mlp.up_proj", "block": 4, "embedding": False},
                         {"path": "model.embed_tokens", "block": 4, "embedding": True},
                         {"path": "lm_head", "block": 0, "embedding": False}])
    inner = "language_model.model."
    packed_tensors = hybrid(text, random.Random(23), floats, inner, turned=True)
    packed_tensors["language_model.lm_head.weight"] = floats("F16", [9, 8], random.Random(24))
    keys = rotation([inner + "layers.1.mlp.up_proj.weight"], inner + "embed_tokens.weight", [1.0] * 20)
    keys["weight_map"] = {name: "a.safetensors" for name in packed_tensors}
    return (("qwen35", plain, "", hybrid(text, random.Random(21), floats)),
            ("qwen35-wrapper", wrapper, "", hybrid(text, random.Random(22), floats, "model.language_model.")),
            ("qwen35-pack", pack, json.dumps(keys, separators=(",", ":")), packed_tensors))


def hybrid(config, values, floats, prefix="model.", turned=False):
    """A delta net and a layer that attends, with a tensor of a vision tower and one of an MTP head."""
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head, key_heads, value_heads, width = 4, 1, 2, 4
    channels = (2 * key_heads + value_heads) * width
    taps = [channels, 4, 1] if turned else [channels, 1, 4]
    linears = {"0.linear_attn.in_proj_qkv": (channels, hidden), "0.linear_attn.in_proj_z": (value_heads * width, hidden),
               "0.linear_attn.in_proj_a": (value_heads, hidden), "0.linear_attn.in_proj_b": (value_heads, hidden),
               "0.linear_attn.out_proj": (hidden, value_heads * width), "1.self_attn.q_proj": (4 * head, hidden),
               "1.self_attn.k_proj": (head, hidden), "1.self_attn.v_proj": (head, hidden),
               "1.self_attn.o_proj": (hidden, 2 * head)}
    norms = {"0.linear_attn.norm": width, "1.self_attn.q_norm": head, "1.self_attn.k_norm": head}
    for layer in "01":
        linears |= {layer + ".mlp.gate_proj": (ffn, hidden), layer + ".mlp.up_proj": (ffn, hidden),
                    layer + ".mlp.down_proj": (hidden, ffn)}
        norms |= {layer + ".input_layernorm": hidden, layer + ".post_attention_layernorm": hidden}
    tensors = {prefix + "embed_tokens.weight": floats("F16", [vocab, hidden], values, [-0.5, 0.0, 0.5])}
    layers = prefix + "layers."
    for name, shape in linears.items():
        tensors[layers + name + ".weight"] = floats("F16", list(shape), values, [-0.5, 0.0, 0.5])
    for name, size in norms.items():
        tensors[layers + name + ".weight"] = floats("BF16", [size], values)
    for name in ("A_log", "dt_bias"):
        tensors[layers + "0.linear_attn." + name] = floats("F32", [value_heads], values)
    tensors[layers + "0.linear_attn.conv1d.weight"] = floats("BF16", taps, values)
    tensors[prefix + "norm.weight"] = floats("F32", [hidden], values)
    if turned:
        return tensors | {prefix + "layers.1.mlp.up_proj.signs": floats("F32", [hidden], values, [1.0])}
    return tensors | {"model.visual.pos_embed.weight": floats("F16", [2, 2], values),
                      "mtp.norm.weight": floats("F16", [hidden], values)}


def rotation(names, table, signs):
    """The keys of a rotation in blocks of four of inputs of 8 and 12 columns."""
    keys = {"version": 1, "block_size": 4, "transform": "normalized-sylvester-walsh-hadamard",
            "axis": "input-last-dimension", "sign_mode": "explicit", "sign_widths": [8, 12],
            "sign_values": signs, "weight_names": names, "inverse_weight_names": [table]}
    return {"prism.hadamard." + key: value for key, value in keys.items()}


def gguf():
    """Keys and tensors of a file: a delta net, a layer that attends and an MTP head's block, with a rotation."""
    hidden, ffn, head, vocab = 8, 12, 4, 5
    prefix = "qwen35."
    keys = {"general.architecture": "qwen35", prefix + "context_length": 16, prefix + "embedding_length": hidden,
            prefix + "block_count": 3, prefix + "nextn_predict_layers": 1, prefix + "feed_forward_length": ffn,
            prefix + "attention.head_count": 2, prefix + "attention.head_count_kv": 1,
            prefix + "attention.key_length": head, prefix + "attention.value_length": head,
            prefix + "attention.layer_norm_rms_epsilon": 1e-6, prefix + "rope.freq_base": 1e7,
            prefix + "rope.dimension_count": 2, prefix + "rope.dimension_sections": [1, 0, 0, 0],
            prefix + "attention.recurrent_layers": [True, False, False], prefix + "full_attention_interval": 2,
            prefix + "ssm.conv_kernel": 4, prefix + "ssm.state_size": 4, prefix + "ssm.group_count": 2,
            prefix + "ssm.time_step_rank": 4, prefix + "ssm.inner_size": 16, "tokenizer.ggml.model": "no_vocab"}
    names = ["blk.0.ffn_up.weight", "blk.0.ffn_down.weight", "blk.1.attn_q.weight", "output.weight"]
    keys |= rotation(names, "token_embd.weight", [-1, -1] * 10) | {"prism.hadamard.gdn_v_grouped": False}
    tensors = [("token_embd.weight", [vocab, hidden], "F16"), ("output.weight", [vocab, hidden], "F16"),
               ("output_norm.weight", [hidden], "F32"), ("blk.0.ssm_a", [4], "F32"), ("blk.0.ssm_dt.bias", [4], "F32"),
               ("blk.0.ssm_conv1d.weight", [32, 4], "F32"), ("blk.0.ssm_norm.weight", [4], "F32"),
               ("blk.1.attn_q_norm.weight", [head], "F32"), ("blk.1.attn_k_norm.weight", [head], "F32"),
               ("blk.2.nextn.enorm.weight", [hidden], "F32")]
    linears = {"0.attn_qkv": [32, hidden], "0.attn_gate": [16, hidden], "0.ssm_alpha": [4, hidden],
               "0.ssm_beta": [4, hidden], "0.ssm_out": [hidden, 16], "1.attn_q": [4 * head, hidden],
               "1.attn_k": [head, hidden], "1.attn_v": [head, hidden], "1.attn_output": [hidden, 2 * head]}
    for layer in "01":
        linears |= {layer + ".ffn_gate": [ffn, hidden], layer + ".ffn_up": [ffn, hidden], layer + ".ffn_down": [hidden, ffn]}
        for norm in ("attn_norm", "post_attention_norm"):
            tensors.append((f"blk.{layer}.{norm}.weight", [hidden], "F32"))
    tensors += [(f"blk.{name}.weight", shape, "F16") for name, shape in linears.items()]
    return keys, tensors
