/** The examples as a project of their own. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../examples", import.meta.url));

/** Folders that trying an example leaves in it. */
const MADE = /(^|[\\/])(node_modules|dist|out|\.next)([\\/]|$)/;

/** The files of one example, or of all by their paths. */
export function exampleFiles(name = "") {
  const folder = join(FOLDER, name);
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length)
        .replace(/^[\\/]/, ""),
    );
  const own = paths.filter((path) => !MADE.test(path));
  return Object.fromEntries(own.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/**
 * What some examples depend on, which must not be two versions of one package.
 * @param {string[]} names
 */
export function exampleDependencies(...names) {
  /** @type {Record<string, string>} */
  const all = {};
  for (const name of names) {
    const { dependencies, devDependencies } = JSON.parse(exampleFiles(name)["package.json"] ?? "{}");
    for (const [dependency, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      all[dependency] ??= version;
      if (all[dependency] !== version)
        throw new Error(`${name} has ${dependency} ${version}, another example ${all[dependency]}`);
    }
  }
  return all;
}

/**
 * Builds an example in a folder of a project, with what the project has installed; its page is `NAME/dist/index.html`.
 * @param {string} project @param {string} name
 */
export function buildWithVite(project, name) {
  const script = join(project, "node_modules", "vite", "bin", "vite.js");
  const args = ["build", "--base", `/${name}/dist/`, "--logLevel", "error"];
  execFileSync(process.execPath, [script, ...args], { cwd: join(project, name), stdio: "inherit" });
}
