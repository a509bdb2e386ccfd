/** A page without a bundler, under a strict Content-Security-Policy, in Chromium and Firefox. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openInFirefox, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { fetched, INDEX_HTML, PLAIN_MAIN, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {string} */
let expected;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  expected = (await storyInNode(project.folder)).result.text;
});
afterAll(() => project?.remove());

const HEADERS = [
  { isolated: true, strict: true },
  { isolated: false, strict: true },
  { isolated: false, strict: false },
];

describe.each(IS_FULL ? HEADERS : HEADERS.slice(0, 1))("a page without bundler: %j", (headers) => {
  it("runs in Chromium, and fetches one build", async () => {
    const server = await startServer({ root: project.folder, ...headers });
    const browser = await launchChromium();
    const { page, errors } = await openPage(browser, `${server.url}/index.html`);
    const { result } = await page.evaluate(tellStory, STORY);
    await browser.close();
    await server.stop();
    expect(result).toMatchObject({ text: expected, level: "relaxed" });
    expect(fetched(server.requests).code).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  it("runs in Firefox, and fetches one build", async () => {
    const server = await startServer({ root: project.folder, ...headers });
    const firefox = await openInFirefox(`${server.url}/index.html`);
    const { result } = await firefox.page.evaluate(tellStory, STORY);
    await firefox.close();
    await server.stop();
    expect(result).toMatchObject({ text: expected, backend: "cpu" });
    const threads = headers.isolated ? "-threads" : "";
    expect([`simd128${threads}`, `relaxed${threads}`]).toContain(result.build);
    expect(fetched(server.requests).code).toHaveLength(1);
  });
});

it("runs with threads where pages alone have the headers of isolation", async () => {
  const server = await startServer({ root: project.folder, isolated: "pages" });
  const browser = await launchChromium();
  const { page, errors } = await openPage(browser, `${server.url}/index.html`);
  const { result } = await page.evaluate(tellStory, STORY);
  await browser.close();
  await server.stop();
  expect(result).toMatchObject({ text: expected, build: "relaxed-threads" });
  expect(errors).toEqual([]);
});

const STRICT = "script-src 'self' 'wasm-unsafe-eval'";

it.each([
  [
    "trusts its policy for addresses",
    "require-trusted-types-for 'script'; trusted-types setun; worker-src 'self' blob:",
    true,
    [],
  ],
  [
    "does not trust it",
    "require-trusted-types-for 'script'; trusted-types other",
    false,
    [
      expect.stringMatching(
        /^setun: the model runs on the page's own thread: .*Trusted Types .* add setun to trusted-types$/,
      ),
    ],
  ],
  [
    "allows no workers",
    "worker-src 'none'",
    false,
    [expect.stringMatching(/the page's own thread: .* add 'self' to worker-src, or pass worker: false$/)],
  ],
])("runs under a policy that %s", async (_, policy, worker, warnings) => {
  const server = await startServer({
    root: project.folder,
    policy: `default-src 'self'; ${STRICT}; ${policy}`,
  });
  const browser = await launchChromium();
  const { page } = await openPage(browser, `${server.url}/index.html`);
  /** @type {string[]} */
  const warned = [];
  page.on("console", (message) => message.type() === "warning" && warned.push(message.text()));
  const { result, info } = await page.evaluate(tellStory, STORY);
  await browser.close();
  await server.stop();
  expect([result.text, info.worker, warned]).toEqual([expected, worker, warnings]);
});

it("runs in a sandboxed frame, whose origin is none", async () => {
  const frame = '<!doctype html><iframe sandbox="allow-scripts" src="./index.html"></iframe>';
  const send = (/** @type {any} */ _, /** @type {any} */ response) =>
    response.writeHead(200, { "content-type": "text/html" }).end(frame);
  const server = await startServer({ root: project.folder, shared: true, answers: { "/frame.html": send } });
  const browser = await launchChromium();
  const { page } = await openPage(
    browser,
    `${server.url}/frame.html`,
    () => document.readyState === "complete",
  );
  const [, inner] = page.frames();
  await inner?.waitForFunction(() => "setun" in window);
  const story = await inner?.evaluate(tellStory, STORY);
  await browser.close();
  await server.stop();
  expect(story?.result.text).toBe(expected);
});

it.each([
  ["script-src 'self'", "backend-unavailable", /add 'wasm-unsafe-eval' to script-src .* the files of setun$/],
])("a policy that forbids something is told what it lacks: %s", async (policy, code, words) => {
  const server = await startServer({ root: project.folder, policy: `default-src 'self'; ${policy}` });
  const browser = await launchChromium();
  const { page } = await openPage(browser, `${server.url}/index.html`);
  const refused = await page.evaluate(() =>
    /** @type {any} */ (globalThis).setun
      .load()
      .catch((/** @type {any} */ error) => [error.code, error.message]),
  );
  await browser.close();
  await server.stop();
  expect(refused).toEqual([code, expect.stringMatching(words)]);
});
