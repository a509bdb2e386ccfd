/** Bundles each entry point into one file of `dist/`, next to the generated bindings, which stay files of their own. */

import { readFileSync } from "node:fs";
import { defineConfig } from "rolldown";
import { licences } from "./scripts/licences.js";

/** @type {string[]} */
const builds = JSON.parse(readFileSync(new URL("generated/variants.json", import.meta.url), "utf8"));

const threaded = builds.filter((build) => build.endsWith("-threads"));

/** `wasm:BUILD/FILE` is the file's place in the package; bundlers and browsers find it relative to ours. */
const generatedBindings = {
  name: "generated-bindings",
  /** @param {string} source */
  resolveId(source) {
    return source.startsWith("wasm:") ? { id: `./wasm/${source.slice(5)}`, external: true } : null;
  },
};

/** `setun:builds`: every address in it is a literal, since that is what bundlers look for. */
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
      export const initialSharedPages = ${await initialSharedPages()};`;
  },
};

/**
 * Only unthreaded builds can run outside a worker, where the page itself needs to know what they consist of.
 * @param {string} build
 */
function filesOf(build) {
  const worker = `new Worker(new URL("./worker-${build}.js", import.meta.url), { type: "module", name: "setun" })`;
  const parts = [`startWorker: () => ${worker}`];
  if (!threaded.includes(build)) parts.push(glueOf(build));
  return parts.join(", ");
}

/**
 * Where a generated module's two parts are.
 * @param {string} module
 */
function glueOf(module) {
  return `importGlue: () => import("wasm:${module}/setun.js"),
    codeUrl: () => new URL("./wasm/${module}/setun_bg.wasm", import.meta.url)`;
}

/** Enough for whichever threaded build is chosen. */
async function initialSharedPages() {
  const memories = await Promise.all(threaded.map((build) => import(`./generated/${build}/memory.js`)));
  return Math.max(0, ...memories.map(({ initialPages }) => initialPages));
}

const workers = builds.map((build) => [`worker-${build}`, `src/entrypoints/worker-${build}.ts`]);

export default defineConfig({
  input: {
    index: "src/entrypoints/index.ts",
    node: "src/entrypoints/node.ts",
    ...Object.fromEntries(workers),
  },
  external: /^node:/,
  plugins: [generatedBindings, buildList, licences],
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
  output: {
    dir: "dist",
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    cleanDir: true,
    // The types have them; pages need not fetch them.
    comments: { jsdoc: false },
  },
});
