/** A new visitor on a phone and on a desk, in the steps that the documents name. */

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { launch } from "../browser.mjs";
import { PATIENCE, startPreview } from "./preview.mjs";
import { playHub } from "./recommended.mjs";

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const DESK = { viewport: { width: 1100, height: 900 } };

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startPreview>>} */
let server;
/** @type {import("playwright-core").BrowserContext} */
let context;
/** @type {import("playwright-core").Page} */
let page;
/** How the visitor presses. @type {"tap" | "click"} */
let act;
/** What the visitor did. @type {string[]} */
let steps;

before(async () => {
  browser = await launch([], { isFirstVisit: true });
  server = await startPreview({});
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Presses something that is there, scrolling to it where it is out of sight. @param {string} selector */
async function press(selector) {
  await come(selector);
  steps.push(`press ${selector}`);
  await page.locator(selector).first()[act]();
}

/** @param {string} selector @param {string} text */
async function write(selector, text) {
  await come(selector);
  steps.push(`write in ${selector}`);
  await page.fill(selector, text);
}

/** @param {string} selector */
async function come(selector) {
  const target = page.locator(selector).first();
  await target.waitFor(PATIENCE);
  const { y = 0, height = 0 } = (await target.boundingBox()) ?? {};
  const innerHeight = await page.evaluate(() => window.innerHeight);
  if (y >= 0 && y + height <= innerHeight) return;
  steps.push("scroll");
  await target.scrollIntoViewIfNeeded();
}

const textOf = async (/** @type {string} */ selector) => (await page.textContent(selector)) ?? "";

const written = () => page.waitForSelector('#status[data-state="done"]', PATIENCE);

for (const [device, options] of /** @type {const} */ ([
  ["a phone", PHONE],
  ["a desk", DESK],
])) {
  describe(`a new visitor with ${device}`, () => {
    beforeEach(async () => {
      context = await browser.newContext(options);
      page = await context.newPage();
      act = options === PHONE ? "tap" : "click";
      steps = [];
      await page.goto(server.url);
    });
    afterEach(() => context.close());

    /** @param {number} most */
    const tookAtMost = (most) => {
      const own = steps.filter((step) => step !== "scroll");
      assert.ok(own.length <= most, own.join(", "));
    };

    it("reads a story and forks it in two steps, or writes one and forks it in four", async () => {
      await written();
      await press("#text .token >> nth=8");
      await press('#token-choices button:not([aria-current="true"])');
      await page.waitForSelector('#status-2[data-state="done"]', PATIENCE);
      assert.match(await textOf("#caption-2"), / instead of /);
      tookAtMost(2);
      steps = [];
      await write("#prompt", "The old king had a secret");
      await press("#run");
      await page.waitForSelector("#run:enabled", PATIENCE);
      assert.equal(await textOf("#echo"), "The old king had a secret");
      await press("#text .token >> nth=3");
      await press('#token-choices button:not([aria-current="true"])');
      await page.waitForSelector("#second:visible", PATIENCE);
      await page.waitForSelector("#run:enabled", PATIENCE);
      assert.equal(await textOf("#echo-2"), "The old king had a secret");
      tookAtMost(4);
    });

    it("chats with a model in two steps", async () => {
      const hub = await playHub(context);
      await written();
      await page.fill("#max-tokens", "8");
      await write("#first-question", "What is a fox?");
      await press("#chat-with");
      await page.waitForSelector("article .note:not(:empty)", PATIENCE);
      assert.equal(await page.locator("article .speaker").last().textContent(), "Ternary Bonsai 1.7B");
      tookAtMost(2);
      await hub.stop();
    });

    it("comes from the chat to a model that chats in four steps", async () => {
      const hub = await playHub(context);
      await press('nav a[href="#chat"]');
      await press("#chat-here");
      await page.waitForSelector('#chat-status[data-state="done"]', PATIENCE);
      await page.fill("#max-tokens", "8");
      await write("#message", "What is a fox?");
      await press("#send");
      await page.waitForSelector("article .note:not(:empty)", PATIENCE);
      assert.equal(await page.locator("article .speaker").last().textContent(), "Ternary Bonsai 1.7B");
      tookAtMost(4);
      await hub.stop();
    });

    it("finds out whether a model of 4 GB runs here in one step, and of one by name in two", async () => {
      await press('nav a[href="#models"]');
      await page.waitForSelector("#models-limit:not(:empty)", PATIENCE);
      assert.match(
        await textOf("#models-limit"),
        /^A model runs here if it needs at most \d\.\d GB of memory/,
      );
      assert.deepEqual(steps, ['press nav a[href="#models"]']);
      await write("#model-filter", "llama3 8b");
      await page.waitForSelector('#models-count:text-matches("^1 of ")', PATIENCE);
      assert.match(await textOf(".model .facts"), /Download of 3\.8 GB · Needs 5\.4 GB of memory/);
      assert.match(await textOf(".model .fit"), /^Cannot run here: it needs 5\.5 GB/);
      tookAtMost(2);
    });
  });
}
