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
 * A lone file of 46 MB, with the embedded model's tokenizer and weights of no meaning.
 * @param {Record<string, string | Buffer>} folder of the embedded model
 */
export function largeModel(folder) {
  const config = JSON.parse(String(folder["config.json"]));
  const [hidden, inner, layers] = [512, 8192, 14];
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
  const floats = (name, shape) =>
    add(name, shape, Buffer.alloc(2 * shape.reduce((all, each) => all * each), Buffer.from([0x80, 0x3c])));
  /** Codes of 0, 1, 2 and 0. @param {string} name @param {number} rows @param {number} columns */
  const codes = (name, rows, columns) => {
    add(`${name}.weight`, [rows / 4, columns], Buffer.alloc((rows / 4) * columns, 0x24));
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

/** @param {object} tensors @param {Buffer} data */
function checkpoint(tensors, data) {
  const header = Buffer.from(JSON.stringify(tensors));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, data]);
}
