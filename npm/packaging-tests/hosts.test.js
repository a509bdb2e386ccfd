/** Hosts other than a page of the files' own origin: another origin's page, and workers. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openInFirefox, openPage } from "../test-support/browsers.js";
import { storyInNode } from "../test-support/node-story.js";
import { INDEX_HTML, PLAIN_MAIN, STORY, STRUCTURED, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** Loads a model as each message says, and answers with the story. */
const HOST = (/** @type {string} */ entry) => `import * as setun from "./node_modules/setun/dist/${entry}.js";
globalThis.setun = setun;
const tell = ${tellStory};
addEventListener("message", async ({ data, ports: [port] }) => {
  const failed = ({ code, message }) => ({ failed: [code, message] });
  port.postMessage(await tell(data).catch(failed));
});
`;

/** Entry points that are not for service workers. */
const FOR_PAGES = ["index", "cpu", "no-model"];

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let files;
/** @type {string} */
let expected;

beforeAll(async () => {
  const pages = { "index.html": INDEX_HTML, "main.js": PLAIN_MAIN };
  const workers = { "worker.js": HOST("index"), "service-worker.js": HOST("service-worker") };
  const wrong = FOR_PAGES.map((entry) => [`service-worker-${entry}.js`, HOST(entry)]);
  project = await makeProject({ ...pages, ...workers, ...Object.fromEntries(wrong) });
  files = await startServer({ root: project.folder, shared: true });
  expected = (await storyInNode(project.folder)).result.text;
});
afterAll(async () => {
  await files?.stop();
  await project?.remove();
});

/** A server whose page imports the package from another origin, as its policy allows. */
function startOther() {
  const main = PLAIN_MAIN.replace("./node_modules", `${files.url}/node_modules`);
  const policy =
    `default-src 'self'; script-src 'self' 'wasm-unsafe-eval' ${files.url}; ` +
    `connect-src 'self' ${files.url}; worker-src blob: ${files.url}`;
  const send = (/** @type {any} */ _, /** @type {any} */ response) =>
    response.writeHead(200, { "content-type": "text/javascript" }).end(main);
  return startServer({ root: project.folder, isolated: true, policy, answers: { "/main.js": send } });
}

describe("files on another origin", () => {
  it("run with threads and structured output in Chromium", async () => {
    const server = await startOther();
    const browser = await launchChromium();
    const { page, errors } = await openPage(browser, `${server.url}/index.html`);
    const { result } = await page.evaluate(tellStory, STORY);
    expect(result).toMatchObject({ text: expected, build: "relaxed-threads" });
    expect((await page.evaluate(tellStory, STRUCTURED)).result.text).toBe("a dog");
    expect(errors).toEqual([]);
    await browser.close();
    await server.stop();
  });

  if (IS_FULL) {
    it("run with threads in Firefox", async () => {
      const server = await startOther();
      const firefox = await openInFirefox(`${server.url}/index.html`);
      const { result } = await firefox.page.evaluate(tellStory, STORY);
      await firefox.close();
      await server.stop();
      expect(result.text).toBe(expected);
      expect(result.build).toMatch(/-threads$/);
    });
  }
});

describe("a host without a document", () => {
  /** Runs in the page: sends each story to a worker or service worker, one after the other. */
  const ask = async (
    /** @type {{ service: boolean | string, stories: object[] }} */ { service, stories },
  ) => {
    let host;
    if (service) {
      const file = typeof service === "string" ? service : "./service-worker.js";
      await navigator.serviceWorker.register(file, { type: "module" });
      host = (await navigator.serviceWorker.ready).active;
    } else {
      host = new Worker("./worker.js", { type: "module" });
    }
    const answers = [];
    for (const story of stories) {
      const { port1, port2 } = new MessageChannel();
      const answer = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      host?.postMessage(story, [port2]);
      answers.push(await answer);
    }
    return answers;
  };

  it.each(IS_FULL ? [false, true] : [false])("tells the story, service worker: %s", async (service) => {
    const browser = await launchChromium();
    const { page } = await openPage(browser, `${files.url}/index.html`);
    const relative = { ...STORY, source: "./node_modules/setun/model/stories.safetensors" };
    const [story, same, structured, refused] = /** @type {any[]} */ (
      await page.evaluate(ask, {
        service,
        stories: [STORY, relative, STRUCTURED, { ...STORY, source: "./no/" }],
      })
    );
    await browser.close();
    expect(story).toMatchObject({ result: { text: expected }, info: { worker: !service } });
    expect(same).toMatchObject({ result: { text: expected } });
    expect(structured).toMatchObject({ result: { text: "a dog" } });
    expect(refused.failed[0]).toBe("not-found");
  });

  it.each(FOR_PAGES)("is told what a service worker imports: %s", async (entry) => {
    const browser = await launchChromium();
    const { page } = await openPage(browser, `${files.url}/index.html`);
    const source = "/node_modules/setun/model/stories.safetensors";
    const stories = [STORY, { ...STORY, source }, { ...STORY, source, load: { shared: true } }];
    const told = await page.evaluate(ask, { service: `./service-worker-${entry}.js`, stories });
    await browser.close();
    for (const { failed } of /** @type {any[]} */ (told))
      expect(failed).toEqual([
        "backend-unavailable",
        expect.stringContaining('import "setun/service-worker" in a service worker'),
      ]);
  });

  it("shares a model with the page: a worker leads, or reads none", async () => {
    const source = "/node_modules/setun/model/stories.safetensors";
    const load = { shared: true, store: false };
    const reads = () => files.requests.filter((path) => path === source).length;
    const browser = await launchChromium();
    const { page } = await openPage(browser, `${files.url}/index.html`);
    const inWorker = { service: false, stories: [{ ...STORY, source, load }] };
    const before = reads();
    const [leads] = /** @type {any[]} */ (await page.evaluate(ask, inWorker));
    const read = reads() - before;
    await page.evaluate(
      async ({ source, load }) => {
        const all = /** @type {any} */ (globalThis);
        all.model = await all.setun.load(source, load);
      },
      { source, load },
    );
    const [follows] = /** @type {any[]} */ (await page.evaluate(ask, inWorker));
    await browser.close();
    for (const story of [leads, follows]) expect(story).toMatchObject({ result: { text: expected } });
    expect(read).toBeGreaterThan(0);
    expect(reads() - before).toBe(2 * read);
  });
});
