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

/** @param {object} tensors @param {Buffer} data */
function checkpoint(tensors, data) {
  const header = Buffer.from(JSON.stringify(tensors));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, data]);
}
