/** Each build in Chromium: it is the one fetched, the one that ran, and gives the same text as Node. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { fetched, INDEX_HTML, PLAIN_MAIN, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  expected = (await storyInNode(project.folder)).result.text;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

/** @param {boolean} isolated @param {object} load */
async function runStory(isolated, load) {
  const server = await startServer({ root: project.folder, isolated });
  const { page, errors, close } = await openPage(browser, `${server.url}/index.html`);
  const story = await page.evaluate(tellStory, { ...STORY, load });
  await close();
  await server.stop();
  expect(errors).toEqual([]);
  return { ...story, code: fetched(server.requests).code };
}

describe("each build", () => {
  it.each([
    { isolated: false, load: {}, build: "relaxed", level: "relaxed", threads: 1 },
    { isolated: false, load: { backend: "simd128" }, build: "simd128", level: "simd128", threads: 1 },
    { isolated: true, load: { threads: 3 }, build: "relaxed-threads", level: "relaxed", threads: 3 },
    {
      isolated: true,
      load: { backend: "simd128", threads: 2 },
      build: "simd128-threads",
      level: "simd128",
      threads: 2,
    },
    { isolated: true, load: { threads: 1 }, build: "relaxed", level: "relaxed", threads: 1 },
    { isolated: false, load: { backend: "scalar" }, build: "relaxed", level: "scalar", threads: 1 },
    {
      isolated: false,
      load: { backend: "wasm", worker: false },
      build: "relaxed",
      level: "relaxed",
      threads: 1,
    },
  ])("runs and reports its name: %j", async ({ isolated, load, build, level, threads }) => {
    const { info, result, code } = await runStory(isolated, load);
    expect(result).toMatchObject({ text: expected, build, level, backend: "cpu" });
    expect(info).toMatchObject({ build, level, threads });
    expect(code).toEqual([`/node_modules/setun/dist/wasm/${build}/setun_bg.wasm`]);
  });

  it("is refused with a list of alternatives where it cannot run", async () => {
    const server = await startServer({ root: project.folder });
    const { page, close } = await openPage(browser, `${server.url}/index.html`);
    const error = await page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      return setun
        .load(undefined, { backend: "avx2" })
        .catch((/** @type {any} */ { code, message }) => ({ code, message }));
    });
    await close();
    await server.stop();
    expect(error).toEqual({
      code: "backend-unavailable",
      message: expect.stringMatching(
        /^backend "avx2" is not available here; available: auto, cpu, wasm, simd128, relaxed, scalar(, webgpu)?$/,
      ),
    });
    expect(fetched(server.requests)).toEqual({ code: [], models: [] });
  });
});
