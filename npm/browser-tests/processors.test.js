/** Custom logits processors in workers of Chromium and Firefox. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, launchFirefox } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { bannedTexts, PROCESSORS } from "../test-support/processors.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN, ...PROCESSORS });
});
afterAll(() => project?.remove());

describe.each([
  { name: "Chromium", launch: launchChromium },
  { name: "Firefox", launch: launchFirefox },
])("a processor in $name", ({ launch }) => {
  /** @type {any} */
  let browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  /** Runs `work` in a page. @param {object} headers @param {(page: any, url: string) => Promise<void>} work */
  async function onPage(headers, work) {
    const server = await startServer({ root: project.folder, ...headers });
    const page = await browser.newPage();
    await page.goto(`${server.url}/index.html`);
    await page.waitForFunction(() => "setun" in window);
    await work(page, server.url);
    await page.close();
    await server.stop();
  }

  it.each([
    { headers: {}, load: {} },
    { headers: { isolated: true, strict: true }, load: { threads: 2 } },
    { headers: { strict: true }, load: { worker: false } },
  ])("is a module relative to the page, with the effect of the option: %j", ({ headers, load }) =>
    onPage(headers, async (page) => {
      const { own, option } = await page.evaluate(bannedTexts, { module: "./ban.js", load });
      expect(own).toEqual(option);
      expect(own).toHaveLength(20);
    }),
  );

  it("may be a blob or data URL of the page", () =>
    onPage({}, async (page) => {
      const module = await page.evaluate((/** @type {string} */ code) => {
        return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      }, PROCESSORS["ban.js"]);
      const { own, option } = await page.evaluate(bannedTexts, { module, load: {} });
      expect(own).toEqual(option);
    }));

  it("that cannot be sent, loaded or run is an error, and the model stays usable", () =>
    onPage({}, async (page, url) => {
      const { errors, text, after } = await page.evaluate(async () => {
        const { setun } = /** @type {any} */ (globalThis);
        const model = await setun.load();
        const options = { temperature: 0, maxTokens: 10 };
        const text = await model.generate("Once", options).text();
        const errors = [];
        const given = [
          "missing.js",
          "nothing.js",
          { module: "late.js", options: { tokens: 6 } },
          (/** @type {Float32Array} */ logits) => logits.fill(0),
        ];
        for (const processor of given) {
          const failed = async () =>
            model.generate("Once", { ...options, logitsProcessors: [processor] }).text();
          const { name, code, message, cause } = await failed().catch((error) => error);
          errors.push({ name, code, message, cause: cause instanceof Error });
        }
        return { errors, text, after: await model.generate("Once", options).text() };
      });
      expect(errors).toMatchObject([
        {
          message: expect.stringContaining(`logitsProcessors[0]: ${url}/missing.js cannot be loaded: `),
          cause: true,
        },
        {
          message: `logitsProcessors[0]: ${url}/nothing.js has undefined as its default export, expected a function`,
        },
        {
          message: `a logits processor failed: ${url}/late.js has thrown RangeError: that is enough`,
          cause: true,
        },
        {
          message: expect.stringMatching(
            /^logitsProcessors\[0\]: a function cannot be sent to the model's worker/,
          ),
        },
      ]);
      for (const { name, code } of errors) expect([name, code]).toEqual(["SetunError", "bad-option"]);
      expect(after).toBe(text);
    }));
});
