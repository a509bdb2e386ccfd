/**
 * Builds `dist/` from the sources and from `generated/`.
 *
 * `cargo xtask package` generates `generated/variants.json` and the folders that it names, then calls this.
 */

import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { minifySync } from "rolldown/utils";
import { adaptDeclarations } from "./declarations.js";

process.chdir(join(dirname(fileURLToPath(import.meta.url)), ".."));

/** The modules beside the builds, with the names and the files of their hand-written types. */
const MODULES = { grammar: ["GrammarModule", "grammar-cache"], onnx: ["OnnxModule", "onnx-files"] };

const EMBEDDED_MODEL = "embedded/stories.safetensors";

const builds = readBuilds();
checkBindings();
run("rolldown", ["--config", "rolldown.config.js"]);
run("tsc", ["--project", "tsconfig.types.json"]);
writeDeclarations();
copyBindings();
copyModel();
copyLicences();
reportSizes();

function readBuilds() {
  if (existsSync("generated/variants.json"))
    return JSON.parse(readFileSync("generated/variants.json", "utf8"));
  return fail("generated/variants.json is missing: run `cargo xtask build-wasm` first");
}

/** The hand-written types of the bindings must match the generated ones. */
function checkBindings() {
  const checks = builds.map(
    (build) => `import * as bindings from "./${build}/setun.js";
import type { WasmModule } from "../src/wasm.js";
bindings satisfies WasmModule;
`,
  );
  for (const [i, build] of builds.entries()) writeFileSync(`generated/check-${build}.ts`, checks[i]);
  for (const [module, [type, source]] of Object.entries(MODULES)) {
    writeFileSync(
      `generated/check-${module}.ts`,
      `import * as bindings from "./${module}/setun.js";
import type { ${type} } from "../src/${source}.js";
bindings satisfies ${type};
`,
    );
  }
  run("tsc", ["--project", "tsconfig.bindings.json"]);
}

/** Each entry point has a file of its own, and the main one stands beside its code. */
function writeDeclarations() {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
  const entries = Object.values(exports).flatMap(
    ({ types }) => types?.match(/types\/(.+)\.d\.ts$/)?.[1] ?? [],
  );
  adaptDeclarations("dist/types", ["entrypoints/index", ...entries]);
  writeFileSync("dist/index.d.ts", 'export * from "./types/entrypoints/index.js";\n');
}

/** Runtime files of the generated bindings. */
function copyBindings() {
  for (const build of [...builds, ...Object.keys(MODULES)]) {
    const [from, to] = [`generated/${build}`, `dist/wasm/${build}`];
    mkdirSync(to, { recursive: true });
    for (const name of readdirSync(from)) {
      if (name.endsWith(".js")) writeFileSync(join(to, name), minified(join(from, name)));
      else if (name.endsWith(".wasm")) copyFileSync(join(from, name), join(to, name));
    }
  }
}

/** @param {string} path */
function minified(path) {
  const { code, errors } = minifySync(path, readFileSync(path, "utf8"), {
    module: true,
    compress: true,
    mangle: true,
  });
  return errors.length === 0 ? code : fail(`${path}: ${errors[0].message}`);
}

function copyModel() {
  if (!existsSync(EMBEDDED_MODEL))
    fail(`${EMBEDDED_MODEL} is missing: \`cargo xtask package\` puts it there`);
  mkdirSync("model", { recursive: true });
  copyFileSync(EMBEDDED_MODEL, "model/stories.safetensors");
}

/** npm packs only files of the package's folder. */
function copyLicences() {
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join("..", name), name);
}

function reportSizes() {
  for (const build of [...builds, ...Object.keys(MODULES)]) {
    console.log(`${build}: ${statSync(`dist/wasm/${build}/setun_bg.wasm`).size} bytes`);
  }
}

/** @param {string} tool @param {string[]} args */
function run(tool, args) {
  const file = join("node_modules", ".bin", process.platform === "win32" ? `${tool}.cmd` : tool);
  try {
    execFileSync(file, args, { stdio: "inherit", shell: process.platform === "win32" });
  } catch {
    fail(`${tool} failed`);
  }
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}
