/** A page without shared memory, whose workers share the weights of a large model: the tokens of one worker alone. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openInFirefox, openPage } from "../test-support/browsers.js";
import { embeddedModel, largeModel } from "../test-support/checkpoint.js";
import { storyInNode } from "../test-support/node-story.js";
import { INDEX_HTML, PLAIN_MAIN, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const MODEL = "wide.safetensors";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof tellStory>>} */
let expected;

const address = () => `${server.url}/index.html`;
const source = () => `${server.url}/${MODEL}`;
const open = () => openPage(browser, address());

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  const file = join(project.folder, MODEL);
  const { folder } = embeddedModel(project.folder);
  await writeFile(file, largeModel(folder, { layers: 1, isVaried: true, isWide: true }));
  expected = await storyInNode(project.folder, { ...STORY, source: file });
  server = await startServer({ root: project.folder });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

describe("workers that share weights", () => {
  it.each([
    { backend: "relaxed", threads: 2 },
    { backend: "simd128", threads: 3 },
    { backend: "relaxed", threads: 8 },
  ])("tell what one tells, and end with the model: %j", async (load) => {
    const { page, errors, close } = await open();
    const { info, tokens, result } = await page.evaluate(tellStory, { ...STORY, source: source(), load });
    await expect.poll(() => page.workers().length).toBe(0);
    await close();
    expect(info).toMatchObject({ threads: load.threads, build: load.backend });
    expect(new Set(tokens.map(({ token }) => token)).size).toBeGreaterThan(10);
    expect({ tokens, text: result.text }).toEqual({ tokens: expected.tokens, text: expected.result.text });
    expect(errors).toEqual([]);
  });

  it("run in Firefox", async () => {
    const firefox = await openInFirefox(address());
    const story = { ...STORY, source: source(), load: { threads: 2 } };
    const { info, tokens } = await firefox.page.evaluate(tellStory, story);
    await firefox.close();
    expect(info.threads).toBe(2);
    expect(tokens).toEqual(expected.tokens);
  });

  it("are free for the next text after one that was aborted", async () => {
    const { page, close } = await open();
    await page.evaluate(loadShared, source());
    const told = await page.evaluate(async ({ prompt, options }) => {
      const { model } = /** @type {any} */ (globalThis);
      const texts = [];
      for (const milliseconds of [5, 40, 90]) {
        const controller = new AbortController();
        const aborted = model.generate(prompt.repeat(40), { signal: controller.signal }).text();
        setTimeout(() => controller.abort(), milliseconds);
        await aborted.catch(() => undefined);
        texts.push(await model.generate(prompt, options).text());
      }
      return texts;
    }, STORY);
    await close();
    expect(told).toEqual(Array(3).fill(expected.result.text));
  });

  it("may end: texts continue in one worker", async () => {
    const { page, close } = await open();
    await page.evaluate(loadShared, source());
    const text = page.evaluate(async ({ prompt, options }) => {
      const all = /** @type {any} */ (globalThis);
      let text = "";
      for await (const delta of all.model.generate(prompt, options)) {
        text += delta.text;
        all.isRunning = true;
      }
      return text;
    }, STORY);
    await page.waitForFunction(() => "isRunning" in globalThis);
    await page
      .workers()
      .at(-1)
      ?.evaluate(() => globalThis.close());
    expect(await text).toBe(expected.result.text);
    await close();
  });
});

/** Runs in the page. @param {string} source */
async function loadShared(source) {
  const all = /** @type {any} */ (globalThis);
  all.model = await all.setun.load(source, { threads: 3 });
  if (all.model.info.threads !== 3) throw new Error(`runs in ${all.model.info.threads} workers`);
}
