/** A new visitor on a phone and on a desk, in the steps that the documents name. */

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { playHub } from "./recommended.mjs";
import {
  answered,
  context,
  DESK,
  PATIENCE,
  PHONE,
  page,
  server,
  textOf,
  useBrowser,
  useEmptyPages,
  written,
} from "./stage.mjs";

/** How the visitor presses. @type {"tap" | "click"} */
let act;
/** What the visitor did. @type {string[]} */
let steps;

useBrowser({ isFirstVisit: true });

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

/** Forks a story at a token, by the second of its choices. @param {number} token */
async function fork(token) {
  await press(`#text .token >> nth=${token}`);
  await press('#token-choices button:not([aria-current="true"])');
  await page.waitForSelector("#second:visible", PATIENCE);
  await page.waitForSelector("#run:enabled", PATIENCE);
}

/** Asks in a field and sends; the answer is that of the recommended model. @param {string} field @param {string} button */
async function ask(field, button) {
  await page.fill("#max-tokens", "8");
  await write(field, "What is a fox?");
  await press(button);
  assert.equal(await answered(), "Ternary Bonsai 1.7B");
}

for (const [device, options] of /** @type {const} */ ([
  ["a phone", PHONE],
  ["a desk", DESK],
])) {
  describe(`a new visitor with ${device}`, () => {
    useEmptyPages(options);
    beforeEach(async () => {
      act = options === PHONE ? "tap" : "click";
      steps = [];
      await page.goto(server.url);
    });
    /** @param {number} most */
    const tookAtMost = (most) => {
      const own = steps.filter((step) => step !== "scroll");
      assert.ok(own.length <= most, own.join(", "));
    };

    it("reads a story and forks it in two steps, or writes one and forks it in four", async () => {
      await written();
      await fork(8);
      assert.match(await textOf("#caption-2"), / instead of /);
      tookAtMost(2);
      steps = [];
      await write("#prompt", "The old king had a secret");
      await press("#run");
      await page.waitForSelector("#run:enabled", PATIENCE);
      assert.equal(await textOf("#echo"), "The old king had a secret");
      await fork(3);
      assert.equal(await textOf("#echo-2"), "The old king had a secret");
      tookAtMost(4);
    });

    it("chats with a model in two steps", async () => {
      const hub = await playHub(context);
      await written();
      await ask("#first-question", "#chat-with");
      tookAtMost(2);
      await hub.stop();
    });

    it("comes from the chat to a model that chats in four steps", async () => {
      const hub = await playHub(context);
      await press('nav a[href="#chat"]');
      await press("#chat-here");
      await page.waitForSelector('#chat-status[data-state="done"]', PATIENCE);
      await ask("#message", "#send");
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
