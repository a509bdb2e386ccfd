/** Models of the fixtures in ONNX, beside the same models as safetensors, with the embedded model's tokenizer. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { embeddedModel } from "./checkpoint.js";

/** @param {string} path */
const fixture = (path) =>
  readFileSync(fileURLToPath(new URL(`../../tests/fixtures/${path}`, import.meta.url)));

/** Each with its checkpoint, and the names that its files have: there, and as a model. @type {[string, string, Record<string, string>][]} */
const EXPORTS = [
  ["genai", "bitnet-h64/packed", { "model.onnx": "model.onnx" }],
  ["mixed", "bitnet-h64/packed", { "model.onnx": "model.onnx" }],
  ["bias", "llama-rmsnorm-bias/packed", { "model.onnx": "model.onnx" }],
  ["master", "bitnet-h64/master", { "model.onnx": "model.onnx" }],
  [
    "fused",
    "bitnet-h64/packed",
    {
      "onnx/model_q2.onnx": "onnx/model.onnx",
      "onnx/model_q2.onnx_data": "onnx/model_q2.onnx_data",
    },
  ],
];

/** Names of the models. */
export const ONNX_MODELS = EXPORTS.map(([name]) => name);

/**
 * Files of `NAME/graph/…` in ONNX, and of `NAME/safetensors/…`.
 * @param {string} folder of a project with the package
 */
export function onnxModels(folder) {
  const tokenizer = bytesOnly(String(embeddedModel(folder).folder["tokenizer.json"]));
  const all = EXPORTS.flatMap(([name, golden, files]) => {
    const beside = (/** @type {string} */ kind) => [
      [`${name}/${kind}/config.json`, fixture(`golden/${golden}/config.json`)],
      [`${name}/${kind}/tokenizer.json`, tokenizer],
    ];
    const weights = fixture(`golden/${golden}/model.safetensors`);
    return [
      ...beside("graph"),
      // Some have data there.
      ...(name === "fused" ? [] : [[`${name}/graph/model.safetensors`, weights]]),
      ...Object.entries(files).map(([from, to]) => [`${name}/graph/${to}`, fixture(`onnx/${name}/${from}`)]),
      ...beside("safetensors"),
      [`${name}/safetensors/model.safetensors`, weights],
    ];
  });
  return /** @type {Record<string, string>} */ (Object.fromEntries(all));
}

/** The tokenizer without merges: the ids of bytes are those of the fixtures' vocabulary. @param {string} text */
function bytesOnly(text) {
  const { model, ...rest } = JSON.parse(text);
  const vocab = Object.fromEntries(Object.entries(model.vocab).filter(([, id]) => id < 258));
  return JSON.stringify({ ...rest, model: { ...model, vocab, merges: [] } });
}

/**
 * Tokens with log-probabilities of each source, in a page or in Node.
 * @param {any} load @param {any[]} sources
 */
export async function tokensOf(load, sources) {
  const all = [];
  for (const source of sources) {
    const model = await load(source);
    const tokens = [];
    const options = { temperature: 0, maxTokens: 12, logprobs: true, minTokens: 12 };
    for await (const { token, logprob } of model.generate("Once upon a time", options))
      tokens.push([token, logprob]);
    await model.dispose();
    all.push(tokens);
  }
  return all;
}
