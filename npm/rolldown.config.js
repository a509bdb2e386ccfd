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

/** Modules that the build writes. All URLs in them are literals, which bundlers look for. */
const GENERATED = {
  "setun:builds": () => buildList(builds),
  "setun:cpu-builds": () => buildList(builds.filter((build) => build !== "webgpu")),
  "setun:model": () => 'export const model = () => new URL("../model/stories.safetensors", import.meta.url);',
  "setun:package": async () => `export const grammarFiles = { ${glueOf("grammar")} };
    export const onnxFiles = { ${glueOf("onnx")} };
    export const version = ${JSON.stringify(version)};
    export const initialSharedPages = ${await initialSharedPages()};`,
};

const generatedModules = {
  name: "generated-modules",
  /**
   * Each importer has its own, so that an entry point is one file and a bundler sees no URL that it does not import.
   * @param {string} source @param {string} [importer]
   */
  resolveId: (source, importer) => (source in GENERATED ? `\0${source}?${importer}` : null),
  /** @param {string} id */
  load: (id) => GENERATED[/** @type {keyof typeof GENERATED} */ (id.slice(1).split("?")[0])]?.() ?? null,
};

/** @param {string[]} builds */
function buildList(builds) {
  const files = builds.map((build) => `${JSON.stringify(build)}: { ${filesOf(build)} }`);
  return `export const buildFiles = { ${files.join(", ")} };`;
}

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
    ...Object.fromEntries(
      ["index", "cpu", "no-model", "service-worker"].map((name) => [name, `src/entrypoints/${name}.ts`]),
    ),
    ...Object.fromEntries(workers),
  },
  plugins: [generatedBindings, generatedModules, licences, importComments],
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
  plugins: [generatedBindings, generatedModules],
  output,
};

/** The entry point of Node without the model, which is the other one but for that. */
const nodeWithoutModel = {
  ...base,
  external: "./node.js",
  input: { "node-no-model": "src/entrypoints/node-no-model.ts" },
  output,
};

/**
 * Built apart from the core, adapters leave its files as they are. Each is one file, with copies of what it uses of the
 * core and has in common with others: most pages have one.
 * @param {string} name
 */
const adapter = (name) => ({
  ...base,
  external: ["@ai-sdk/provider", /^@langchain\/core/, "react"],
  input: { [name]: `src/adapters/${name}.ts` },
  output: {
    ...output,
    dir: "dist/adapters",
    minify: { compress: true, mangle: { keepNames: { function: false, class: true } } },
  },
});

/** The entry point for isolation, apart from the core as well. */
const isolation = {
  ...base,
  input: { isolate: "src/entrypoints/isolate.ts" },
  output: {
    ...output,
    minify: { compress: true, mangle: { keepNames: { function: false, class: true } } },
  },
};

/** Its service worker: a script that every browser takes, which pages copy without its source map. */
const isolationWorker = {
  ...base,
  input: { "isolate-worker": "src/entrypoints/isolate-worker.ts" },
  output: { ...output, format: /** @type {const} */ ("iife"), sourcemap: false, minify: true },
};

const adapters = ["ai-sdk", "langchain", "openai", "prompt-api", "react"].map(adapter);

export default defineConfig([pages, node, nodeWithoutModel, isolation, isolationWorker, ...adapters]);
