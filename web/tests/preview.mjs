/** Serves the built page for tests. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the page. */
export const WEB = fileURLToPath(new URL("..", import.meta.url));

/** How long a slow machine may take. */
export const PATIENCE = { timeout: 120_000 };

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
    assert.ok(attempt < 300, `${url} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const ended = new Promise((resolve) => preview.once("exit", resolve));
  return { url, stop: () => preview.kill() && ended };
}

/** @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (probe.address());
      probe.close(() => resolve(port));
    });
  });
}
