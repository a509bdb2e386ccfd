/** The browser that checks and tests drive: the one installed. */

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const BROWSERS = [
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
  "/usr/bin/microsoft-edge",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
];

/** Milliseconds after which a step counts as one that never ends: many times what the longest takes on a busy machine. */
export const PATIENCE_MS = 900_000;

/**
 * Starts `$CHROME`, or the first browser found; headless. Its visitor was here before, so that no story writes itself.
 * @param {string[]} more arguments @param {{ isFirstVisit?: boolean }} visitor
 */
export async function launch(more = [], { isFirstVisit = false } = {}) {
  const executablePath = process.env.CHROME || BROWSERS.find((path) => existsSync(path));
  if (!executablePath) throw new Error(`no browser found; set CHROME. Looked for: ${BROWSERS.join(", ")}`);
  const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"];
  // Chromium's sandbox does not run as root, which is what containers are.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  // Without a GPU, headless Chromium has WebGPU in software, behind this switch.
  const webgpu = "--enable-unsafe-webgpu";
  const args = [...quiet, "--disable-component-update", webgpu, ...sandbox, ...more];
  const browser = await chromium.launch({ executablePath, args, timeout: PATIENCE_MS });
  const newContext = browser.newContext.bind(browser);
  // Its pages come from a context, too.
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    if (!isFirstVisit) await context.addInitScript(setVisited);
    return context;
  };
  return browser;
}

/** In the browser, before the page's scripts. */
function setVisited() {
  try {
    localStorage.setItem("setun-visited", "1");
  } catch {
    // Pages without an origin keep nothing.
  }
}
