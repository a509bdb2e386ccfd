/** Serves the pages of the bench, with the models beside them. */

import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../npm/test-support/server.js";
import { onnxConfig, onnxModel } from "./onnx.mjs";

const WEB = fileURLToPath(new URL("..", import.meta.url));

/** Name of the model for transformers.js. */
export const ONNX = "onnx-model";

/** Whether a path is a model's and no script's. @param {string} path */
export const isModel = (path) => /^\/(model|peer-|onnx-model)|\.safetensors$/.test(path);

/** The file behind a path that is no model's. @param {string} path */
export const fileOf = (path) => join(WEB, path);

/**
 * Serves a model for setun, a folder or a .safetensors file, and those of a peer.
 * With `isOnnx` the folder is served as ONNX, too.
 * @param {string} model @param {string[]} peers @param {boolean} isOnnx @param {boolean} isolated
 */
export async function serve(model, peers, isOnnx, isolated) {
  const files = statSync(model).isDirectory() ? folder(model) : { [`/${basename(model)}`]: send(model) };
  const answers = { ...files, ...(isOnnx && onnxFiles(model)) };
  for (const [index, peer] of peers.entries()) answers[peerAddress(index)] = send(peer);
  const server = await startServer({ root: WEB, isolated, answers });
  const source = Object.keys(files).length === 1 ? Object.keys(files)[0] : "/model/";
  return { page: `${server.url}/bench/index.html`, source, stop: server.stop };
}

/** Where the model of a peer is served. @param {number} index */
export const peerAddress = (index) => `/peer-${index}.gguf`;

/** @param {string} path */
function folder(path) {
  const answers = {};
  for (const name of readdirSync(path)) answers[`/model/${name}`] = send(join(path, name));
  if (!existsSync(join(path, "tokenizer.json"))) {
    const { vocab_size } = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
    const tokenizer = JSON.stringify(numbers(vocab_size));
    answers["/model/tokenizer.json"] = (_, response) => response.end(tokenizer);
  }
  return answers;
}

/** @param {string} path */
function onnxFiles(path) {
  const config = JSON.stringify(onnxConfig(path));
  const model = onnxModel(path);
  const names = ["generation_config.json", "tokenizer.json", "tokenizer_config.json"];
  return {
    ...Object.fromEntries(names.map((name) => [`/${ONNX}/${name}`, send(join(path, name))])),
    [`/${ONNX}/config.json`]: (_, response) => response.end(config),
    [`/${ONNX}/onnx/model_q4.onnx`]: (_, response) => response.end(model),
  };
}

/** A tokenizer for random models, which have none: each token is written as its number. @param {number} size */
function numbers(size) {
  const vocab = Object.fromEntries(Array.from({ length: size }, (_, id) => [String(id), id]));
  return {
    ...{ version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null },
    ...{ pre_tokenizer: { type: "WhitespaceSplit" }, post_processor: null, decoder: null },
    model: { type: "WordLevel", vocab, unk_token: "0" },
  };
}

/** Answers with a file. @param {string} path */
export function send(path) {
  return (_, response) => {
    response.setHeader("content-length", statSync(path).size);
    // A page may stop reading at any time.
    createReadStream(path)
      .on("error", () => response.destroy())
      .pipe(response);
  };
}
