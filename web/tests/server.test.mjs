/** The page of `setun serve` over a server of its own, in a browser. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, beforeEach, describe, it } from "node:test";
import { launch } from "../browser.mjs";
import { findings } from "./findings.mjs";
import { PATIENCE, WEB } from "./preview.mjs";

const COMMAND = process.env.SETUN_COMMAND ?? join(WEB, "../target/debug/setun");

/** @type {import("node:child_process").ChildProcess} */
let server;
let url = "";
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;

before(async () => {
  server = spawn(COMMAND, ["serve", "--port", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  const failed = new Promise((_, reject) => server.once("error", reject));
  const lines = createInterface({ input: /** @type {any} */ (server.stderr) });
  const started = (async () => {
    for await (const line of lines) {
      const found = /http:\/\/\S+/.exec(line);
      if (found) return found[0];
    }
    throw new Error(`${COMMAND} ended`);
  })();
  url = /** @type {string} */ (await Promise.race([started, failed]));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.kill("SIGKILL");
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
  await page.fill("#message", text);
  await page.keyboard.press("Enter");
}

/** A text that goes on until it is cancelled: at this temperature the end is as likely as any other token. */
async function askEndless() {
  await page.fill("#temperature", "50");
  await page.fill("#seed", "3");
  await ask("Once upon a time", "");
  await page.waitForSelector("article[data-busy]");
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
    assert.ok(
      requests.every((address) => address.startsWith(url)),
      requests.join(" "),
    );
  });

  it("draws metrics that move, and cancels a request", async () => {
    await askEndless();
    await page.click('nav a[href="#server"]');
    await page.waitForSelector("#request-rows tr");
    const cells = page.locator("#request-rows td");
    assert.equal(await cells.nth(2).textContent(), "running");
    const line = page.locator('[data-figure="rate"] path.line');
    await page.waitForFunction(() => {
      const path = document.querySelector('[data-figure="rate"] path.line')?.getAttribute("d") ?? "";
      return path.split("H").length > 3;
    });
    assert.notEqual(await line.getAttribute("d"), "");
    const rate = await page.locator('[data-figure="rate"] dd').first().textContent();
    assert.ok(Number(rate) > 0, rate ?? "nothing");
    await page.getByRole("button", { name: /^Cancel / }).click();
    await page.waitForSelector("#no-requests:visible");
    await page.click('nav a[href="#chat"]');
    await page.waitForSelector("#send:enabled");
    assert.equal(await page.locator("article").count(), 2);
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
    await askEndless();
    await page.click('nav a[href="#server"]');
    await page.waitForSelector("#request-rows tr");
    assert.equal(await findings(page), "");
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(excess <= 0, `${excess} pixels too wide`);
    await page.getByRole("button", { name: /^Cancel / }).click();
    await page.waitForSelector("#no-requests:visible");
  });
}
