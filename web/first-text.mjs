#!/usr/bin/env node
/**
 * Time from opening the built page for the first time to the first token of its story, from a server on this machine
 * that compresses and is warm.
 *
 *     node first-text.mjs [--browser chromium|firefox|webkit ...] [--rounds N]
 *
 * Each round has a browser of its own, without anything kept. Prints the milliseconds of each, the least first.
 */

import { parseArgs } from "node:util";
import { launchFirefox } from "../npm/test-support/browsers.js";
import { openInWebKit } from "../npm/test-support/webkit.js";
import { launch, PATIENCE_MS } from "./browser.mjs";
import { startPreview } from "./tests/preview.mjs";

/** Functions of the page, which marks its first token. */
const isReady = () => performance.getEntriesByName("first-text").length > 0;
const read = () => performance.getEntriesByName("first-text")[0]?.startTime ?? Number.NaN;

/** @type {Record<string, (url: string) => Promise<number>>} */
const BROWSERS = { chromium: inChromium, firefox: inFirefox, webkit: inWebKit };

const { values } = parseArgs({
  options: { browser: { type: "string", multiple: true }, rounds: { type: "string", default: "5" } },
});
const server = await startPreview({});
try {
  for (const name of values.browser ?? Object.keys(BROWSERS)) {
    const measure = BROWSERS[name];
    if (measure === undefined)
      throw new Error(`--browser: ${name} is none of ${Object.keys(BROWSERS).join(", ")}`);
    const times = [];
    // The first round warms the server and the disk.
    for (let round = 0; round <= Number(values.rounds); round += 1) {
      const time = await measure(server.url);
      if (round > 0) times.push(Math.round(time));
    }
    process.stdout.write(`${name}: ${times.toSorted((one, other) => one - other).join(", ")} ms\n`);
  }
} finally {
  await server.stop();
}

/** @param {string} url */
async function inChromium(url) {
  const browser = await launch([], { isFirstVisit: true });
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction(isReady, null, { timeout: PATIENCE_MS });
    return await page.evaluate(read);
  } finally {
    await browser.close();
  }
}

/** @param {string} url */
async function inFirefox(url) {
  const browser = await launchFirefox();
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction(isReady);
    return await page.evaluate(read);
  } finally {
    await browser.close();
  }
}

/** @param {string} url */
async function inWebKit(url) {
  const { page, close } = await openInWebKit(url, `(${isReady})()`);
  try {
    return await page.evaluate(`async () => (${read})()`, null);
  } finally {
    await close();
  }
}
