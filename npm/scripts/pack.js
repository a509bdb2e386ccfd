/** Packs the package as `target/npm/setun.tgz`, the file that tests and the demo page install. */

import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const npm = join(dirname(fileURLToPath(import.meta.url)), "..");
const destination = join(npm, "..", "target", "npm");

mkdirSync(destination, { recursive: true });
const shell = process.platform === "win32";
const args = ["pack", "--json", "--pack-destination", destination];
const packed = JSON.parse(execFileSync("npm", args, { cwd: npm, encoding: "utf8", shell }));
const { filename, size } = Array.isArray(packed) ? packed[0] : Object.values(packed)[0];
renameSync(join(destination, filename), join(destination, "setun.tgz"));
console.log(`target/npm/setun.tgz: ${size} bytes`);
