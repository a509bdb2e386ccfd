/** The examples of the package, as its users run them, and the generated reference. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium } from "../test-support/browsers.js";
import { makeProject, npm } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const FOLDER = fileURLToPath(new URL("../examples", import.meta.url));

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  const names = readdirSync(FOLDER);
  const files = names.map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]);
  project = await makeProject(Object.fromEntries(files));
});
afterAll(() => project?.remove());

/** Output of an example in Node. @param {string} name @param {string[]} args */
function run(name, ...args) {
  return execFileSync(process.execPath, [join(project.folder, name), ...args], { encoding: "utf8" });
}

describe("the examples", () => {
  it("stream a text in Node", () => {
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

  it("run in a page without a bundler", async () => {
    const server = await startServer({ root: project.folder, isolated: false, strict: false });
    const browser = await launchChromium();
    const page = await browser.newPage();
    /** @type {string[]} */
    const errors = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    await page.goto(`${server.url}/browser.html`);
    await page.waitForFunction(() => document.getElementById("status")?.textContent?.startsWith("cpu"));
    await page.click("#run");
    await page.waitForFunction(() => document.getElementById("status")?.textContent?.startsWith("finished"));
    expect((await page.textContent("#output"))?.length).toBeGreaterThan(60);
    await browser.close();
    await server.stop();
    expect(errors).toEqual([]);
  });
});

it("has a generated reference without warnings", () => {
  npm(fileURLToPath(new URL("..", import.meta.url)), ["run", "docs"]);
});
