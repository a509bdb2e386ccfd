/** The built page in a browser: keyboard, models, narrow screens, with and without isolation, without a network. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { launch } from "../browser.mjs";
import { PATIENCE, startPreview, WEB } from "./preview.mjs";
import { ENDLESS, setControls } from "./stage.mjs";

const MODEL = join(WEB, "node_modules/setun/model/stories.safetensors");

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;
/** @type {Awaited<ReturnType<typeof startPreview>>} */
let server;

before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** @param {string} state */
const reached = (state) => page.waitForSelector(`#status[data-state="${state}"]`, PATIENCE);

/** Runs with the controls as they are. */
async function runToEnd() {
  await page.click("#run");
  await page.waitForSelector("#run:enabled", PATIENCE);
  assert.equal(
    await page.getAttribute("#status", "data-state"),
    "done",
    (await page.textContent("#status")) ?? "",
  );
  return { text: (await page.textContent("#text")) ?? "", tokens: Number(await page.textContent("#tokens")) };
}

it("has at most 120 kB of its own before a view is opened", async () => {
  const folder = join(WEB, "dist");
  const html = await readFile(join(folder, "index.html"), "utf8");
  const names = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(
    ([, name = ""]) => name,
  );
  assert.ok(names.some((name) => name.endsWith(".js")) && names.some((name) => name.endsWith(".css")));
  const files = await Promise.all(names.map((name) => readFile(join(folder, name))));
  const bytes = files.reduce((sum, file) => sum + brotliCompressSync(file).length, 0);
  assert.ok(bytes <= 120_000, `${bytes} bytes: ${names.join(", ")}`);
});

describe("the page, cross-origin isolated", () => {
  before(async () => {
    server = await startPreview({});
  });
  after(() => server.stop());
  beforeEach(async () => {
    page = await browser.newPage({ viewport: { width: 1100, height: 800 } });
    await page.goto(server.url);
    await page.fill("#max-tokens", "30");
    await page.fill("#seed", "3");
  });
  afterEach(() => page.close());

  it("generates a text, with figures and a chart", async () => {
    const { text, tokens } = await runToEnd();
    assert.ok(tokens > 0 && tokens <= 30 && text.length > 0);
    assert.equal(await page.textContent("#backend-used"), "cpu · relaxed");
    assert.match((await page.textContent('#devices [data-verdict="chosen"]')) ?? "", /^cpu · relaxed runs: /);
    assert.equal(await page.isVisible('#devices [data-device="webgpu"]'), false); // not for the built-in model
    assert.equal(await page.textContent("#seed-used"), "3");
    assert.equal(JSON.parse((await page.getAttribute("#chart", "data-milliseconds")) ?? "").length, tokens);
    assert.match((await page.getAttribute("#chart", "aria-label")) ?? "", /median .*ms/);
  });

  it("repeats a text with its seed, and applies the sampling controls", async () => {
    await page.fill("#temperature", "0.9");
    const { text } = await runToEnd();
    assert.equal((await runToEnd()).text, text);
    await page.fill("#max-tokens", "5");
    assert.ok(text.startsWith((await runToEnd()).text));
  });

  it("works by keyboard only", async () => {
    await setControls(page, ENDLESS);
    await page.focus("#prompt");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(
      () => Number(document.querySelector("#tokens")?.textContent) > 0,
      null,
      PATIENCE,
    );
    await page.keyboard.press("Escape");
    await reached("done");
    assert.match((await page.textContent("#status")) ?? "", /^Stopped: \d+ tokens/);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "prompt");
  });

  it("changes and shows the backend", async () => {
    const { text } = await runToEnd();
    await page.selectOption("#backend", "simd128");
    await page.fill("#threads", "1");
    assert.equal((await runToEnd()).text, text);
    assert.equal(await page.textContent("#build-used"), "simd128");
  });

  it("moves between the CPU and the GPU at once", async () => {
    await page.fill("#prompt", "Once");
    await page.fill("#max-tokens", "3");
    await page.fill("#temperature", "0");
    const { text } = await runToEnd();
    await page.waitForSelector('#gpu[data-gpu="ready"]', { state: "attached", ...PATIENCE });
    await page.selectOption("#backend", "webgpu");
    await page.waitForSelector('#backend-used[data-backend="webgpu"]', PATIENCE);
    await reached("idle");
    assert.match((await page.textContent("#status")) ?? "", /^The next text runs on webgpu · ./);
    assert.equal((await runToEnd()).text, text);
    assert.equal(await page.textContent("#build-used"), "webgpu");
    assert.match(
      (await page.textContent("#devices")) ?? "",
      /^webgpu · .* runs: it was requested by name\.$/,
    );
    await page.selectOption("#backend", "auto");
    await page.waitForSelector('#backend-used[data-backend="cpu"]', PATIENCE);
    assert.equal((await runToEnd()).text, text);
  });

  it("changes the backend during a generation", async () => {
    await setControls(page, ENDLESS);
    await page.click("#run");
    await page.waitForFunction(
      () => Number(document.querySelector("#tokens")?.textContent) > 0,
      null,
      PATIENCE,
    );
    await page.selectOption("#backend", "simd128");
    await page.waitForSelector('#backend-used[data-level="simd128"]', PATIENCE);
    await reached("idle");
    assert.ok(((await page.textContent("#text")) ?? "").length > 0);
  });

  it("loads a URL, a chosen folder, and the built-in model again", async () => {
    const { text } = await runToEnd();
    const folder = await mkdtemp(join(tmpdir(), "setun-model-"));
    await writeFile(join(folder, "tiny.safetensors"), await readFile(MODEL));
    await page.setInputFiles("#folder", folder);
    assert.equal((await runToEnd()).text, text);
    await rm(folder, { recursive: true });
    await page.click("#built-in");
    assert.equal(await page.textContent("#model-name"), "Story model, built in");
    await page.fill("#address", new URL("nothing/here/", server.url).href);
    await page.click("#run");
    await reached("failed");
    assert.match((await page.textContent("#status")) ?? "", /config\.json.*\(not-found\)/);
    await page.fill("#address", "");
    assert.equal((await runToEnd()).text, text);
  });

  for (const width of [360, 768, 1100]) {
    it(`needs no sideways scrolling at ${width} pixels`, async () => {
      await page.setViewportSize({ width, height: 800 });
      await page.fill("#seed", "18446744073709551615");
      await runToEnd();
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(excess <= 0, `${excess} pixels too wide`);
    });
  }
});

describe("the page, without WebGPU", () => {
  before(async () => {
    server = await startPreview({});
  });
  after(() => server.stop());

  for (const [name, script, words] of [
    ["no API", "Reflect.deleteProperty(Navigator.prototype, 'gpu')", /this browser has no WebGPU/],
    ["no adapter", "GPU.prototype.requestAdapter = async () => null", /the browser finds none/],
  ]) {
    it(`says so, and does not offer it: ${name}`, async () => {
      const context = await browser.newContext();
      await context.addInitScript(String(script));
      page = await context.newPage();
      await page.goto(server.url);
      await page.waitForSelector('#gpu[data-gpu="absent"]', PATIENCE);
      assert.match((await page.textContent("#gpu")) ?? "", /** @type {RegExp} */ (words));
      assert.equal(await page.isDisabled('#backend option[value="webgpu"]'), true);
      await context.close();
    });
  }
});

describe("the page, not isolated", () => {
  beforeEach(async () => {
    server = await startPreview({ SETUN_ISOLATED: "0" });
    // The service worker would isolate it.
    page = await browser.newPage({ serviceWorkers: "block" });
    await page.goto(server.url);
    await page.fill("#max-tokens", "30");
  });
  afterEach(async () => {
    await page.close();
    await server.stop();
  });

  it("runs on one thread", async () => {
    await runToEnd();
    assert.equal(await page.textContent("#build-used"), "relaxed");
    assert.equal(await page.textContent("#threads-used"), "1");
  });

  it("needs no server once the model is loaded", async () => {
    await runToEnd();
    await server.stop();
    assert.ok((await runToEnd()).tokens > 0);
  });
});
