/** The blocks of code of the documents, run as they are printed: in a page, and in Node where they are meant for it. */

import { execFile } from "node:child_process";
import { copyFile, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { blocksOf, documents, fileOf, moduleOf, pageOf, withTemplate } from "../test-support/documented.js";
import { startFaultyServer } from "../test-support/faulty-server.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const LIBRARIES = {
  ai: "7.0.173",
  "@ai-sdk/provider": "4.0.38",
  "@langchain/core": "1.4.0",
  react: "19.3.1",
  "react-dom": "19.3.1",
};

/** Turns as lines, which the story model was trained on. */
const TEMPLATE =
  "{% for m in messages %}{{ m.content }}{% if not loop.last or add_generation_prompt %}\n{% endif %}{% endfor %}";

/** Hosts that a page or Node asks for models, answered by a server of this machine. */
const HUBS = /^https:\/\/(huggingface\.co|example\.org)\//;

const IMPORT_MAP = "npm/README.md: Quick start 3";

const BOTH = ["page", "node"];

/** Runs of a request by the first seeds. @param {number} count */
const seeds = (count) => Array.from({ length: count }, (_, seed) => ({ seed, temperature: 1 }));

const told = (/** @type {any} */ { output }) => expect(output.length).toBeGreaterThan(40);

const toldOnPage = (/** @type {any} */ { body }) => expect(body.length).toBeGreaterThan(40);

/** A call was run, with arguments that its schema takes. @param {any} seen */
function called({ ran, ends }) {
  expect(ends.map(([reason]) => reason)).toContain("tool_calls");
  const [[name, { city, days }]] = ran;
  expect([name, ["Oslo", "Bern"].includes(city), days > 0 && days < 10]).toEqual(["weather", true, true]);
}

/**
 * The scene of each block: where it runs, what `play` is given, and what is seen afterwards.
 * @type {Record<string, { hosts: string[], scene?: object, check?: (seen: any) => void, isReady?: () => boolean }>}
 */
const SCENES = {
  "README.md: Quick start 1": { hosts: ["page"], check: toldOnPage },
  "npm/README.md: Quick start 1": { hosts: ["page"], check: toldOnPage },
  "npm/README.md: Quick start 2": {
    hosts: ["page"],
    check: () =>
      expect(asked("prism-ml/Ternary-Bonsai-1.7B-gguf")).toContain("Ternary-Bonsai-1.7B-PQ2_0.gguf"),
  },
  "npm/README.md: Loading models 1": {
    hosts: ["page"],
    check({ loaded }) {
      const chosen = ["config", "config", "chosen", "config"];
      expect(loaded.slice(0, 4)).toEqual(["bitnet-b1.58-2B-4T", "bitnet", "tiny.gguf", "name"]);
      expect(loaded).toHaveLength(4 + chosen.length);
      expect(asked("microsoft/bitnet-b1.58-2B-4T")).toContain("model.safetensors");
    },
  },
  "npm/README.md: Loading models 2": { hosts: ["page"] },
  "npm/README.md: Loading models 3": { hosts: ["page"], scene: { unfinished: true }, check: told },
  "npm/README.md: Generating 1": {
    hosts: BOTH,
    check: ({ ends, ...seen }) => [told(seen), expect(ends).toHaveLength(1 + 2 + 4)],
  },
  "npm/README.md: Generating 2": {
    hosts: BOTH,
    scene: { runs: seeds(12) },
    check({ ends }) {
      for (const [, text] of ends) expect(Object.keys(JSON.parse(text))).toEqual(["name", "age"]);
      expect(new Set(ends.map(([, text]) => text)).size).toBeGreaterThan(3);
    },
  },
  "npm/README.md: Generating 3": { hosts: BOTH, scene: { calls: true }, check: called },
  "npm/README.md: Sessions 1": { hosts: BOTH },
  "docs/adapters.md: OpenAI 1": { hosts: BOTH, check: told },
  "docs/adapters.md: AI SDK 1": { hosts: ["node"], check: told },
  "docs/adapters.md: LangChain 1": { hosts: ["node"], check: told },
  "docs/adapters.md: Prompt API 1": { hosts: BOTH, check: told },
  "docs/adapters.md: Tools that the application runs 1": {
    hosts: BOTH,
    scene: { calls: true, installed: true },
    check: ({ ends }) => expect(ends.map(([reason]) => reason)).toContain("tool_calls"),
  },
  "docs/generation.md: Logits processors in JavaScript 2": { hosts: BOTH },
  "docs/hosts.md: Bundlers 1": { hosts: ["page"] },
  "docs/hosts.md: Updates of modules 1": {
    hosts: BOTH,
    check: ({ loaded }) => expect(loaded).toHaveLength(1),
  },
  "docs/hosts.md: Hosts that send no headers 1": {
    hosts: ["page"],
    check: ({ started }) => expect(started).toBe("relaxed-threads"),
    isReady: () => crossOriginIsolated && "ended" in window,
  },
  "docs/hosts.md: Hosts that send no headers 3": {
    hosts: ["page"],
    isReady: () => crossOriginIsolated && "ended" in window,
  },
  "docs/tools.md: Tools 1": { hosts: BOTH, scene: { calls: true }, check: called },
};

/** Documents whose blocks call a server, which other tests do. */
const OTHERS = ["docs/serving.md"];

/** Blocks that are no module of a page: a component, and what others load. */
const COMPONENT = "docs/adapters.md: React 1";

const BLOCKS = documents()
  .filter((document) => !OTHERS.includes(document))
  .flatMap(blocksOf);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Awaited<ReturnType<typeof startFaultyServer>>} */
let hub;
/** @type {import("playwright-core").Browser} */
let browser;

/** Paths of a repository that the server of models was asked for. @param {string} repository */
function asked(repository) {
  const begin = `/${repository}/resolve/`;
  const paths = hub.requests.map(({ path }) => path).filter((path) => path.startsWith(begin));
  return paths.map((path) => path.split("/").at(-1));
}

/** @param {string} name */
function blockNamed(name) {
  const found = BLOCKS.find((block) => block.name === name);
  if (found === undefined) throw new Error(`there is no block "${name}"`);
  return found;
}

/** @param {string} path */
const fixture = (path) => readFile(fileURLToPath(new URL(`../../tests/fixtures/${path}`, import.meta.url)));

/** The models that the blocks name. A chat model without an end writes until its context is full. */
async function putModels() {
  const { folder } = embeddedModel(project.folder);
  const chat = { ...folder, "chat_template.jinja": TEMPLATE };
  const withoutEnd = Object.fromEntries(
    ["config.json", "generation_config.json"].map((name) => {
      const { eos_token_id: _, ...rest } = JSON.parse(String(folder[name]));
      return [name, JSON.stringify(rest)];
    }),
  );
  const endless = /** @type {Record<string, any>} */ ({ ...chat, ...withoutEnd });
  hub.putHub("owner/name", endless);
  hub.putHub("microsoft/bitnet-b1.58-2B-4T", /** @type {any} */ (chat));
  const bonsai = withTemplate(await fixture("families/qwen3-bonsai/type142.gguf"), TEMPLATE);
  hub.putHub("prism-ml/Ternary-Bonsai-1.7B-gguf", { "Ternary-Bonsai-1.7B-PQ2_0.gguf": bonsai });
  for (const [name, bytes] of Object.entries(chat))
    hub.put(`/models/bitnet/${name}`, /** @type {any} */ (bytes));
  const files = { ...chat, "names.json": JSON.stringify(Object.keys(chat)) };
  const paths = Object.entries(files).map(([name, bytes]) => [`model/${name}`, bytes]);
  const tiny = await fixture("gguf/i2_s.gguf");
  await writeFiles(project.folder, { ...Object.fromEntries(paths), "models/tiny.gguf": tiny });
}

/** The files of pages: blocks under names of their own, and the service workers that two of them register. */
async function putBlocks() {
  const scene = await readFile(new URL("../test-support/scene.js", import.meta.url), "utf8");
  const files = BLOCKS.map((block, index) => [
    fileOf(block) ?? `block-${index}.${block.language}`,
    block.code,
  ]);
  await writeFiles(project.folder, { ...Object.fromEntries(files), "scene.js": scene });
  const installed = join(project.folder, "node_modules/setun");
  await copyFile(join(installed, "dist/isolate-worker.js"), join(project.folder, "isolate-worker.js"));
  await symlink(installed, join(project.folder, "setun"), "dir");
  // A service worker has no import map, and the application answers the request.
  await build({
    cwd: project.folder,
    input: "own.js",
    output: { file: join(project.folder, "own.js"), banner: "const answer = (request) => fetch(request);" },
  });
}

beforeAll(async () => {
  project = await makeProject({}, LIBRARIES);
  hub = await startFaultyServer({ cors: { exposes: true } });
  server = await startServer({ root: project.folder });
  browser = await launchChromium();
  await putModels();
  await putBlocks();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await hub?.stop();
  await project?.remove();
});

/** A page whose requests to other hosts the server of models answers. */
async function newPage() {
  const context = await browser.newContext();
  await context.route(HUBS, async (route) => {
    const request = route.request();
    const { range } = request.headers();
    const address = request.url().replace(HUBS, `${hub.url}/`);
    const response = await fetch(address, { method: request.method(), headers: range ? { range } : {} });
    const body = Buffer.from(await response.arrayBuffer());
    await route.fulfill({ status: response.status, headers: Object.fromEntries(response.headers), body });
  });
  return context.newPage();
}

/** @param {string} name @param {object} scene @param {() => boolean} [isReady] */
async function inPage(name, scene, isReady = () => "ended" in window) {
  const index = BLOCKS.indexOf(blockNamed(name));
  const page = pageOf(blockNamed(IMPORT_MAP).code, `block-${index}.js`, scene);
  await writeFiles(project.folder, { [`block-${index}.html`]: page });
  const opened = await newPage();
  /** @type {string[]} */
  const errors = [];
  opened.on("pageerror", ({ message }) => errors.push(message));
  await opened.goto(`${server.url}/block-${index}.html`);
  await opened.waitForFunction(isReady);
  const seen = await opened.evaluate(() => /** @type {any} */ (globalThis).ended);
  await opened.context().close();
  expect(errors).toEqual([]);
  return seen;
}

/** @param {string} name @param {object} scene */
async function inNode(name, scene) {
  const index = BLOCKS.indexOf(blockNamed(name));
  const script = moduleOf(`block-${index}.js`, { ...scene, hub: hub.url });
  await writeFiles(project.folder, { [`play-${index}.mjs`]: script });
  const options = { cwd: project.folder, maxBuffer: 2 ** 26 };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...NODE_OPTIONS, `play-${index}.mjs`],
    options,
  );
  return JSON.parse(stdout);
}

it("has a scene for each block", () => {
  const isOther = (/** @type {typeof BLOCKS[number]} */ block) =>
    fileOf(block) !== undefined || [IMPORT_MAP, COMPONENT].includes(block.name);
  const names = BLOCKS.filter((block) => !isOther(block)).map(({ name }) => name);
  expect(Object.keys(SCENES).sort()).toEqual(names.sort());
});

describe.each(Object.entries(SCENES))(
  "%s",
  (name, { hosts, scene = {}, check = () => undefined, isReady }) => {
    it.each(hosts)("runs as printed: %s", async (host) => {
      const seen = host === "page" ? await inPage(name, scene, isReady) : await inNode(name, scene);
      expect(seen.failed).toBeUndefined();
      check(seen);
    });
  },
);

/** Before a call, and within its arguments. */
const CUTS = [9, 40].flatMap((maxTokens) => BOTH.map((host) => ({ host, maxTokens })));

it.each(CUTS)("a loop of tools says that a limit cuts a call: %j", async ({ host, maxTokens }) => {
  const scene = { calls: true, runs: [{ maxTokens }] };
  const run = host === "page" ? inPage : inNode;
  const { failed } = await run("npm/README.md: Generating 3", scene);
  expect(failed).toBe("Error: the answer was cut off within a call");
});

it("a component tells a story", async () => {
  const main = `import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { Story } from "./story.jsx";
createRoot(document.body.appendChild(document.createElement("div"))).render(createElement(Story));
`;
  await writeFiles(project.folder, {
    "story.jsx": `${blockNamed(COMPONENT).code}export { Story };\n`,
    "main.js": main,
  });
  await build({
    cwd: project.folder,
    input: "main.js",
    platform: "browser",
    external: "setun",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
    output: { file: join(project.folder, "story.js"), format: "esm" },
  });
  const script = '<script type="module" src="./story.js"></script>';
  await writeFiles(project.folder, {
    "story.html": `<!doctype html><title>story</title>${blockNamed(IMPORT_MAP).code}<body>${script}`,
  });
  const page = await newPage();
  await page.goto(`${server.url}/story.html`);
  await page.getByRole("button", { name: "Tell" }).click();
  await page.waitForFunction(() => (document.querySelector("p")?.textContent?.length ?? 0) > 40);
  await page.context().close();
});
