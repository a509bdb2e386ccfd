/** The examples of the package, as its users run them, the hooks of React, and the generated reference. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { buildWithVite, exampleDependencies, exampleFiles } from "../test-support/examples.js";
import { PATIENCE_MS } from "../test-support/patience.js";
import { makeProject, NODE_OPTIONS, npm, writeFiles } from "../test-support/project.js";
import { writeReactPage } from "../test-support/react-page.js";
import { startServer } from "../test-support/server.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {string[]} */
let errors;

beforeAll(async () => {
  project = await makeProject(exampleFiles(), exampleDependencies("react-chat", "vue-stream"));
  server = await startServer({ root: project.folder });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

/** Output of an example in Node. @param {string} name @param {string[]} args */
function run(name, ...args) {
  return execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, name), ...args], {
    encoding: "utf8",
  });
}

/** Opens the page of an example. @param {string} path */
async function open(path) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  errors = [];
  page.on("pageerror", ({ message }) => errors.push(message));
  await page.goto(`${server.url}/${path}`);
  return page;
}

/**
 * Presses a button by its name, also where a growing text moves it.
 * @param {import("playwright-core").Page} page @param {string} name
 */
function press(page, name) {
  return page.getByRole("button", { name, exact: true }).dispatchEvent("click");
}

/** Waits until the status of a page is as it should be. @param {import("playwright-core").Page} page @param {string} selector @param {string} begin */
async function waitForText(page, selector, begin) {
  await page.waitForFunction(
    ([all, text = ""]) => document.querySelector(all ?? "")?.textContent?.startsWith(text),
    [selector, begin],
  );
}

describe("the examples in Node", () => {
  it("stream a text", () => {
    expect(run("node.mjs", "The dog")).toMatch(/^The dog.+\n(stop|length): \d+ tokens, \d+ tokens\/s\n$/s);
  });

  it("generate JSON and choices", () => {
    const output = run("structured-output.mjs");
    expect(output).toMatch(/name: .*age: \d+.*pets: /s);
    expect(output).toMatch(/ (blue|made of cheese)\n$/);
  });

  it("speculate without a change of the text", () => {
    const output = run("speculation.mjs");
    const [plain = 0, lookup = 0, drafted = 0] = [...output.matchAll(/(\d+) steps/g)].map(([, steps]) =>
      Number(steps),
    );
    expect(lookup).toBeLessThan(plain);
    expect(drafted).toBeLessThan(plain);
    expect(output).toContain("equal texts: true");
  });

  it("continue an aborted generation from a file", () => {
    expect(run("abort-resume.mjs")).toMatch(
      /Once upon a time.+\n\d+ of \d+ tokens were in the saved KV cache\n$/s,
    );
  });

  it("call the model as the OpenAI client does", () => {
    const output = run("openai.mjs", "The dog");
    expect(output).toMatch(/^The dog.+\n\n\d+ tokens of three texts:\n(-.*\n){3}/s);
    expect(output).toMatch(/\nrefused: bad-option, suffix\n$/);
  });

  it("call the model through the AI SDK", () => {
    expect(run("ai-sdk.mjs", "The dog")).toMatch(/^The dog.+\n(stop|length): \d+ tokens\n$/s);
  });
});

describe("the examples in pages", () => {
  it("stream a text without a bundler", async () => {
    const page = await open("browser.html");
    await waitForText(page, "#status", "cpu");
    await page.click("#run");
    await waitForText(page, "#status", "finished");
    expect((await page.textContent("#output"))?.length).toBeGreaterThan(60);
    expect(errors).toEqual([]);
  });

  it("extract a table", async () => {
    const page = await open("extract-table.html");
    await page.click("#extract");
    await waitForText(page, "#status", "finished: 3 texts");
    const rows = await page.$$eval("tbody tr", (all) =>
      all.map((row) => [...row.children].map(({ textContent }) => textContent)),
    );
    expect(rows).toHaveLength(3);
    for (const [customer, , , quantity, urgent] of rows) {
      expect(customer?.length).toBeLessThanOrEqual(30);
      expect(quantity).toMatch(/^[1-9]\d{0,2}$/);
      expect(urgent).toMatch(/^(true|false)$/);
    }
    expect(errors).toEqual([]);
  });

  it("search by meaning", async () => {
    const page = await open("semantic-search.html");
    await waitForText(page, "#status", "6 texts");
    await page.fill("[name=query]", "The little boat sailed over the blue sea.");
    await press(page, "Search");
    await waitForText(page, "li", "1.000 The little boat");
    const scores = await page.$$eval("li", (all) =>
      all.map(({ textContent }) => Number(textContent?.slice(0, 5))),
    );
    expect(scores).toHaveLength(6);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
    expect(errors).toEqual([]);
  });

  it("stream a text with Vue", async () => {
    buildWithVite(project.folder, "vue-stream");
    const page = await open("vue-stream/dist/index.html");
    await press(page, "Tell");
    await waitForText(page, "#status", "finished: ");
    expect((await page.textContent("#output"))?.length).toBeGreaterThan(30);
    expect(errors).toEqual([]);
  });
});

describe("a chat with React and the AI SDK", () => {
  /** The story model with a chat template, and without an end: what runs until it is stopped is stopped in its midst. */
  async function writeChatModel() {
    const { folder } = embeddedModel(project.folder);
    const [config, sampling] = ["config.json", "generation_config.json"].map((name) => {
      const { eos_token_id: _, ...rest } = JSON.parse(String(folder[name]));
      return rest;
    });
    const template =
      "{% for m in messages %}{{ m.content }}{% if not loop.last or add_generation_prompt %}\n{% endif %}{% endfor %}";
    const files = {
      ...folder,
      "config.json": JSON.stringify({ ...config, max_position_embeddings: 1e6 }),
      "generation_config.json": JSON.stringify(sampling),
      "chat_template.jinja": template,
    };
    const paths = Object.entries(files).map(([name, text]) => [`model/${name}`, text]);
    await writeFiles(project.folder, Object.fromEntries(paths));
  }

  /** Loads a model whose answers have at most `tokens` tokens, and sends a message. @param {number} tokens */
  async function startChat(tokens) {
    const page = await open("react-chat/dist/index.html");
    await page.fill("[name=source]", "/model/");
    await page.fill("[name=tokens]", String(tokens));
    await press(page, "Load");
    await page.fill("[name=text]", "The dog");
    await press(page, "Send");
    return page;
  }

  /** @param {import("playwright-core").Page} page */
  const roles = (page) =>
    page.$$eval("[data-role]", (all) => all.map((each) => each.getAttribute("data-role")));

  it("streams, is stopped and answers again, without a server", async () => {
    await writeChatModel();
    buildWithVite(project.folder, "react-chat");
    const page = await startChat(1e6);
    for (const again of [true, false]) {
      await page.waitForSelector("main[data-status=streaming] [data-role=assistant]:not(:empty)");
      await press(page, "Stop");
      await page.waitForSelector("main[data-status=ready]");
      expect(await roles(page)).toEqual(["user", "assistant"]);
      if (again) await press(page, "Regenerate");
    }
    await page.close();
    const short = await startChat(8);
    await short.waitForSelector("main[data-status=ready] [data-role=assistant]:not(:empty)");
    await short.fill("[name=text]", "The cat");
    await press(short, "Send");
    await short.waitForSelector("main[data-status=ready] [data-role=assistant]:nth-of-type(4):not(:empty)");
    expect(await roles(short)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(errors).toEqual([]);
  });
});

describe.each(["18.3.1", "19.3.1"])("the hooks of React %s in Strict Mode", (version) => {
  const folder = version.startsWith("19") ? "." : "earlier";

  beforeAll(async () => {
    if (folder === ".") return;
    const dependencies = { react: version, "react-dom": version };
    await writeFiles(project.folder, {
      [`${folder}/package.json`]: JSON.stringify({ private: true, dependencies }),
    });
    npm(join(project.folder, folder), ["install", "--no-audit", "--no-fund"]);
  });

  it("load once, try again, end a text, and leave nothing behind", async () => {
    await writeReactPage(project.folder, folder);
    const page = await open(`${folder}/index.html`);
    const show = (/** @type {string | null} */ source) =>
      page.evaluate((source) => /** @type {any} */ (globalThis).show(source), source);
    const seen = () => page.evaluate(() => /** @type {any} */ (globalThis).seen);
    const text = "main[data-end=none] p:not(:empty)";
    await page.waitForFunction(() => "show" in window);

    const late = `${folder}/late.safetensors`;
    await show(`/${late}`);
    await page.waitForSelector("main[data-status=not-found]");
    expect(await seen()).toEqual({ version, effects: 2, loads: 1, disposals: 0, ends: [] });
    await writeFiles(project.folder, /** @type {any} */ ({ [late]: embeddedModel(project.folder).file }));
    await press(page, "Retry");
    await page.waitForSelector("main[data-status=ready]");

    await press(page, "Tell");
    await page.waitForSelector(text);
    await press(page, "Tell");
    await page.waitForFunction(() => /** @type {any} */ (globalThis).seen.ends.length === 1);
    await page.waitForSelector(text);
    await press(page, "Stop");
    await page.waitForSelector("main[data-end=aborted]");
    await press(page, "Tell wrongly");
    await page.waitForSelector("main[data-end=bad-option]");
    expect(await seen()).toMatchObject({ loads: 2, disposals: 0, ends: ["aborted", "aborted"] });

    await show("/node_modules/setun/model/stories.safetensors");
    await page.waitForFunction(
      () => /** @type {any} */ (globalThis).statuses.slice(-3).join() === "ready,loading,ready",
    );
    expect(await seen()).toMatchObject({ loads: 3, disposals: 1 });
    await press(page, "Tell");
    await page.waitForSelector(text);
    await show(null);
    await page.waitForFunction(() => /** @type {any} */ (globalThis).seen.ends.length === 3);
    expect(await seen()).toMatchObject({ disposals: 2, ends: ["aborted", "aborted", "disposed"] });

    await show(`/${late}`);
    await page.waitForFunction(() => /** @type {any} */ (globalThis).seen.loads === 4);
    await show(null);
    await expect.poll(() => page.workers()).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  });
});

it("has a generated reference without warnings", () => {
  npm(fileURLToPath(new URL("..", import.meta.url)), ["run", "docs"]);
});
