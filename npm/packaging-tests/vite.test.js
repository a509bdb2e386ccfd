/** A fresh Vite project without any configuration. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { BUNDLED_MAIN, fetched, INDEX_HTML, STORY, tellStory } from "../test-support/page.js";
import { bannedTexts, PROCESSORS } from "../test-support/processors.js";
import { makeProject, npm, startVite } from "../test-support/project.js";

const VITE = "8.3.8";

/** As the package's readme has it. */
const MAIN = `${BUNDLED_MAIN}window.ban = new URL("./ban.js", import.meta.url).href;\n`;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": MAIN, ...PROCESSORS }, { vite: VITE });
  expected = (await storyInNode(project.folder)).result.text;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

/** @param {string} url */
async function checkPage(url) {
  const { page, requests, errors, close } = await openPage(browser, url);
  const { deltas, result } = await page.evaluate(tellStory, STORY);
  expect(result).toMatchObject({ text: expected, backend: "cpu", level: "relaxed", build: "relaxed" });
  expect(deltas.join("")).toBe(expected);
  expect(fetched(requests)).toEqual({
    code: [expect.stringContaining("setun_bg")],
    models: [expect.anything()],
  });
  const onPage = await page.evaluate(tellStory, { ...STORY, load: { worker: false } });
  expect(onPage.result.text).toBe(expected);
  expect(onPage.info.worker).toBe(false);
  expect(fetched(requests).code).toHaveLength(1);
  const module = await page.evaluate(() => /** @type {any} */ (globalThis).ban);
  const banned = await page.evaluate(bannedTexts, { module, load: {} });
  expect(banned.own).toEqual(banned.option);
  // The grammar module is fetched once, with the first request that needs it.
  const formed = {
    prompt: "The",
    options: { responseFormat: { type: "choice", choices: ["the moon", "a dog"] } },
  };
  for (const load of [{}, { worker: false }]) {
    const { result } = await page.evaluate(tellStory, { ...formed, load });
    expect(["the moon", "a dog"]).toContain(result.text);
  }
  expect(fetched(requests).code).toHaveLength(2);
  expect(errors).toEqual([]);
  await close();
}

describe("a Vite project with default configuration", () => {
  it("runs in development, with a cold cache", async () => {
    const server = await startVite(project.folder, []);
    await checkPage(server.url);
    await server.stop();
  });

  it("runs built, under a base path", async () => {
    npm(project.folder, ["exec", "--", "vite", "build", "--base", "/some/base/"]);
    const server = await startVite(project.folder, ["preview", "--base", "/some/base/"], "/some/base/");
    await checkPage(server.url);
    await server.stop();
  });
});
