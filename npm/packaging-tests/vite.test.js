/** A fresh Vite project without any configuration, and smaller ones by other entry points. */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { blocksOf } from "../test-support/documented.js";
import { storyInNode } from "../test-support/node-story.js";
import { BUNDLED_MAIN, fetched, INDEX_HTML, STORY, tellStory } from "../test-support/page.js";
import { bannedTexts, PROCESSORS } from "../test-support/processors.js";
import { makeProject, npm, startVite, writeFiles } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const VITE = "8.3.8";

/** As the package's readme has it. */
const MAIN = `${BUNDLED_MAIN}window.ban = new URL("./ban.js", import.meta.url).href;\n`;

/** Entry points without a part: its file in the output, a request for it, and the words of the refusal. */
const PARTS = {
  cpu: { file: /webgpu/, load: { backend: "webgpu" }, words: 'import "setun" instead' },
  "no-model": { file: /stories/, load: {}, words: "give a source" },
};

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  const smaller = Object.keys(PARTS).flatMap((entry) => [
    [`${entry}/index.html`, INDEX_HTML],
    [`${entry}/main.js`, BUNDLED_MAIN.replace('"setun"', `"setun/${entry}"`)],
  ]);
  const files = { "index.html": INDEX_HTML, "main.js": MAIN, ...PROCESSORS, ...Object.fromEntries(smaller) };
  project = await makeProject(files, { vite: VITE });
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

describe("updates of a module that accepts them", () => {
  const documented = blocksOf("docs/hosts.md").find(({ name }) => name.includes("Updates of modules"))?.code;

  /** A module with a model, in a version. @param {number} version @param {string | undefined} lines */
  const hot = (version, lines) => `import { load } from "setun";
const source = undefined;
${lines}
await model.generate("Once", { maxTokens: 1 }).text();
window.version = ${version};
import.meta.hot.accept();
`;

  it.each([
    ["with the documented lines", documented],
    ["without a line", "const model = await load(source);"],
  ])("leave one worker %s", async (_, lines) => {
    await writeFiles(project.folder, { "hot/index.html": INDEX_HTML, "hot/main.js": hot(0, lines) });
    const server = await startVite(project.folder, []);
    const isReady = () => "version" in window;
    const { page, errors, close } = await openPage(browser, `${server.url}hot/index.html`, isReady);
    await page.evaluate(() => Object.assign(window, { isFirst: true }));
    for (let version = 1; version <= 4; version += 1) {
      await writeFiles(project.folder, { "hot/main.js": hot(version, lines) });
      await page.waitForFunction((version) => /** @type {any} */ (window).version === version, version);
    }
    await expect.poll(() => page.workers().length).toBe(1);
    expect(await page.evaluate(() => "isFirst" in window)).toBe(true);
    expect(errors).toEqual([]);
    await close();
    await server.stop();
  });
});

/** The files of a build and their bytes, without the maps of sources. @param {string} folder */
function built(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => !name.endsWith(".map"),
  );
  const bytes = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  return { names, bytes };
}

describe("a smaller entry point", () => {
  it.each(Object.entries(PARTS))(
    "leaves a part out, and says so: setun/%s",
    async (entry, { file, load, words }) => {
      npm(project.folder, ["exec", "--", "vite", "build", entry, "--base", "./"]);
      const whole = built(join(project.folder, "dist"));
      const part = built(join(project.folder, entry, "dist"));
      expect(whole.names.filter((name) => file.test(name))).not.toEqual([]);
      expect(part.names.filter((name) => file.test(name))).toEqual([]);
      expect(part.bytes).toBeLessThan(whole.bytes - 3_000_000);
      const server = await startServer({ root: project.folder });
      const { page, errors, close } = await openPage(browser, `${server.url}/${entry}/dist/index.html`);
      const refused = await page.evaluate(
        (load) =>
          /** @type {any} */ (globalThis).setun
            .load(undefined, load)
            .catch((/** @type {any} */ error) => error.message),
        load,
      );
      expect(refused).toContain(words);
      const source = "/node_modules/setun/model/stories.safetensors";
      const { result } = await page.evaluate(tellStory, { ...STORY, source, load: { backend: "cpu" } });
      expect(result).toMatchObject({ text: expected, build: "relaxed" });
      expect(errors).toEqual([]);
      await close();
      await server.stop();
    },
  );
});
