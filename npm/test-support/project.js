/** Fresh projects that use the packed package as anybody's would. */

import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The packed package, as `cargo xtask package` leaves it. */
export const TARBALL = fileURLToPath(new URL("../../target/npm/setun.tgz", import.meta.url));

/**
 * Options of Node for a script. At its exit Node 20 waits for compilers in other threads, and one that needs a
 * collection of garbage waits for the main thread: the script never ends.
 */
export const NODE_OPTIONS = ["--no-concurrent-recompilation"];

/**
 * Makes a project of `files` with the package, and `dependencies`, installed.
 * @param {Record<string, string>} files @param {Record<string, string>} dependencies
 */
export async function makeProject(files, dependencies = {}) {
  if (!existsSync(TARBALL)) throw new Error(`${TARBALL} is missing: run \`cargo xtask package\` first`);
  const folder = await mkdtemp(join(tmpdir(), "setun-project-"));
  const manifest = {
    private: true,
    type: "module",
    dependencies: { ...dependencies, setun: `file:${TARBALL}` },
  };
  await writeFiles(folder, { ...files, "package.json": JSON.stringify(manifest) });
  npm(folder, ["install", "--no-audit", "--no-fund"]);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** @param {string} folder @param {Record<string, string>} files */
export async function writeFiles(folder, files) {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

/** @param {string} folder @param {string[]} args */
export function npm(folder, args) {
  return execFileSync("npm", args, { cwd: folder, stdio: "pipe", shell: process.platform === "win32" });
}

/**
 * Starts Vite's development or preview server of a project, and waits until it answers.
 * @param {string} folder @param {string[]} args @param {string} base
 */
export async function startVite(folder, args, base = "/") {
  const port = await freePort();
  const script = join(folder, "node_modules", "vite", "bin", "vite.js");
  const listen = ["--host", "127.0.0.1", "--port", String(port), "--strictPort"];
  const server = spawn(process.execPath, [script, ...args, ...listen], { cwd: folder, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}${base}`;
  await answers(url);
  return { url, stop: () => stop(server) };
}

/** @param {import("node:child_process").ChildProcess} server */
function stop(server) {
  return new Promise((resolve) => {
    server.once("exit", resolve);
    server.kill();
  });
}

/** @param {string} url */
async function answers(url) {
  for (let attempt = 0; attempt < 2400; attempt += 1) {
    if (
      await fetch(url).then(
        (response) => response.ok,
        () => false,
      )
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}

/** Ports that this process has looked at. */
let looked = 0;

/**
 * A free port. Systems give out higher ones, so it is hardly taken before it is used; processes begin at different ones.
 * @returns {Promise<number>}
 */
export function freePort(tries = 100) {
  return new Promise((resolve, reject) => {
    const port = 31_000 + ((13 * process.pid + looked++) % 1_700);
    const probe = createServer().listen(port, "127.0.0.1", () => probe.close(() => resolve(port)));
    probe.once("error", (error) => (tries > 0 ? resolve(freePort(tries - 1)) : reject(error)));
  });
}
