/** A session saved to the origin private file system and restored in another page. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN, STORY } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const { prompt } = STORY;
/** Long enough that the cache has whole blocks of it. */
const OPTIONS = { maxTokens: 80, temperature: 0 };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {import("playwright-core").Page} */
let page;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  server = await startServer({ root: project.folder });
  browser = await launchChromium();
  ({ page } = await openPage(browser, `${server.url}/index.html`));
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

it("continues in another page with the same tokens", async () => {
  const story = { prompt, options: OPTIONS };
  const saved = await page.evaluate(async ({ prompt, options }) => {
    const model = await /** @type {any} */ (globalThis).setun.load();
    const session = model.session();
    await session.push(prompt);
    await session.push((await session.generate(options).result).tokens);
    const file = await (await navigator.storage.getDirectory()).getFileHandle("story.session", {
      create: true,
    });
    await new Blob([await session.save()]).stream().pipeTo(await file.createWritable());
    return { known: session.tokens.length, tokens: (await session.generate(options).result).tokens };
  }, story);
  await page.goto(`${server.url}/index.html`);
  await page.waitForFunction(() => "setun" in globalThis);
  const restored = await page.evaluate(async ({ options }) => {
    const model = await /** @type {any} */ (globalThis).setun.load();
    const file = await (await navigator.storage.getDirectory()).getFileHandle("story.session");
    const session = await model.restore(new Uint8Array(await (await file.getFile()).arrayBuffer()));
    const { tokens } = await session.generate(options).result;
    return { known: session.tokens.length, tokens, computed: (await model.metrics()).promptRows };
  }, story);
  expect(restored).toMatchObject(saved);
  expect(saved.known).toBeGreaterThan(80);
  expect(restored.computed).toBeLessThan(saved.known);
});
