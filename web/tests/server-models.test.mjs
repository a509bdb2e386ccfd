/** The page of a server that has several models and a key. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { launch } from "../browser.mjs";
import { PATIENCE, WEB } from "./preview.mjs";
import { startServe } from "./serve.mjs";

const KEY = "a-key-of-this-test";
const MODELS = {
  "real-tinystories-1m": join(WEB, "../tests/fixtures/golden/real-tinystories-1m"),
  "stories.safetensors": join(WEB, "../crates/setun/embedded/stories.safetensors"),
};

/** @type {Awaited<ReturnType<typeof startServe>>} */
let server;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;

before(async () => {
  const models = Object.values(MODELS).flatMap((path) => ["--model", path]);
  server = await startServe(models, { SETUN_API_KEYS: KEY });
  browser = await launch();
  page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE.timeout);
  await page.goto(`${server.url}/ui`);
});
after(async () => {
  await browser?.close();
  server?.stop();
});

/** The answer to a message, with a seed of its own for the text to be the same. @param {string} text */
async function answerTo(text) {
  const before = await page.locator("article").count();
  await page.fill("#max-tokens", "12");
  await page.fill("#seed", "5");
  await page.fill("#message", text);
  await page.keyboard.press("Enter");
  await page
    .locator("article")
    .nth(before + 1)
    .waitFor();
  await page.waitForSelector('#chat-status[data-state="done"]');
  return page
    .locator("article .body")
    .nth(before + 1)
    .textContent();
}

it("asks for a key, shows none, and keeps it while the tab is open", async () => {
  await page.waitForSelector("#access:visible");
  assert.match((await page.textContent("#page-status")) ?? "", /needs a key/);
  assert.equal(await page.locator("#model option").count(), 0);
  await page.fill("#key", "another");
  await page.press("#key", "Tab");
  await page.waitForSelector("#page-status:visible");
  await page.fill("#key", KEY);
  await page.press("#key", "Tab");
  await page.waitForSelector("#page-status", { state: "hidden" });
  assert.equal(await page.getAttribute("#key", "type"), "password");
  assert.ok(!(await page.content()).includes(KEY));
  await page.reload();
  await page.waitForSelector("#model option", { state: "attached" });
  assert.equal(await page.isVisible("#page-status"), false);
  const visitor = await (await browser.newContext()).newPage();
  await visitor.goto(`${server.url}/ui`);
  await visitor.waitForSelector("#access:visible");
});

it("answers with the model that is chosen, and counts both", async () => {
  const names = await page.locator("#model option").allTextContents();
  assert.deepEqual(names, Object.keys(MODELS));
  await page.waitForSelector("#messages > *");
  const answers = [];
  for (const name of names) {
    await page.selectOption("#model", name);
    answers.push(await answerTo("Once upon a time"));
    await page.click("#new-thread");
  }
  assert.notEqual(answers[0], answers[1]);
  const headers = { authorization: `Bearer ${KEY}` };
  const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text();
  for (const name of names)
    assert.match(metrics, new RegExp(`setun_generation_tokens_total\\{model_name="${name}"\\} 12\n`));
  await page.click('nav a[href="#server"]');
  await page.waitForSelector('[data-figure="rate"] dd:has-text("24 tokens in total")');
});
