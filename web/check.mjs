#!/usr/bin/env node
/**
 * Drives the demo page in a headless browser, by its own controls, and prints the text it shows.
 *
 *     node check.mjs --url URL [--prompt P] [--temperature T] [--seed S] [--max-tokens N] [--backend B]
 *                    [--json] [--screenshot FILE] [--dark] [--width PIXELS]
 */

import { parseArgs } from "node:util";
import { launch, PATIENCE_MS } from "./browser.mjs";

/** Options that are controls of the page, by the control's name. */
const FIELDS = { prompt: "#prompt", temperature: "#temperature", seed: "#seed", "max-tokens": "#max-tokens" };

const text = /** @type {const} */ ({ type: "string" });
const flag = /** @type {const} */ ({ type: "boolean", default: false });

try {
  await main();
} catch (error) {
  process.stderr.write(`check: ${error instanceof Error ? error.message.split("\n")[0] : error}\n`);
  process.exitCode = 1;
}

async function main() {
  const { values } = parseArgs({
    options: {
      ...{ url: text, prompt: text, temperature: text, seed: text, "max-tokens": text, backend: text },
      ...{ json: flag, screenshot: text, dark: flag, width: text },
    },
  });
  if (values.url === undefined) throw new Error("--url is missing");
  const browser = await launch();
  try {
    const colorScheme = values.dark ? "dark" : "light";
    const viewport = { width: Number(values.width ?? 1200), height: 900 };
    // What a service worker fetches for later visits is not what the page needs.
    const page = await browser.newPage({ colorScheme, viewport, serviceWorkers: "block" });
    const requests = watchRequests(page);
    await page.goto(values.url);
    await fillIn(page, values);
    const shown = await runPage(page);
    if (values.screenshot) await page.screenshot({ path: values.screenshot, fullPage: true });
    const { text, ...rest } = shown;
    const report = { text, ...rest, requests: await Promise.all(requests) };
    process.stdout.write(`${values.json ? JSON.stringify(report) : text}\n`);
  } finally {
    await browser.close();
  }
}

/**
 * The addresses that the page and its workers fetch, and the bytes that crossed the network for each.
 * @param {import("playwright-core").Page} page
 */
function watchRequests(page) {
  /** @type {Promise<{ address: string, transferred: number }>[]} */
  const requests = [];
  const seen = new Set();
  page.context().on("requestfinished", (request) => {
    const address = request.url();
    if (!address.startsWith("http")) return;
    const cached = seen.has(address);
    seen.add(address);
    requests.push(transferredBytes(request, cached).then((transferred) => ({ address, transferred })));
  });
  return requests;
}

/**
 * Headers and body as they crossed. Of a worker's own script the browser tells only its headers, and threads
 * start from the copy in its cache.
 * @param {import("playwright-core").Request} request @param {boolean} cached
 */
async function transferredBytes(request, cached) {
  const { responseBodySize, responseHeadersSize } = await request.sizes();
  if (responseBodySize > 0 || cached) return responseHeadersSize + responseBodySize;
  const length = await (await request.response())?.headerValue("content-length");
  return responseHeadersSize + Number(length ?? 0);
}

/**
 * @param {import("playwright-core").Page} page
 * @param {Record<string, string | boolean | undefined>} values
 */
async function fillIn(page, values) {
  for (const [name, control] of Object.entries(FIELDS)) {
    const value = values[name];
    if (typeof value !== "string") continue;
    await page.fill(control, value);
    if ((await page.inputValue(control)) !== value)
      throw new Error(`--${name}: the page does not take "${value}"`);
  }
  // They change no text, but need every logit of every token, and what is measured here is the text alone.
  await page.uncheck("#probabilities");
  if (typeof values.backend === "string") await chooseBackend(page, values.backend);
  const refused = await page
    .locator("#form :invalid:not(fieldset)")
    .evaluateAll((controls) =>
      controls.map(
        (control) => `${control.id}: ${/** @type {HTMLInputElement} */ (control).validationMessage}`,
      ),
    );
  if (refused.length > 0) throw new Error(`bad-option: ${refused.join("; ")}`);
}

/** @param {import("playwright-core").Page} page @param {string} backend */
async function chooseBackend(page, backend) {
  const names = await page
    .locator("#backend option")
    .evaluateAll((options) => options.map((option) => /** @type {HTMLOptionElement} */ (option).value));
  // In a browser they are two names of one thing.
  const name = backend === "wasm" ? "cpu" : backend;
  if (!names.includes(name)) {
    throw new Error(`backend-unavailable: the page has no backend "${backend}"; it has ${names.join(", ")}`);
  }
  await page.waitForSelector('#gpu:not([data-gpu="looking"])');
  if (name === "webgpu" && (await page.getAttribute("#gpu", "data-gpu")) === "absent") {
    throw new Error(`backend-unavailable: ${await page.textContent("#gpu")}`);
  }
  await page.selectOption("#backend", name);
}

/** Presses Run and waits for the end. @param {import("playwright-core").Page} page */
async function runPage(page) {
  await page.click("#run");
  await page.waitForSelector('#status:is([data-state="done"], [data-state="failed"])', {
    timeout: PATIENCE_MS,
  });
  const status = page.locator("#status");
  if ((await status.getAttribute("data-state")) === "failed")
    throw new Error((await status.textContent()) ?? "");
  const milliseconds = JSON.parse((await page.getAttribute("#chart", "data-milliseconds")) ?? "[]");
  const [first = null] = milliseconds;
  return {
    text: (await page.textContent("#text")) ?? "",
    tokens: Number(await page.textContent("#tokens")),
    backend: (await page.getAttribute("#backend-used", "data-backend")) ?? "",
    level: (await page.getAttribute("#backend-used", "data-level")) ?? "",
    build: (await page.textContent("#build-used")) ?? "",
    first_token_ms: first,
    token_ms: milliseconds,
  };
}
