/**
 * A packed BitNet as an ONNX decoder for transformers.js: linear layers of 4 bits (`MatMulNBits`), tables in `f32`.
 *
 * ONNX Runtime has no ternary layer in WebAssembly, and its 4-bit one is the smallest that transformers.js loads. Weights are
 * the model's; activations are not rounded to its int8 codes, so texts differ slightly.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { float, integer, message } from "./protobuf.mjs";

const [F32, U8, I32, I64] = [1, 2, 6, 7];

/** Columns that share a scale. */
const BLOCK = 32;

/** @param {string} folder in Hugging Face's layout, with `autobitlinear` layers */
export function onnxModel(folder) {
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  return new Decoder(config, readTensors(join(folder, "model.safetensors"))).model();
}

/** Configuration that transformers.js takes for such a graph. @param {string} folder */
export function onnxConfig(folder) {
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  delete config.quantization_config;
  return { ...config, architectures: ["LlamaForCausalLM"], model_type: "llama" };
}

class Decoder {
  /** Encoded nodes, initialisers, inputs and outputs of the graph. */
  parts = [];

  constructor(config, tensors) {
    this.config = config;
    this.tensors = tensors;
    this.headDim = config.hidden_size / config.num_attention_heads;
  }

  model() {
    const { num_hidden_layers: layers } = this.config;
    this.value(11, "input_ids", I64, ["batch_size", "sequence_length"]);
    this.value(11, "attention_mask", I64, ["batch_size", "total_sequence_length"]);
    this.constants();
    let x = this.node("Gather", ["embedding", "input_ids"], "embedded");
    for (let layer = 0; layer < layers; layer += 1) x = this.layer(`model.layers.${layer}`, layer, x);
    this.node("MatMul", [this.norm(x, "model.norm"), "head"], "logits");
    this.value(12, "logits", F32, ["batch_size", "sequence_length", this.config.vocab_size]);
    const opset = (domain, version) => message(8, message(1, domain), integer(2, version));
    const graph = message(7, ...this.parts, message(2, "decoder"));
    return Buffer.concat([integer(1, 10), graph, opset("", 17), opset("com.microsoft", 1)]);
  }

  /** Tables, and the lengths that attention takes from the mask. */
  constants() {
    const { hidden_size: hidden, vocab_size: vocab, rope_theta: theta } = this.config;
    const table = this.floats("model.embed_tokens.weight");
    this.tensor("embedding", F32, [vocab, hidden], table);
    this.tensor("head", F32, [hidden, vocab], transposed(table, vocab, hidden));
    const half = this.headDim / 2;
    const positions = this.config.max_position_embeddings;
    const angle = (_, i) => Math.floor(i / half) / theta ** ((i % half) / half);
    const angles = Float64Array.from({ length: positions * half }, angle);
    this.tensor("cosines", F32, [positions, half], Float32Array.from(angles, Math.cos));
    this.tensor("sines", F32, [positions, half], Float32Array.from(angles, Math.sin));
    this.tensor("one", I64, [1], new BigInt64Array([1n]));
    this.node("ReduceSum", ["attention_mask", "one"], "length", [attribute("keepdims", 0)]);
    this.node("Sub", ["length", "one"], "last");
    this.node("Cast", ["last"], "seqlens", [attribute("to", I32)]);
    this.node("Shape", ["attention_mask"], "shape");
    this.tensor("column", I64, [], new BigInt64Array([1n]));
    this.node("Gather", ["shape", "column"], "columns");
    this.node("Cast", ["columns"], "total", [attribute("to", I32)]);
  }

  layer(name, index, x) {
    const { num_attention_heads: heads, num_key_value_heads: kvHeads } = this.config;
    const normed = this.norm(x, `${name}.input_layernorm`);
    const [q, k, v] = ["q", "k", "v"].map((each) => this.linear(normed, `${name}.self_attn.${each}_proj`));
    const [past, present] = ["past_key_values", "present"].map((cache) =>
      ["key", "value"].map((part) => `${cache}.${index}.${part}`),
    );
    const cached = ["batch_size", kvHeads, "past_sequence_length", this.headDim];
    for (const each of past) this.value(11, each, F32, cached);
    for (const each of present) this.value(12, each, F32, cached);
    const inputs = [q, k, v, ...past, "seqlens", "total", "cosines", "sines"];
    const attributes = { num_heads: heads, kv_num_heads: kvHeads, do_rotary: 1 };
    const encoded = Object.entries(attributes).map(([key, value]) => attribute(key, value));
    this.node("GroupQueryAttention", inputs, [`${name}.attention`, ...present], encoded, "com.microsoft");
    const attended = this.norm(`${name}.attention`, `${name}.self_attn.attn_sub_norm`);
    const middle = this.add(x, this.linear(attended, `${name}.self_attn.o_proj`));
    const inner = this.norm(middle, `${name}.post_attention_layernorm`);
    const [gate, up] = ["gate", "up"].map((each) => this.linear(inner, `${name}.mlp.${each}_proj`));
    const open = this.node("Relu", [gate], `${name}.open`);
    const squared = this.node("Mul", [open, open], `${name}.squared`);
    const gated = this.node("Mul", [squared, up], `${name}.gated`);
    const normedInner = this.norm(gated, `${name}.mlp.ffn_sub_norm`);
    return this.add(middle, this.linear(normedInner, `${name}.mlp.down_proj`));
  }

  add(a, b) {
    return this.node("Add", [a, b], `${b}.sum`);
  }

  norm(x, name) {
    const gain = this.floats(`${name}.weight`);
    this.tensor(`${name}.weight`, F32, [gain.length], gain);
    const attributes = [attribute("axis", -1), attributeFloat("epsilon", this.config.rms_norm_eps)];
    return this.node("SimplifiedLayerNormalization", [x, `${name}.weight`], name, attributes);
  }

  /** A layer of 4 bits, whose zero point is 8. */
  linear(x, name) {
    const { bytes, shape } = this.tensors(`${name}.weight`);
    const [quarter, columns] = shape;
    const rows = 4 * quarter;
    const [scale] = this.floats(`${name}.weight_scale`);
    const packed = new Uint8Array((rows * columns) / 2);
    for (let row = 0; row < rows; row += 1) {
      const shift = 2 * Math.floor(row / quarter);
      for (let column = 0; column < columns; column += 1) {
        const code = ((bytes[(row % quarter) * columns + column] >> shift) & 3) + 7;
        packed[(row * columns + column) >> 1] |= code << (4 * (column & 1));
      }
    }
    const blocks = columns / BLOCK;
    this.tensor(`${name}.codes`, U8, [rows, blocks, BLOCK / 2], packed);
    this.tensor(`${name}.scales`, F32, [rows * blocks], new Float32Array(rows * blocks).fill(scale));
    const sizes = { K: columns, N: rows, bits: 4, block_size: BLOCK, accuracy_level: 4 };
    const attributes = Object.entries(sizes).map(([key, value]) => attribute(key, value));
    const inputs = [x, `${name}.codes`, `${name}.scales`];
    return this.node("MatMulNBits", inputs, name, attributes, "com.microsoft");
  }

  /** Adds a node, and returns the name of its first output. */
  node(type, inputs, outputs, attributes = [], domain = "") {
    const named = [outputs].flat();
    const ends = [...inputs.map((name) => message(1, name)), ...named.map((name) => message(2, name))];
    const kind = [message(3, `${type} ${named[0]}`), message(4, type)];
    this.parts.push(message(1, ...ends, ...kind, ...attributes, message(7, domain)));
    return named[0];
  }

  tensor(name, type, shape, data) {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const dims = shape.map((size) => integer(1, size));
    this.parts.push(message(5, ...dims, integer(2, type), message(8, name), message(9, bytes)));
  }

  /** An input (11) or output (12). */
  value(field, name, type, shape) {
    const dims = shape.map((size) =>
      message(1, typeof size === "string" ? message(2, size) : integer(1, size)),
    );
    const tensor = message(1, integer(1, type), message(2, ...dims));
    this.parts.push(message(field, message(1, name), message(2, tensor)));
  }

  /** A tensor of BF16 in `f32`. */
  floats(name) {
    const { bytes } = this.tensors(name);
    const bits = Uint32Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readUInt16LE(2 * i) << 16);
    return new Float32Array(bits.buffer);
  }
}

const attribute = (name, value) => message(5, message(1, name), integer(3, value), integer(20, 2));
const attributeFloat = (name, value) => message(5, message(1, name), float(2, value), integer(20, 1));

function transposed(table, rows, columns) {
  return Float32Array.from(
    { length: table.length },
    (_, i) => table[(i % rows) * columns + Math.floor(i / rows)],
  );
}

function readTensors(path) {
  const file = readFileSync(path);
  const start = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, start));
  return (name) => {
    const found = header[name];
    if (found === undefined) throw new Error(`${path} has no tensor ${name}`);
    const [from, to] = found.data_offsets;
    return { bytes: file.subarray(start + from, start + to), shape: found.shape };
  };
}
