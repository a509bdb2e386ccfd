/** Service worker and content policy of the built page, which make it an application. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";

/** Files beside the built ones that the page needs. */
const OWN = ["index.html", "manifest.webmanifest", "icon-192.png", "icon-512.png"];

/** A browser needs one build of several, and the weights only if the built-in model runs. */
const LATER = /\.(wasm|safetensors)$|^assets\/worker-/;

/** A model may come from any server; code comes from this one. */
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self' blob:",
  "img-src 'self' data:",
  "connect-src * data: blob:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** @returns {import("vite").Plugin} */
export function offline() {
  let root = ".";
  let folder = "dist";
  return {
    name: "offline",
    apply: "build",
    configResolved: (config) => {
      root = config.root;
      folder = join(config.root, config.build.outDir);
    },
    transformIndexHtml: () => [
      {
        tag: "meta",
        attrs: { "http-equiv": "Content-Security-Policy", content: POLICY },
        injectTo: "head-prepend",
      },
    ],
    closeBundle: { sequential: true, handler: () => writeServiceWorker(root, folder) },
  };
}

/** @param {string} root @param {string} folder */
async function writeServiceWorker(root, folder) {
  if (!existsSync(join(folder, "index.html"))) return;
  const assets = readdirSync(join(folder, "assets")).filter((name) => !/\.(br|map)$/.test(name));
  const files = [...OWN, ...assets.sort().map((name) => `assets/${name}`)];
  const source = await bundledWorker(root);
  const hash = createHash("sha256").update(source);
  // Names of assets hold a hash of their contents.
  for (const name of OWN) hash.update(readFileSync(join(folder, name)));
  const version = hash.update(files.join("\n")).digest("hex").slice(0, 16);
  const list = {
    version,
    first: files.filter((name) => !LATER.test(name)),
    later: files.filter((name) => LATER.test(name)),
  };
  writeFileSync(join(folder, "service-worker.js"), `const SETUN_FILES = ${JSON.stringify(list)};\n${source}`);
}

/** A classic script, which every browser takes. @param {string} root */
async function bundledWorker(root) {
  const entry = join(root, "service-worker.js");
  const result = await build({
    ...{ root, configFile: false, logLevel: "warn", publicDir: false },
    build: { target: "es2022", write: false, lib: { entry, formats: ["iife"], name: "setunPage" } },
  });
  const [{ output }] = /** @type {import("vite").Rollup.RollupOutput[]} */ ([result].flat());
  return output[0].code;
}
