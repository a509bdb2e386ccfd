/** The browsers that tests run in: the ones installed, never downloaded here. */

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import puppeteer from "puppeteer-core";
import { PATIENCE_MS } from "./patience.js";

const CHROMES = [
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
  "/usr/bin/microsoft-edge",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

const FIREFOXES = [
  "/usr/bin/firefox-esr",
  "/usr/bin/firefox",
  "/Applications/Firefox.app/Contents/MacOS/firefox",
  "C:\\Program Files\\Mozilla Firefox\\firefox.exe",
];

const QUIET = ["--disable-quic", "--no-first-run", "--disable-background-networking"].concat(
  ["--disable-component-update", "--disable-sync"],
  // Chromium's sandbox does not run as root, which is what containers are.
  process.getuid?.() === 0 ? ["--no-sandbox"] : [],
);

/** Without a GPU, headless Chromium has WebGPU in software, behind this switch. */
const WEBGPU = "--enable-unsafe-webgpu";

/** Has `performance.measureUserAgentSpecificMemory` answer at once instead of after the next collection of garbage. */
const MEASURES_MEMORY = "--enable-blink-features=ForceEagerMeasureMemory";

/** Starts Chromium, or a relative of it. */
export async function launchChromium({ webgpu = false, measuresMemory = false } = {}) {
  const args = [...QUIET, ...(webgpu ? [WEBGPU] : []), ...(measuresMemory ? [MEASURES_MEMORY] : [])];
  const executablePath = find("Chromium", "CHROME", CHROMES);
  const browser = await chromium.launch({ executablePath, args, timeout: PATIENCE_MS });
  const newContext = browser.newContext.bind(browser);
  // Its pages come from a context, too.
  browser.newContext = async (options) => patient(await newContext(options));
  return browser;
}

/** Opens Chromium with what it keeps in `folder`: without one all windows are private. @param {string} folder */
export async function openChromiumProfile(folder) {
  const executablePath = find("Chromium", "CHROME", CHROMES);
  const options = { executablePath, args: QUIET, timeout: PATIENCE_MS };
  return patient(await chromium.launchPersistentContext(folder, options));
}

/** @template {import("playwright-core").BrowserContext | import("puppeteer-core").Page} Opened @param {Opened} opened */
function patient(opened) {
  opened.setDefaultTimeout(PATIENCE_MS);
  return opened;
}

/**
 * Starts Chromium with an unpacked extension. Puppeteer installs it by the protocol; the switch that Playwright
 * documents is gone from branded browsers.
 * @param {string} folder
 */
export function launchWithExtension(folder) {
  return launchInPuppeteer({ enableExtensions: [folder] });
}

/** Starts Chromium with tabs that are hidden behind the newest, and so may be frozen. Playwright keeps all visible. */
export function launchInPuppeteer(options = {}) {
  const executablePath = find("Chromium", "CHROME", CHROMES);
  return launchPuppeteer({ executablePath, args: QUIET, pipe: true, ...options });
}

/**
 * Starts Firefox, also with private windows alone. Playwright drives only its own build of it, so this is Puppeteer,
 * whose pages evaluate alike.
 */
export function launchFirefox({ isPrivate = false } = {}) {
  const executablePath = find("Firefox", "FIREFOX", FIREFOXES);
  const extraPrefsFirefox = { "browser.privatebrowsing.autostart": isPrivate };
  return launchPuppeteer({ browser: "firefox", executablePath, headless: true, extraPrefsFirefox });
}

/** @param {import("puppeteer-core").LaunchOptions} options */
async function launchPuppeteer(options) {
  const browser = await puppeteer.launch({ ...options, timeout: PATIENCE_MS, protocolTimeout: PATIENCE_MS });
  const newPage = browser.newPage.bind(browser);
  browser.newPage = async (given) => patient(await newPage(given));
  return browser;
}

/** Starts Firefox with a page that loads the package. @param {string} url */
export async function openInFirefox(url) {
  const browser = await launchFirefox();
  const page = await browser.newPage();
  await page.goto(url);
  await page.waitForFunction(() => "setun" in window);
  return { page, close: () => browser.close() };
}

/** @param {string} name @param {string} variable @param {string[]} places */
function find(name, variable, places) {
  const named = process.env[variable];
  const found = named || places.find((place) => existsSync(place));
  if (found) return found;
  throw new Error(`${name} is not installed; set ${variable} to its path. Looked for: ${places.join(", ")}`);
}

/**
 * Opens a page and keeps the addresses it and its workers requested, and its uncaught errors.
 * @param {import("playwright-core").Browser} browser @param {string} url @param {() => boolean} isReady
 */
export async function openPage(browser, url, isReady = () => "setun" in window) {
  const context = await browser.newContext();
  /** @type {string[]} */
  const requests = [];
  /** @type {string[]} */
  const errors = [];
  context.on("request", (request) => requests.push(request.url()));
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(url);
  await page.waitForFunction(isReady);
  return { page, requests, errors, close: () => context.close() };
}
