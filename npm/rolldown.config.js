/** Bundles each entry point into one file of `dist/`, beside the generated bindings. */

import { readFileSync } from "node:fs";
import { defineConfig } from "rolldown";
import { importComments } from "./scripts/import-comments.js";
import { licences } from "./scripts/licences.js";

/** @type {string[]} */
const builds = JSON.parse(readFileSync(new URL("generated/variants.json", import.meta.url), "utf8"));

/** @type {{ version: string }} */
const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

const threaded = builds.filter((build) => build.endsWith("-threads"));

/** `wasm:BUILD/FILE` is a file of the package. Bundlers and browsers resolve it relative to the importing file. */
const generatedBindings = {
  name: "generated-bindings",
  /** @param {string} source */
  resolveId(source) {
    return source.startsWith("wasm:") ? { id: `./wasm/${source.slice(5)}`, external: true } : null;
  },
};

/** `setun:builds`: all URLs in it are literals, which bundlers look for. */
const buildList = {
  name: "build-list",
  /** @param {string} source */
  resolveId: (source) => (source === "setun:builds" ? "\0setun:builds" : null),
  /** @param {string} id */
  async load(id) {
    if (id !== "\0setun:builds") return null;
    const files = builds.map((build) => `${JSON.stringify(build)}: { ${filesOf(build)} }`);
    return `export const buildFiles = { ${files.join(", ")} };
      export const grammarFiles = { ${glueOf("grammar")} };
      export const version = ${JSON.stringify(version)};
      export const initialSharedPages = ${await initialSharedPages()};`;
  },
};

/**
 * Unthreaded builds also run outside of a worker, where the page needs their files.
 * @param {string} build
 */
function filesOf(build) {
  const worker = `new Worker(new URL("./worker-${build}.js", import.meta.url), { type: "module", name: "setun-${build}" })`;
  const parts = [`startWorker: () => ${worker}`];
  if (!threaded.includes(build)) parts.push(glueOf(build));
  return parts.join(", ");
}

/**
 * Files of a generated module.
 * @param {string} module
 */
function glueOf(module) {
  return `importGlue: () => import("wasm:${module}/setun.js"),
    codeUrl: () => new URL("./wasm/${module}/setun_bg.wasm", import.meta.url)`;
}

/** Enough for any threaded build. */
async function initialSharedPages() {
  const memories = await Promise.all(threaded.map((build) => import(`./generated/${build}/memory.js`)));
  return Math.max(0, ...memories.map(({ initialPages }) => initialPages));
}

const workers = builds.map((build) => [`worker-${build}`, `src/entrypoints/worker-${build}.ts`]);

/** What both have in common. */
const base = {
  external: /^node:/,
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
};

const output = /** @type {const} */ ({
  dir: "dist",
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "[name].js",
  comments: { jsdoc: false },
  sourcemap: true,
});

/** Files of pages, without white space. Pages without a bundler run them as they are. */
const pages = {
  ...base,
  input: {
    index: "src/entrypoints/index.ts",
    "service-worker": "src/entrypoints/service-worker.ts",
    ...Object.fromEntries(workers),
  },
  plugins: [generatedBindings, buildList, licences, importComments],
  output: {
    ...output,
    cleanDir: true,
    minify: {
      compress: true,
      mangle: { keepNames: { function: false, class: true } },
      codegen: { removeWhitespace: true },
    },
  },
};

/** The file of Node, which prints the line of an error that nobody catches. */
const node = {
  ...base,
  input: { node: "src/entrypoints/node.ts" },
  plugins: [generatedBindings, buildList],
  output,
};

/** Adapters import nothing of the core at run time. Built apart, they leave its files as they are. */
const adapters = {
  ...base,
  external: "@ai-sdk/provider",
  input: Object.fromEntries(
    ["ai-sdk", "openai", "prompt-api"].map((name) => [name, `src/adapters/${name}.ts`]),
  ),
  output: {
    ...output,
    dir: "dist/adapters",
    minify: { compress: true, mangle: { keepNames: { function: false, class: true } } },
  },
};

export default defineConfig([pages, node, adapters]);
