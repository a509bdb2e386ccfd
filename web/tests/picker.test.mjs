/** Models on the built page: looked up, downloaded, paused, continued, deleted, chosen and remembered. */

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { startFaultyServer } from "../../npm/test-support/faulty-server.js";
import { launch } from "../browser.mjs";
import { modelFiles, modelFolder } from "./model-folder.mjs";
import { PATIENCE, startPreview } from "./preview.mjs";

const WEIGHTS = "/tiny/model.safetensors";

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").BrowserContext} */
let context;
/** @type {import("playwright-core").Page} */
let page;
/** @type {Awaited<ReturnType<typeof startPreview>>} */
let server;
/** @type {import("../../npm/test-support/faulty-server.js").FaultyServer} */
let models;

before(async () => {
  browser = await launch();
  server = await startPreview({});
});
after(async () => {
  await browser.close();
  await server.stop();
});
beforeEach(async () => {
  models = await startFaultyServer({ cors: { exposes: true, allows: "range" } });
  for (const [name, bytes] of Object.entries(modelFiles())) models.put(`/tiny/${name}`, bytes);
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(`${server.url}#models`);
  await page.selectOption("#backend", "simd128");
  await page.fill("#threads", "1");
  await page.waitForSelector(".model", PATIENCE);
});
afterEach(async () => {
  await context.close();
  await models.stop();
});

/** The card of the model on the server. */
const card = () => page.locator(".model", { hasText: "/tiny/" });

/** Looks the model up. */
async function lookUp() {
  await page.fill("#model-source", models.at("/tiny/"));
  await page.press("#model-source", "Enter");
  await card().waitFor(PATIENCE);
}

/** @param {string} state */
const status = (state) => page.waitForSelector(`#models-status[data-state="${state}"]`, PATIENCE);

/** Presses a button of the card. @param {RegExp} name */
const press = (name) => card().getByRole("button", { name }).click();

describe("the list of models", () => {
  it("has the built-in model, and tells its size and memory", async () => {
    assert.deepEqual(await page.locator(".model h3").allTextContents(), ["Story model, built in"]);
    await page.getByRole("button", { name: /^Size and memory/ }).click();
    await status("done");
    assert.match(
      (await page.textContent(".model .facts")) ?? "",
      /Needs \d+\.\d MB of memory · Context of \d+ tokens/,
    );
  });

  it("looks up a model by its URL, or says what is wrong", async () => {
    await lookUp();
    assert.match(
      (await card().locator(".facts").textContent()) ?? "",
      /^Download of \d\.\d MB · Needs \d+\.\d MB of memory/,
    );
    await page.fill("#model-source", models.at("/nothing/"));
    await page.press("#model-source", "Enter");
    await status("failed");
    assert.match((await page.textContent("#models-status")) ?? "", /\(not-found\)$/);
  });

  it("downloads, keeps, remembers and deletes a model", async () => {
    await lookUp();
    await press(/^Download and use/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.match((await page.textContent("#models-status")) ?? "", /is loaded: cpu, simd128\.$/);
    assert.match((await card().textContent()) ?? "", /Stored here, \d\.\d MB.*In use/);
    models.takeRequests();
    await page.reload();
    await card().waitFor(PATIENCE);
    assert.equal(await page.inputValue("#address"), models.at("/tiny/"));
    await press(/^Use/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.equal(models.starts(WEIGHTS).length, 0);
    page.once("dialog", (dialog) => void dialog.accept());
    await press(/^Delete/);
    await page.waitForSelector('#models-status:text-matches("is deleted")', PATIENCE);
    assert.doesNotMatch((await card().textContent()) ?? "", /Stored/);
  });

  it("pauses a download, keeps its bytes, and continues after a reload", async () => {
    models.rule(WEIGHTS, 4, { stall: 400_000 });
    await lookUp();
    await press(/^Download and use/);
    await page.waitForSelector('.progress-words:text-matches("Downloading · (0\\\\.[1-9]|[1-9])")', PATIENCE);
    await press(/^Pause/);
    await page.waitForSelector('#models-status:text-matches("^Paused")', PATIENCE);
    await card()
      .filter({ hasText: /Partly stored, \d\.\d MB/ })
      .waitFor(PATIENCE);
    models.clearRules();
    models.takeRequests();
    await page.reload();
    await card().waitFor(PATIENCE);
    await press(/^Continue the download/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    const whole = modelFiles()["model.safetensors"]?.length ?? 0;
    assert.ok(models.sent < whole, `${models.sent} of ${whole} bytes were sent again`);
    assert.ok(models.starts(WEIGHTS).some((start) => start !== undefined && start > 0));
  });

  it("takes a chosen folder, and the chat and the story use it", async () => {
    const folder = await modelFolder();
    await page.setInputFiles("#folder", folder.path);
    const name = folder.path.split("/").at(-1) ?? "";
    await page.locator(".model", { hasText: name }).getByRole("button", { name: /^Use/ }).click();
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    await folder.remove();
    assert.equal(await page.textContent("#model-name"), name);
    await page.click('nav a[href="#chat"]');
    await page.fill("#max-tokens", "8");
    await page.fill("#message", "Once");
    await page.keyboard.press("Enter");
    await page.waitForSelector("article .note:not(:empty)", PATIENCE);
    assert.equal(await page.locator("article .speaker").nth(1).textContent(), name);
  });
});
