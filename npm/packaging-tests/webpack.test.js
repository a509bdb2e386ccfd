/** webpack without configuration. */

import { execSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { BUNDLED_MAIN, bundledHtml, fetched, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

const WEBPACK = `import webpack from "webpack";
const options = { mode: "production", entry: "./main.js", output: { path: import.meta.dirname + "/webpack" } };
const stats = await new Promise((resolve, reject) =>
  webpack(options, (error, stats) => (error ? reject(error) : resolve(stats))));
const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
const others = warnings.filter(({ message }) => !/size limit/.test(message));
for (const { message } of [...errors, ...others]) console.error(message);
process.exit(errors.length + others.length);
`;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  const files = { "webpack.html": bundledHtml("webpack"), "main.js": BUNDLED_MAIN, "webpack.mjs": WEBPACK };
  project = await makeProject(files, { webpack: "5.112.2" });
  execSync("node webpack.mjs", { cwd: project.folder, stdio: ["ignore", "ignore", "inherit"] });
  expected = (await storyInNode(project.folder)).result.text;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

describe("webpack", () => {
  it.each(IS_FULL ? [true, false] : [true])("runs one build, isolated: %s", async (isolated) => {
    const server = await startServer({ root: project.folder, isolated });
    const { page, requests, errors, close } = await openPage(browser, `${server.url}/webpack.html`);
    const { result } = await page.evaluate(tellStory, STORY);
    expect(result).toMatchObject({ text: expected, build: isolated ? "relaxed-threads" : "relaxed" });
    expect(fetched(requests).code).toHaveLength(1);
    // Of the page, of the worker, and what both share.
    const scripts = new Set(requests.filter((address) => address.endsWith(".js")));
    expect(scripts.size).toBe(3);
    expect(errors).toEqual([]);
    await close();
    await server.stop();
  });

  it("runs from another origin with assetsUrl", async () => {
    const files = await startServer({ root: project.folder, shared: true });
    const page = bundledHtml("webpack").replace("./webpack", `${files.url}/webpack`);
    const send = (/** @type {any} */ _, /** @type {any} */ response) =>
      response.writeHead(200, { "content-type": "text/html" }).end(page);
    const server = await startServer({
      root: project.folder,
      isolated: true,
      answers: { "/index.html": send },
    });
    const opened = await openPage(browser, `${server.url}/index.html`);
    /** @type {string[]} */
    const warned = [];
    opened.page.on("console", (message) => message.type() === "warning" && warned.push(message.text()));
    const onPage = await opened.page.evaluate(tellStory, STORY);
    expect([onPage.result.text, onPage.info.worker]).toEqual([expected, false]);
    expect(warned).toEqual([expect.stringContaining("pass assetsUrl")]);
    const load = { assetsUrl: `${files.url}/node_modules/setun` };
    const { result } = await opened.page.evaluate(tellStory, { ...STORY, load });
    expect(result).toMatchObject({ text: expected, build: "relaxed-threads" });
    expect(opened.errors).toEqual([]);
    await opened.close();
    await server.stop();
    await files.stop();
  });

  it("runs on the page's thread", async () => {
    const server = await startServer({ root: project.folder });
    const { page, close } = await openPage(browser, `${server.url}/webpack.html`);
    const format = { type: "choice", choices: ["the moon", "a dog"] };
    const { result } = await page.evaluate(tellStory, { ...STORY, load: { worker: false } });
    expect(result.text).toBe(expected);
    const formed = { prompt: "The", options: { responseFormat: format }, load: { worker: false } };
    expect(format.choices).toContain((await page.evaluate(tellStory, formed)).result.text);
    await close();
    await server.stop();
  });
});
