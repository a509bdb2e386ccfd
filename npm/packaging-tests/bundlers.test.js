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
  "@ai-sdk/provider": "4.0.38",
  react: "19.3.1",
};

/** Entry points and adapters by their names. */
const ENTRIES = `import * as aiSdk from "setun/ai-sdk";
import * as cpu from "setun/cpu";
import * as isolation from "setun/isolate";
import * as noModel from "setun/no-model";
import * as openai from "setun/openai";
import * as promptApi from "setun/prompt-api";
import * as react from "setun/react";
window.setun = { ...cpu, aiSdk, isolation, noModel, openai, promptApi, react };
`;

/** Each by its command line, which writes its folder's `main.js`. */
const COMMANDS = {
  esbuild: "esbuild main.js --bundle --format=esm --outdir=esbuild --log-level=error",
  rollup: "rollup main.js --format es --dir rollup --plugin node-resolve --silent",
  // Parts of its workers do not find each other, whatever they are.
  parcel: "parcel build main.js --dist-dir parcel --no-cache --log-level error",
  bun: "bun build main.js --outdir bun --target browser",
};

/** Parcel's, of all entry points. Its resolver reads no `exports`. */
const ENTRIES_COMMAND = "parcel build entries.js --dist-dir entries --no-cache --log-level error";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string} */
let expected;

beforeAll(async () => {
  const pages = Object.keys(COMMANDS).map((name) => [`${name}.html`, bundledHtml(name)]);
  const entries = {
    "entries.js": ENTRIES,
    "entries.html": bundledHtml("entries").replace("main.js", "entries.js"),
  };
  project = await makeProject(
    { ...Object.fromEntries(pages), "main.js": BUNDLED_MAIN, ...entries },
    BUNDLERS,
  );
  for (const command of [...Object.values(COMMANDS), ENTRIES_COMMAND])
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
    // Parcel leaves out the workers alone.
    const onPage = name === "parcel" ? refused : await page.evaluate(codeOfLoad, { worker: false });
    expect(onPage).toEqual(["network", expect.stringContaining("pass assetsUrl")]);
    const assetsUrl = "/node_modules/setun";
    for (const load of [{ assetsUrl }, { assetsUrl, worker: false }]) {
      const { result } = await page.evaluate(tellStory, { ...STORY, load });
      expect(result.text).toBe(expected);
    }
    await close();
    await server.stop();
  });
});

it("Parcel finds each entry point by its name, without settings", async () => {
  const server = await startServer({ root: project.folder });
  const { page, errors, close } = await openPage(browser, `${server.url}/entries.html`);
  const { text, names } = await page.evaluate(async ({ prompt, options: { maxTokens, ...options } }) => {
    const { load, openai, ...others } = /** @type {any} */ (globalThis).setun;
    const model = await load(undefined, { assetsUrl: "/node_modules/setun" });
    const request = { ...options, prompt, max_tokens: maxTokens };
    const { choices } = await openai.createClient(model).completions.create(request);
    await model.dispose();
    const { aiSdk, isolation, noModel, promptApi, react } = others;
    const used = [aiSdk.createSetun, isolation.isolate, noModel.load, promptApi.install, react.useModel];
    return { text: choices[0].text, names: used.map((each) => typeof each) };
  }, STORY);
  expect(text).toBe(expected);
  expect(names).toEqual(names.map(() => "function"));
  expect(errors).toEqual([]);
  await close();
  await server.stop();
});
