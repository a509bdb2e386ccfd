/** Serves the pages of the bench, isolated, with the models beside them. */

import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../npm/test-support/server.js";

const WEB = fileURLToPath(new URL("..", import.meta.url));

/**
 * Serves a model for setun, a folder or a .safetensors file, and those of a peer.
 * @param {string} model @param {string[]} peers
 */
export async function serve(model, peers) {
  const files = statSync(model).isDirectory() ? folder(model) : { [`/${basename(model)}`]: send(model) };
  const answers = { ...files };
  for (const [index, peer] of peers.entries()) answers[peerAddress(index)] = send(peer);
  const server = await startServer({ root: WEB, isolated: true, answers });
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
