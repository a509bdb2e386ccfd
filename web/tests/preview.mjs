/** Serves the built page for tests. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PATIENCE_MS } from "../browser.mjs";

/** The folder of the page. */
export const WEB = fileURLToPath(new URL("..", import.meta.url));

/** As an option of a wait. */
export const PATIENCE = { timeout: PATIENCE_MS };

/** @param {Record<string, string>} environment */
export async function startPreview(environment) {
  const port = await freePort();
  const script = join(WEB, "node_modules/vite/bin/vite.js");
  const args = [script, "preview", "--host", "127.0.0.1", "--port", String(port), "--strictPort"];
  const preview = spawn(process.execPath, args, {
    cwd: WEB,
    stdio: "ignore",
    env: { ...process.env, ...environment },
  });
  const url = `http://127.0.0.1:${port}/`;
  for (let attempt = 0; !(await fetch(url).catch(() => undefined)); attempt += 1) {
    assert.ok(attempt < 1_200, `${url} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const ended = new Promise((resolve) => preview.once("exit", resolve));
  return { url, stop: () => preview.kill() && ended };
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
