/** The embedded model of an installed package, also as the folder it was made from. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Files of a folder that a lone .safetensors file carries in its metadata. */
const CARRIED = "setun.file/";

/**
 * @param {string} folder of a project with the package
 * @returns {{ file: Buffer, folder: Record<string, string | Buffer> }}
 */
export function embeddedModel(folder) {
  const file = readFileSync(join(folder, "node_modules/setun/model/stories.safetensors"));
  const headerEnd = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__: metadata, ...tensors } = JSON.parse(file.toString("utf8", 8, headerEnd));
  const carried = Object.entries(metadata).filter(([name]) => name.startsWith(CARRIED));
  const files = Object.fromEntries(carried.map(([name, text]) => [name.slice(CARRIED.length), String(text)]));
  return { file, folder: { ...files, "model.safetensors": checkpoint(tensors, file.subarray(headerEnd)) } };
}

/**
 * A lone file of 46 MB, with the embedded model's tokenizer and weights of no meaning: all alike, or such that what the
 * model says depends on all of them. Each layer has 3.2 MB, or 13 MB where it is wide.
 * @param {Record<string, string | Buffer>} folder of the embedded model
 * @param {{ layers?: number, isVaried?: boolean, isWide?: boolean }} options
 */
export function largeModel(folder, { layers = 14, isVaried = false, isWide = false } = {}) {
  const config = JSON.parse(String(folder["config.json"]));
  const [hidden, inner] = isWide ? [1024, 16_384] : [512, 8192];
  const varied = isVaried ? numbers() : undefined;
  Object.assign(config, { hidden_size: hidden, intermediate_size: inner, num_hidden_layers: layers });
  Object.assign(config, { num_attention_heads: 8, num_key_value_heads: 2 });
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: number[] }>} */
  const tensors = {};
  /** @type {Buffer[]} */
  const data = [];
  let end = 0;
  /** @param {string} name @param {number[]} shape @param {Buffer} bytes */
  const add = (name, shape, bytes) => {
    tensors[name] = {
      dtype: bytes.length === shape.reduce((all, each) => all * each) ? "U8" : "BF16",
      shape,
      data_offsets: [end, end + bytes.length],
    };
    end += bytes.length;
    data.push(bytes);
  };
  /** @param {string} name @param {number[]} shape */
  const floats = (name, shape) => {
    const bytes = Buffer.alloc(2 * shape.reduce((all, each) => all * each), Buffer.from([0x80, 0x3c]));
    // A sign here and there; one and the same would make all tokens equally likely.
    if (varied) for (let i = 1; i < bytes.length; i += 2) bytes[i] ^= varied() & 0x80;
    add(name, shape, bytes);
  };
  /** Codes of 0, 1, 2 and 0. @param {string} name @param {number} rows @param {number} columns */
  const codes = (name, rows, columns) => {
    const bytes = Buffer.alloc((rows / 4) * columns, 0x24);
    if (varied) for (let i = 0; i < bytes.length; i += 1) bytes[i] = CODES[varied() % CODES.length] ?? 0;
    add(`${name}.weight`, [rows / 4, columns], bytes);
    floats(`${name}.weight_scale`, [1]);
  };
  floats("model.embed_tokens.weight", [config.vocab_size, hidden]);
  floats("model.norm.weight", [hidden]);
  for (let layer = 0; layer < layers; layer += 1) {
    const at = `model.layers.${layer}`;
    for (const name of ["input_layernorm", "post_attention_layernorm", "self_attn.attn_sub_norm"])
      floats(`${at}.${name}.weight`, [hidden]);
    floats(`${at}.mlp.ffn_sub_norm.weight`, [inner]);
    codes(`${at}.self_attn.q_proj`, hidden, hidden);
    codes(`${at}.self_attn.k_proj`, hidden / 4, hidden);
    codes(`${at}.self_attn.v_proj`, hidden / 4, hidden);
    codes(`${at}.self_attn.o_proj`, hidden, hidden);
    codes(`${at}.mlp.gate_proj`, inner, hidden);
    codes(`${at}.mlp.up_proj`, inner, hidden);
    codes(`${at}.mlp.down_proj`, hidden, inner);
  }
  const files = { ...folder, "config.json": JSON.stringify(config) };
  const carried = Object.entries(files).filter(([name]) => !name.endsWith(".safetensors"));
  const metadata = Object.fromEntries(carried.map(([name, text]) => [CARRIED + name, String(text)]));
  return checkpoint({ __metadata__: { format: "pt", ...metadata }, ...tensors }, Buffer.concat(data));
}

/**
 * The header of a lone file with copies of its first layer, whose weights nobody has: its bytes, and those of the whole.
 * @param {Buffer} file @param {number} layers
 */
export function deepHeader(file, layers) {
  const headerEnd = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__: metadata, ...tensors } = JSON.parse(file.toString("utf8", 8, headerEnd));
  const entries = Object.entries(tensors);
  const layer = entries.filter(([name]) => name.startsWith(FIRST_LAYER));
  const others = entries.filter(([name]) => !name.startsWith("model.layers."));
  const copies = Array.from({ length: layers }, (_, index) =>
    layer.map(([name, tensor]) => [name.replace(FIRST_LAYER, `model.layers.${index}.`), tensor]),
  );
  let end = 0;
  const moved = [...others, ...copies.flat()].map(([name, tensor]) => {
    const [from, to] = tensor.data_offsets;
    end += to - from;
    return [name, { ...tensor, data_offsets: [end - to + from, end] }];
  });
  const config = { ...JSON.parse(metadata[`${CARRIED}config.json`]), num_hidden_layers: layers };
  const carried = { ...metadata, [`${CARRIED}config.json`]: JSON.stringify(config) };
  const header = checkpoint({ __metadata__: carried, ...Object.fromEntries(moved) }, Buffer.alloc(0));
  return { header, bytes: header.length + end };
}

const FIRST_LAYER = "model.layers.0.";

/** Bytes of four codes, none of which is 3. */
const CODES = Array.from({ length: 256 }, (_, byte) => byte).filter(
  (byte) => (byte & (byte >> 1) & 0x55) === 0,
);

/** Numbers that look like chance, always the same ones. */
function numbers() {
  let state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 8) & 0xffff;
  };
}

/** @param {object} tensors @param {Buffer} data */
function checkpoint(tensors, data) {
  const header = Buffer.from(JSON.stringify(tensors));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, data]);
}
