/** Bundlers that are told of `assetsUrl`, and run with it. */

import { execSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { BUNDLED_MAIN, bundledHtml, codeOfLoad, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const BUNDLERS = {
  esbuild: "0.28.2",
  rollup: "4.68.7",
  "@rollup/plugin-node-resolve": "16.0.3",
  parcel: "2.16.4",
  bun: "1.4.5",
};

/** Each by its command line, which writes its folder's `main.js`. */
const COMMANDS = {
  esbuild: "esbuild main.js --bundle --format=esm --outdir=esbuild --log-level=error",
  rollup: "rollup main.js --format es --dir rollup --plugin node-resolve --silent",
  // Parts of its workers do not find each other, whatever they are.
  parcel: "parcel build main.js --dist-dir parcel --no-cache --log-level error",
  bun: "bun build main.js --outdir bun --target browser",
};

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  const pages = Object.keys(COMMANDS).map((name) => [`${name}.html`, bundledHtml(name)]);
  project = await makeProject({ ...Object.fromEntries(pages), "main.js": BUNDLED_MAIN }, BUNDLERS);
  for (const command of Object.values(COMMANDS))
    execSync(`npx ${command}`, { cwd: project.folder, stdio: ["ignore", "ignore", "inherit"] });
  expected = (await storyInNode(project.folder)).result.text;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

describe.each(Object.keys(COMMANDS))("%s", (name) => {
  it("is told of assetsUrl, and runs with it", async () => {
    const server = await startServer({ root: project.folder });
    const { page, close } = await openPage(browser, `${server.url}/${name}.html`);
    const refused = await page.evaluate(codeOfLoad);
    expect(refused).toEqual(["network", expect.stringContaining("pass assetsUrl")]);
    const assetsUrl = "/node_modules/setun";
    for (const load of [{ assetsUrl }, { assetsUrl, worker: false }]) {
      const { result } = await page.evaluate(tellStory, { ...STORY, load });
      expect(result.text).toBe(expected);
    }
    await close();
    await server.stop();
  });
});
