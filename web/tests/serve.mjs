/** A server of its own for the tests of its page. */

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { WEB } from "./preview.mjs";

const COMMAND = process.env.SETUN_COMMAND ?? join(WEB, "../target/debug/setun");

/**
 * Starts `setun serve` on a free port.
 * @param {string[]} more arguments @param {Record<string, string>} environment
 */
export async function startServe(more = [], environment = {}) {
  const server = spawn(COMMAND, ["serve", "--port", "0", ...more], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...environment },
  });
  const failed = new Promise((_, reject) => server.once("error", reject));
  const lines = createInterface({ input: /** @type {any} */ (server.stderr) });
  const started = (async () => {
    let said = "";
    for await (const line of lines) {
      const found = /http:\/\/\S+/.exec(line);
      if (found) return found[0];
      said += `${line}\n`;
    }
    throw new Error(`${COMMAND} ended: ${said}`);
  })();
  const url = /** @type {string} */ (await Promise.race([started, failed]));
  return { url, stop: () => server.kill("SIGKILL") };
}
