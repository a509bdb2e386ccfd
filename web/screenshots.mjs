#!/usr/bin/env node
/**
 * Pictures of the built page's views, each with something in it: answers of the built-in model, a download under way,
 * a comparison, a checkpoint.
 *
 *     node screenshots.mjs --out FOLDER [--view NAME ...] [--webp]
 *
 * Writes NAME-light, NAME-dark, NAME-phone and NAME-phone-dark (360 pixels wide) as PNG files, or as WebP.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { embeddedModel, largeModel } from "../npm/test-support/checkpoint.js";
import { startFaultyServer } from "../npm/test-support/faulty-server.js";
import { launch } from "./browser.mjs";
import { PATIENCE, startPreview, WEB } from "./tests/preview.mjs";

const LOOKS = /** @type {const} */ ({
  light: { viewport: { width: 1140, height: 710 }, colorScheme: "light" },
  dark: { viewport: { width: 1140, height: 710 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, colorScheme: "light", hasTouch: true, isMobile: true },
  "phone-dark": {
    viewport: { width: 360, height: 740 },
    colorScheme: "dark",
    hasTouch: true,
    isMobile: true,
  },
});

/** The model that is downloaded. */
const MODEL = "/stories/large.safetensors";

/** @typedef {import("playwright-core").Page} Page */

/** Quality of WebP, of 100. */
const QUALITY = 82;

/** An example: no model wrote it. */
const CONVERSATION = [
  { role: "user", content: "What is a balanced ternary number?" },
  {
    ...{ role: "assistant", writer: "Example", reasoning: "They ask for a notation.", reasoningSeconds: 4.2 },
    content:
      "A balanced ternary number has the digits **−1**, **0** and **+1**.\n\n- 5 is `+ − −`: 9 − 3 − 1\n- −5 is `− + +`\n\n" +
      "```js\nfunction trits(n) {\n  const digits = [];\n  while (n !== 0) {\n    const digit = n - 3 * Math.round(n / 3);\n" +
      "    digits.unshift(digit);\n    n = (n - digit) / 3;\n  }\n  return digits;\n}\n```",
  },
];

/** What a visitor does in each view. @type {Record<string, (page: Page, models: string) => Promise<unknown>>} */
const VIEWS = {
  "first-visit": firstVisit,
  conversation,
  chat,
  models: list,
  downloads,
  "side-by-side": sideBySide,
  parity,
  explorer,
  benchmark,
};

/** Views of the address, where they have another name than the picture. @type {Record<string, string>} */
const PLACES = { "first-visit": "story", "side-by-side": "story", conversation: "chat", downloads: "models" };

const { values } = parseArgs({
  options: {
    ...{ out: { type: "string" }, view: { type: "string", multiple: true } },
    webp: { type: "boolean", default: false },
  },
});
if (values.out === undefined) throw new Error("--out is missing");
mkdirSync(values.out, { recursive: true });
const server = await startPreview({});
const models = await startModels();
const browser = await launch();
try {
  for (const view of values.view ?? Object.keys(VIEWS))
    for (const look of /** @type {(keyof typeof LOOKS)[]} */ (Object.keys(LOOKS)))
      await takePicture(view, look);
} finally {
  await browser.close();
  await models.stop();
  await server.stop();
}

/** @param {string} view @param {keyof typeof LOOKS} look */
async function takePicture(view, look) {
  const open = VIEWS[view];
  if (open === undefined) throw new Error(`--view: ${view} is none of ${Object.keys(VIEWS).join(", ")}`);
  const page = await browser.newPage({ ...LOOKS[look], reducedMotion: "reduce" });
  if (view === "first-visit") await page.addInitScript(() => localStorage.removeItem("setun-visited"));
  await page.goto(`${server.url}#${PLACES[view] ?? view}`);
  await open(page, models.at(MODEL));
  const path = join(String(values.out), `${view}-${look}.${values.webp ? "webp" : "png"}`);
  if (view !== "conversation") await page.evaluate(() => scrollTo(0, 0));
  await page.mouse.move(0, 0);
  if (values.webp) await writeWebp(page, path);
  else await page.screenshot({ path });
  process.stdout.write(`${path}\n`);
  await page.close();
}

/** @param {Page} page @param {string} path */
async function writeWebp(page, path) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  writeFileSync(path, Buffer.from(data, "base64"));
}

/** Serves a model of 46 MB, slowly. */
async function startModels() {
  const faulty = await startFaultyServer({ cors: { exposes: true, allows: "range" } });
  const { folder } = embeddedModel(WEB);
  faulty.put(MODEL, largeModel(folder));
  faulty.rule(MODEL, Number.MAX_SAFE_INTEGER, { slow: 2000 });
  return faulty;
}

/** @param {Page} page */
async function firstVisit(page) {
  await page.waitForSelector('#status[data-state="done"]', PATIENCE);
  await page.waitForSelector("#invitation:visible", PATIENCE);
}

/** @param {Page} page */
async function conversation(page) {
  const messages = CONVERSATION.map((message, at) => ({
    ...{ id: String(at), parent: at === 0 ? null : String(at - 1), ...message },
  }));
  const thread = { title: "What is a balanced ternary number?", system: "", format: "transcript" };
  const threads = [{ ...thread, updated: 1, leaf: String(messages.length - 1), messages }];
  const buffer = Buffer.from(JSON.stringify({ kind: "setun-conversations", version: 1, threads }));
  await page.waitForSelector(".beginnings", PATIENCE);
  await page.setInputFiles("#import", { name: "example.json", mimeType: "application/json", buffer });
  await page.waitForSelector("#thread-list button", { state: "attached", ...PATIENCE });
  await page.evaluate(() =>
    document.querySelector("#thread-list button")?.dispatchEvent(new MouseEvent("click")),
  );
  await page.waitForSelector("article pre", PATIENCE);
  await page.evaluate(() => document.querySelector("#messages")?.scrollIntoView());
}

/** @param {Page} page */
async function list(page) {
  await page.waitForSelector(".model >> nth=5", PATIENCE);
  await page.waitForSelector("#models-limit:not(:empty)", PATIENCE);
}

/** @param {Page} page */
async function chat(page) {
  await page.waitForSelector(".beginnings", PATIENCE);
  await page.fill("#seed", "7");
  await page.fill("#max-tokens", "40");
  await page.fill("#message", "Once upon a time, a little fox found a red balloon.");
  await page.click("#send:enabled", PATIENCE);
  await page.waitForSelector("article:not([data-busy]) .note:not(:empty)", PATIENCE);
}

/** @param {Page} page @param {string} source */
async function downloads(page, source) {
  await page.fill("#model-source", source);
  await page.click("#look-up");
  const card = page.locator(".model", { hasText: MODEL });
  await card.waitFor(PATIENCE);
  await card.getByRole("button").first().click();
  await page.waitForFunction(
    () => {
      const bar = document.querySelector('.model[data-state="loading"] progress');
      return bar instanceof HTMLProgressElement && bar.position > 0.3;
    },
    null,
    PATIENCE,
  );
}

/** @param {Page} page */
async function sideBySide(page) {
  await page.check("#two");
  await page.selectOption("#backend-2", "scalar");
  await page.fill("#seed", "3");
  await page.fill("#seed-2", "4");
  await page.fill("#max-tokens", "40");
  await page.click("#run");
  await page.waitForSelector("#run:enabled", PATIENCE);
}

/** @param {Page} page */
async function parity(page) {
  await page.click("#parity-run");
  await page.waitForSelector('#parity-status[data-state="done"]', PATIENCE);
}

/** @param {Page} page */
async function explorer(page) {
  await page.setInputFiles("#explorer-files", join(WEB, "node_modules/setun/model/stories.safetensors"));
  await page.waitForSelector('#explorer-status[data-state="done"]', PATIENCE);
}

/** @param {Page} page */
async function benchmark(page) {
  await page.click("#benchmark-run");
  await page.waitForSelector('#benchmark-status[data-state="done"]', PATIENCE);
  await page.click("#benchmark-share:enabled", PATIENCE);
}
