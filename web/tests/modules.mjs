/** The page's modules in Node, for tests of what needs no browser. */

import { join } from "node:path";
import { runnerImport } from "vite";
import { WEB } from "./preview.mjs";

/** @param {string} path in `src` @returns {Promise<any>} */
export async function importModule(path) {
  const { module } = await runnerImport(join(WEB, "src", path), { configFile: false, logLevel: "error" });
  return module;
}
