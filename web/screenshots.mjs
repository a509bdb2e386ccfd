#!/usr/bin/env node
/**
 * Pictures of the built page's views, each with something in it: answers of the built-in model, a download under way,
 * a comparison, a checkpoint.
 *
 *     node screenshots.mjs --out FOLDER [--view NAME ...]
 *
 * Writes NAME-light.png, NAME-dark.png and NAME-phone.png (360 pixels wide).
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { embeddedModel, largeModel } from "../npm/test-support/checkpoint.js";
import { startFaultyServer } from "../npm/test-support/faulty-server.js";
import { launch } from "./browser.mjs";
import { PATIENCE, startPreview, WEB } from "./tests/preview.mjs";

const LOOKS = /** @type {const} */ ({
  light: { viewport: { width: 1140, height: 710 }, colorScheme: "light" },
  dark: { viewport: { width: 1140, height: 710 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 1400 }, colorScheme: "light" },
});

/** The model that is downloaded. */
const MODEL = "/stories/large.safetensors";

/** @typedef {import("playwright-core").Page} Page */

/** What a visitor does in each view. @type {Record<string, (page: Page, models: string) => Promise<unknown>>} */
const VIEWS = {
  "first-visit": firstVisit,
  chat,
  models: downloads,
  "side-by-side": sideBySide,
  parity,
  explorer,
  benchmark,
};

const { values } = parseArgs({
  options: { out: { type: "string" }, view: { type: "string", multiple: true } },
});
if (values.out === undefined) throw new Error("--out is missing");
mkdirSync(values.out, { recursive: true });
const server = await startPreview({});
const models = await startModels();
const browser = await launch();
try {
  for (const view of values.view ?? Object.keys(VIEWS))
    for (const look of /** @type {const} */ (["light", "dark", "phone"])) await takePicture(view, look);
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
  await page.goto(`${server.url}#${/side-by-side|first-visit/.test(view) ? "story" : view}`);
  await open(page, models.at(MODEL));
  const path = join(String(values.out), `${view}-${look}.png`);
  await page.evaluate(() => scrollTo(0, 0));
  await page.mouse.move(0, 0);
  await page.screenshot({ path });
  process.stdout.write(`${path}\n`);
  await page.close();
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
