/** A module of the page as a script, for tests of its own on an empty page. */

import { join } from "node:path";
import { build } from "vite";
import { WEB } from "./preview.mjs";

/** @param {string} path in `src` @param {string} name global that the script sets @returns {Promise<string>} */
export async function bundled(path, name) {
  const entry = join(WEB, "src", path);
  const result = await build({
    ...{ root: WEB, configFile: false, logLevel: "warn", publicDir: false },
    build: { target: "es2022", write: false, lib: { entry, formats: ["iife"], name } },
  });
  const [{ output }] = /** @type {import("vite").Rollup.RollupOutput[]} */ ([result].flat());
  return output[0].code;
}
