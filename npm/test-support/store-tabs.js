/** Begin of the tests of the store: a stage, and a tab of a browser for each test. The exports change with each test. */

import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { launchChromium, launchFirefox } from "./browsers.js";
import { deleteAll } from "./store-page.js";
import { makeStage, openTab } from "./store-stage.js";

/** @typedef {Awaited<ReturnType<typeof makeStage>>} Stage */

/** @type {Stage} */
export let stage;
/** The tab, which keeps nothing for the next test. @type {import("playwright-core").Page} */
export let page;

/**
 * Has each test of a file begin with a new tab in Chromium and no request. `prepare` adds models to the stage, `script` runs
 * in pages before their own.
 * @param {{ prepare?: (stage: Stage) => void, script?: () => void }} options
 */
export function prepareTabs({ prepare, script } = {}) {
  /** @type {import("playwright-core").Browser} */
  let browser;
  beforeAll(async () => {
    stage = await makeStage();
    prepare?.(stage);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await stage?.stop();
  });
  beforeEach(async () => {
    const context = await browser.newContext();
    if (script !== undefined) await context.addInitScript(script);
    page = await openTab(context, stage.url);
    stage.models.takeRequests();
  });
  afterEach(async () => {
    stage.models.clearRules();
    await page.context().close();
  });
}

/** Opens another tab, and closes the one before. */
export async function openNextTab(context = page.context()) {
  const before = page;
  page = await openTab(context, stage.url);
  await before.close();
}

/** The tab of Firefox. @type {import("puppeteer-core").Page} */
export let firefoxTab;

/** Has each test of a block begin with a new tab in Firefox, whose store is emptied after it. */
export function prepareFirefox() {
  /** @type {import("puppeteer-core").Browser} */
  let firefox;
  beforeAll(async () => {
    firefox = await launchFirefox();
  });
  afterAll(() => firefox?.close());
  beforeEach(async () => {
    firefoxTab = await openFirefoxTab(firefox);
  });
  afterEach(async () => {
    await firefoxTab.evaluate(deleteAll);
    await firefoxTab.close();
  });
}

/** Opens another tab of Firefox, and closes the one before. */
export async function openNextFirefoxTab() {
  const before = firefoxTab;
  firefoxTab = await openFirefoxTab(before.browser());
  await before.close();
}

/** A tab of Firefox with the package. @param {import("puppeteer-core").Browser} firefox */
export async function openFirefoxTab(firefox) {
  const tab = await firefox.newPage();
  await tab.goto(`${stage.url}/index.html`);
  await tab.waitForFunction(() => "setun" in globalThis);
  return tab;
}
