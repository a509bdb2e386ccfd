/** Blocks of code of the documents, and pages that run them as they are printed. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** Languages of blocks that run in a page or in Node. */
const LANGUAGES = ["js", "jsx", "html"];

/**
 * A block, named by its document, its heading, and its place below that heading from 1.
 * @typedef {{ name: string, language: string, code: string }} Block
 */

/** The blocks of a document that run. @param {string} document Its path in the repository. @returns {Block[]} */
export function blocksOf(document) {
  const text = readFileSync(join(REPOSITORY, document), "utf8");
  const parts = text.matchAll(/^#+ +(?<heading>.+)$|^```(?<language>\w*)[^\n]*\n(?<code>[\s\S]*?)^```$/gm);
  /** @type {Block[]} */
  const found = [];
  let [heading, place] = ["", 0];
  for (const { groups = {} } of parts) {
    const { heading: next, language = "", code = "" } = groups;
    if (next !== undefined) [heading, place] = [next, 0];
    else if (LANGUAGES.includes(language))
      found.push({ name: `${document}: ${heading} ${++place}`, language, code });
  }
  return found;
}

/** The documents that users read, by their paths in the repository. */
export function documents() {
  const below = (/** @type {string} */ folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md") && !name.includes("node_modules"))
      .map((name) => `${folder}/${name.replaceAll("\\", "/")}`);
  return ["README.md", "npm/README.md", ...below("docs"), ...below("npm/examples")];
}

/** The name of a file that a block is, by its first line. @param {Block} block */
export function fileOf({ code }) {
  return /^\/\/ ([\w-]+\.js)\n/.exec(code)?.[1];
}

/** Adapters and further entry points, beside the import map of the readme. */
const FURTHER = {
  imports: {
    "setun/isolate": "./node_modules/setun/dist/isolate.js",
    "setun/openai": "./node_modules/setun/dist/adapters/openai.js",
    "setun/prompt-api": "./node_modules/setun/dist/adapters/prompt-api.js",
  },
};

/**
 * A page that plays a file, with the import map of the readme; `ended` of its window says how.
 * @param {string} importMap @param {string} file @param {object} scene
 */
export function pageOf(importMap, file, scene) {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" /><title>${file}</title><link rel="icon" href="data:," />
    ${importMap}
    <script type="importmap">${JSON.stringify(FURTHER)}</script>
    <script type="module">
      import { play } from "./scene.js";
      globalThis.ended = await play(${JSON.stringify(file)}, ${JSON.stringify(scene)});
    </script>
  </head>
  <body></body>
</html>
`;
}

/** A module for Node that plays a file, and prints how it ended as JSON. @param {string} file @param {object} scene */
export function moduleOf(file, scene) {
  return `import { play } from "./scene.js";
console.log(JSON.stringify(await play(${JSON.stringify(file)}, ${JSON.stringify(scene)})));
`;
}

/**
 * A GGUF file with a chat template. The key has a whole number of alignments, so that the tensors stay aligned.
 * @param {Buffer} file @param {string} template
 */
export function withTemplate(file, template) {
  const key = Buffer.from("tokenizer.chat_template");
  const length = 8 + key.length + 4 + 8 + template.length + "{##}".length;
  const text = Buffer.from(`{#${" ".repeat(-length & (ALIGNMENT - 1))}#}${template}`);
  const entry = Buffer.concat([u64(key.length), key, Buffer.from([STRING, 0, 0, 0]), u64(text.length), text]);
  const keys = file.readBigUInt64LE(KEYS_AT);
  return Buffer.concat([file.subarray(0, KEYS_AT), u64(keys + 1n), entry, file.subarray(KEYS_AT + 8)]);
}

/** Where a GGUF file has the number of its keys, the type of texts, and the alignment of tensors. */
const [KEYS_AT, STRING, ALIGNMENT] = [16, 8, 32];

/** @param {number | bigint} value */
function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
