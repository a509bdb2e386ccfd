/** A browser and the served page for all tests of a file, and for each test a page of its own. */

import { after, afterEach, before, beforeEach } from "node:test";
import { launch } from "../browser.mjs";
import { PATIENCE, startPreview } from "./preview.mjs";

export { PATIENCE };

/** @type {import("playwright-core").Browser} */
export let browser;
/** @type {import("playwright-core").BrowserContext} */
export let context;
/** @type {import("playwright-core").Page} */
export let page;
/** @type {Awaited<ReturnType<typeof startPreview>>} */
export let server;

/**
 * What a page begins with: a view, the selector that says that the view is there, and values of controls.
 * @typedef {{ view?: string, ready?: string, controls?: Record<string, string> }} Beginning
 */

/** Screens of a visitor. */
export const DESK = { viewport: { width: 1100, height: 900 } };
export const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** The build that every browser runs, on one thread. */
const BUILD = { backend: "simd128", threads: "1" };

/**
 * Prepares the tests of a file.
 * @param {Beginning & { options?: import("playwright-core").BrowserContextOptions }} beginning
 */
export function useStage(beginning = {}) {
  useBrowser();
  usePages(beginning);
}

/**
 * A context and a page for each test.
 * @param {Beginning & { options?: import("playwright-core").BrowserContextOptions }} beginning
 */
export function usePages({ options = DESK, ...beginning }) {
  beforeEach(async () => {
    context = await browser.newContext(options);
    page = await openPage(beginning);
  });
  afterEach(() => context.close());
}

/** A context and an empty page for each test, which opens it. */
export function useEmptyPages(options = DESK) {
  beforeEach(() => openEmptyPage(options));
  afterEach(() => context.close());
}

/** Gives a test an empty page of a new context. @param {import("playwright-core").BrowserContextOptions} options */
export async function openEmptyPage(options) {
  context = await browser.newContext(options);
  page = await context.newPage();
}

/** Prepares the browser and the server alone. */
export function useBrowser({ isFirstVisit = false } = {}) {
  before(async () => {
    browser = await launch([], { isFirstVisit });
    server = await startPreview({});
  });
  after(async () => {
    await browser.close();
    await server.stop();
  });
}

/** A page of the test's context. @param {Beginning} beginning */
export async function openPage({ view = "story", ready, controls = {} }) {
  const opened = await context.newPage();
  await opened.goto(`${server.url}#${view}`);
  if (ready) await opened.waitForSelector(ready, PATIENCE);
  await setControls(opened, controls);
  return opened;
}

/** @param {import("playwright-core").Page} opened @param {Record<string, string>} controls by id */
export async function setControls(opened, controls) {
  for (const [id, value] of Object.entries({ ...BUILD, ...controls })) {
    if (id === "backend") await opened.selectOption(`#${id}`, value);
    else await opened.fill(`#${id}`, value);
  }
}

/**
 * Controls of a text that no chance ends: at this temperature the end of the text is as likely as any other token, and
 * with the tests' seeds none ends before the context is full.
 */
export const ENDLESS = { backend: "scalar", "max-tokens": "", temperature: "50", seed: "3" };

/** @param {string} selector */
export const textOf = async (selector) => (await page.textContent(selector)) ?? "";

/** Waits until the story is written. */
export const written = () => page.waitForSelector('#status[data-state="done"]', PATIENCE);

/** Waits until the chat has a whole answer, and returns who wrote it. */
export async function answered() {
  await page.waitForSelector("article .note:not(:empty)", PATIENCE);
  return page.locator("article .speaker").last().textContent();
}

/** Pixels by which the page is wider than the window. */
export const excessWidth = () =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
