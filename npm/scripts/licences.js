/** Collects the licences of what is bundled from other packages, and refuses those that the project does not take. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ACCEPTED = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD"];

const LICENCE_FILES = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE"];

/** @type {import("rolldown").Plugin} */
export const licences = {
  name: "licences",
  generateBundle(_, bundle) {
    const packages = new Set(Object.values(bundle).flatMap(packagesIn));
    const source = [...packages].sort().map(notice).join("\n\n");
    this.emitFile({ type: "asset", fileName: "THIRD_PARTY_LICENSES", source });
  },
};

/** Folders of the packages whose modules are in a chunk. @param {import("rolldown").OutputChunk | import("rolldown").OutputAsset} part */
function packagesIn(part) {
  if (part.type !== "chunk") return [];
  const folders = Object.keys(part.modules).map(
    (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0],
  );
  return folders.filter((folder) => folder !== undefined);
}

/** @param {string} folder */
function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!ACCEPTED.includes(license)) {
    throw new Error(`${name} ${version} has the licence ${license}; accepted: ${ACCEPTED.join(", ")}`);
  }
  const file = LICENCE_FILES.map((file) => join(folder, file)).find((path) => existsSync(path));
  if (file === undefined) throw new Error(`${name} ${version} ships no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(file, "utf8").trim()}\n`;
}
