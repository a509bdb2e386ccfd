/** WebKitGTK, driven by W3C WebDriver: Playwright and Puppeteer drive only builds of their own. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { PATIENCE_MS } from "./patience.js";
import { freePort } from "./project.js";

/** Of Debian's package `webkit2gtk-driver`. */
const DRIVER = process.env.WEBKIT_DRIVER || "/usr/bin/WebKitWebDriver";

/** Whether it is here: its packages have 70 MB, and only Linux has them. */
export const hasWebKit = existsSync(DRIVER);

/**
 * Starts WebKit with a page that loads the package, and waits until it has.
 * @param {string} url @param {string} isReady expression that is true then
 */
export async function openInWebKit(url, isReady = '"setun" in window') {
  const port = await freePort();
  // It draws in windows, and so needs a display. A new one ends with the driver.
  const display = process.env.DISPLAY ? [] : ["xvfb-run", "--auto-servernum"];
  const [program = "", ...args] = [...display, DRIVER, `--port=${port}`];
  const driver = spawn(program, args, { stdio: "ignore", detached: true });
  const ended = new Promise((resolve) => driver.once("exit", resolve).once("error", resolve));
  const stop = async () => {
    if (driver.pid !== undefined && driver.exitCode === null) process.kill(-driver.pid);
    await ended;
  };
  try {
    const session = await openSession(`http://127.0.0.1:${port}`);
    await session.post("url", { url });
    await session.run(waitFor(isReady), []);
    return {
      page: { evaluate: session.evaluate },
      close: async () => {
        await session.end();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Script of WebDriver whose last argument takes the result. @param {string} isReady */
function waitFor(isReady) {
  return `const [done] = arguments;
const look = () => (${isReady} ? done() : setTimeout(look, 50));
look();`;
}

/** @param {string} driver */
async function openSession(driver) {
  const timeouts = { script: PATIENCE_MS };
  const created = await started(driver, { capabilities: { alwaysMatch: { timeouts } } });
  const session = `${driver}/session/${created.sessionId}`;
  const post = (/** @type {string} */ command, /** @type {object} */ body) =>
    send("POST", `${session}/${command}`, body);
  const run = (/** @type {string} */ script, /** @type {unknown[]} */ args) =>
    post("execute/async", { script, args });
  return {
    post,
    run,
    end: () => send("DELETE", session),
    /** Runs a function in the page. @param {Function} task @param {unknown} given */
    async evaluate(task, given) {
      const script = `const [given, done] = arguments;
        (${task})(given).then((value) => done({ value }), (error) => done({ failed: String(error) }));`;
      const { value, failed } = await run(script, [given]);
      if (failed) throw new Error(failed);
      return value;
    },
  };
}

/** A session, once the driver answers. @param {string} driver @param {object} capabilities */
async function started(driver, capabilities) {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (await fetch(`${driver}/status`).catch(() => undefined))
      return send("POST", `${driver}/session`, capabilities);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`WebKit's driver does not answer at ${driver}; it needs xvfb-run or a display`);
}

/** @param {string} method @param {string} url @param {object} [body] @returns {Promise<any>} */
async function send(method, url, body) {
  const answer = await fetch(url, { method, ...(body && { body: JSON.stringify(body) }) });
  const { value } = await answer.json();
  if (answer.ok) return value;
  throw new Error(`${method} ${url}: ${value.error}: ${value.message}`);
}
