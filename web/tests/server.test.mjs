/** The page of `setun serve` over a server of its own, in a browser. */

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { launchFirefox } from "../../npm/test-support/browsers.js";
import { launch } from "../browser.mjs";
import { findings } from "./findings.mjs";
import { PATIENCE } from "./preview.mjs";
import { startServe } from "./serve.mjs";

/** @type {Awaited<ReturnType<typeof startServe>>} */
let server;
let url = "";
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;

before(async () => {
  server = await startServe();
  url = server.url;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.stop();
});

/** Opens the page. @param {import("playwright-core").BrowserContextOptions} options */
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE.timeout);
  await page.goto(`${url}/ui`);
  await page.waitForSelector("#messages > *");
}

/** @param {string} text @param {string} tokens */
async function ask(text, tokens) {
  await page.fill("#max-tokens", tokens);
  await page.fill("#seed", "3");
  await page.fill("#message", text);
  await page.keyboard.press("Enter");
}

/**
 * Takes another token in the fourth place, from which another version of the answer goes on.
 * @param {import("playwright-core").Locator} tokens
 */
async function chooseAnother(tokens) {
  const kept = (await tokens.allTextContents()).slice(0, 3).join("");
  const other = page.locator("#token-choices button:not([aria-current])").first();
  const word = ((await other.locator(".piece").textContent()) ?? "").replace("·", " ");
  await other.click();
  await page.waitForSelector('.versions:has-text("2 of 2")');
  await page.getByRole("button", { name: "Probabilities" }).click();
  assert.equal(await tokens.count(), 16);
  const text = (await tokens.allTextContents()).join("");
  assert.ok(text.startsWith(kept + word), `${text} after ${kept}${word}`);
}

/** Many long texts, again and again until they are cut short. */
async function load() {
  const body = JSON.stringify({ prompt: "A cat", n: 16, min_tokens: 400, max_tokens: 400, temperature: 1 });
  for (let tokens = 16 * 400; tokens === 16 * 400; ) {
    const answer = await fetch(`${url}/v1/completions`, { method: "POST", body });
    tokens = (await answer.json()).usage.completion_tokens;
  }
}

/** Presses Cancel until the load is over: an answer may end before it is cancelled. @param {Promise<void>} loaded */
async function cancel(loaded) {
  const cancelled = page.getByRole("button", { name: /^Cancel / });
  let isOver = false;
  const over = loaded.then(() => {
    isOver = true;
  });
  // No click may be left that waits for the requests of the next test.
  while (!isOver) {
    await cancelled.click({ timeout: 1_000 }).catch(() => {});
    await Promise.race([over, setTimeout(200)]);
  }
}

/** The step time by operation has parts, which are the whole, and changes. */
async function operationsMove() {
  const figure = page.locator('[data-figure="operations"]');
  await figure.locator('b:text-matches("%$")').first().waitFor();
  const first = await figure.locator("dd").first().textContent();
  const parts = await figure.locator(".legend span").allTextContents();
  const shares = parts.map((part) => Number(/([\d.]+) %$/.exec(part)?.[1]));
  assert.equal(shares.length, 6, parts.join());
  const sum = shares.reduce((sum, share) => sum + share, 0);
  assert.ok(Math.abs(sum - 100) < 1 && shares.every((share) => share > 0), parts.join());
  await page.waitForFunction(
    (first) => document.querySelector('[data-figure="operations"] dd')?.textContent !== first,
    first,
  );
}

describe("the page of a server", () => {
  beforeEach(async () => open());

  it("continues a text and shows the probability of each token", async () => {
    /** @type {string[]} */
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    assert.match((await page.textContent("#chat-notice")) ?? "", /no chat template/);
    await ask("Once upon a time, a fox", "12");
    await page.waitForSelector('#chat-status[data-state="done"]');
    const text = (await page.locator("article .body").nth(1).textContent()) ?? "";
    await page.getByRole("button", { name: "Probabilities" }).click();
    const tokens = page.locator(".answer-tokens .token");
    assert.equal(await tokens.count(), 12);
    const joined = (await tokens.allTextContents()).join("");
    assert.equal(joined.trim().replace(/\s+/g, " "), text.trim().replace(/\s+/g, " "));
    await tokens.nth(3).click();
    assert.equal(await page.locator("#token-choices li").count(), 5);
    assert.match((await page.textContent("#token-said")) ?? "", / · [\d.]+ %$/);
    await chooseAnother(tokens);
    assert.ok(
      requests.every((address) => address.startsWith(url)),
      requests.join(" "),
    );
  });

  it("draws metrics that move, and cancels a request", async () => {
    const loaded = load();
    await page.click('nav a[href="#server"]');
    await page.waitForSelector('#request-rows td:text-is("running")');
    const line = page.locator('[data-figure="rate"] path.line');
    await page.waitForFunction(() => {
      const path = document.querySelector('[data-figure="rate"] path.line')?.getAttribute("d") ?? "";
      return path.split("H").length > 3;
    });
    assert.notEqual(await line.getAttribute("d"), "");
    const rate = await page.locator('[data-figure="rate"] dd').first().textContent();
    assert.match(rate ?? "nothing", /^[1-9]\d*(\.\d)? tokens\/s$/);
    await operationsMove();
    await cancel(loaded);
    await page.waitForSelector("#no-requests:visible");
  });
});

for (const [name, width, colorScheme] of /** @type {const} */ ([
  ["light", 1200, "light"],
  ["dark and narrow", 390, "dark"],
])) {
  it(`has no findings of axe and needs no sideways scrolling: ${name}`, async () => {
    await open({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
    await ask("Tom and Lily", "8");
    await page.getByRole("button", { name: "Probabilities" }).click();
    await page.locator(".answer-tokens .token").nth(2).click();
    assert.equal(await findings(page), "");
    await page.keyboard.press("Escape");
    const loaded = load();
    await page.click('nav a[href="#server"]');
    await page.waitForSelector("#request-rows tr");
    assert.equal(await findings(page), "");
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(excess <= 0, `${excess} pixels too wide`);
    await cancel(loaded);
  });
}

it("chats, shows probabilities and cancels in Firefox", async () => {
  const firefox = await launchFirefox();
  const tab = await firefox.newPage();
  tab.setDefaultTimeout(PATIENCE.timeout);
  try {
    await tab.goto(`${url}/ui#server`);
    const loaded = load();
    await tab.waitForFunction(() => {
      const figure = (/** @type {string} */ name) => document.querySelector(`[data-figure="${name}"]`);
      const path = figure("rate")?.querySelector("path.line")?.getAttribute("d") ?? "";
      const share = figure("operations")?.querySelector(".legend span")?.textContent ?? "";
      return path.split("H").length > 3 && share.endsWith("%");
    });
    // A button of a request that has just ended is gone.
    const presses = setInterval(() => tab.click("#request-rows button").catch(() => {}), 300);
    await loaded;
    clearInterval(presses);
    await tab.goto(`${url}/ui#chat`);
    await tab.waitForSelector("#messages .beginnings");
    await tab.type("#max-tokens", "8");
    await tab.type("#seed", "3");
    await tab.type("#message", "A frog\n");
    await tab.waitForSelector('#chat-status[data-state="done"]');
    await tab.click('button[aria-pressed="false"]');
    assert.equal(await tab.$$eval(".answer-tokens .token", (tokens) => tokens.length), 8);
  } finally {
    await firefox.close();
  }
});
