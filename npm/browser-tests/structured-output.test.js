/** Structured output in browsers: the grammar module is fetched with the first request that needs it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openInFirefox, openPage } from "../test-support/browsers.js";
import { fetched, INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 1, maximum: 99 } },
  required: ["name", "age"],
  additionalProperties: false,
};

const GRAMMAR = "/node_modules/setun/dist/wasm/grammar/setun_bg.wasm";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
});
afterAll(() => project?.remove());

/**
 * Runs in the page: a generation without a format, three at once of which two have one, and one whose grammar does not compile.
 * @param {{ schema: object, load: object }} given
 */
async function tell({ schema, load }) {
  const { setun } = /** @type {any} */ (globalThis);
  const model = await setun.load(undefined, load);
  const story = { temperature: 0, maxTokens: 12 };
  const before = await model.generate("The dog", story).text();
  const options = {
    responseFormat: { type: "json_schema", schema },
    temperature: 1,
    seed: 3,
    maxTokens: 200,
  };
  const [person, choice, beside] = await Promise.all([
    model.generate("Once", options).text(),
    model.generate("The", { responseFormat: { type: "choice", choices: ["the moon", "a dog"] } }).text(),
    model.generate("The dog", story).text(),
  ]);
  const refused = await model
    .generate("The", { responseFormat: { type: "json_schema", schema: { not: {} } } })
    .text()
    .catch((/** @type {any} */ error) => `${error.name} ${error.code}`);
  const { build } = model.info;
  await model.dispose();
  return { build, before, person, choice, beside, refused };
}

/** @param {Awaited<ReturnType<typeof tell>>} told @param {string[]} requests */
function check({ before, person, choice, beside, refused }, requests) {
  const { name, age, ...others } = JSON.parse(person);
  expect([...name].length).toBeLessThanOrEqual(12);
  expect(Number.isInteger(age) && age >= 1 && age <= 99).toBe(true);
  expect(others).toEqual({});
  expect(["the moon", "a dog"]).toContain(choice);
  expect(beside).toBe(before);
  expect(refused).toBe("SetunError bad-option");
  expect(fetched(requests).code).toHaveLength(2);
  expect(requests.filter((address) => address.includes(GRAMMAR))).toHaveLength(1);
}

describe.each([
  { isolated: false, load: {} },
  { isolated: true, load: {} },
  { isolated: false, load: { worker: false } },
])("a page with structured output: %j", ({ isolated, load }) => {
  it("works in Chromium", async () => {
    const server = await startServer({ root: project.folder, isolated, strict: true });
    const browser = await launchChromium();
    const { page, errors } = await openPage(browser, `${server.url}/index.html`);
    const told = await page.evaluate(tell, { schema: SCHEMA, load });
    await browser.close();
    await server.stop();
    check(told, server.requests);
    expect(told.build).toBe(isolated ? "relaxed-threads" : "relaxed");
    expect(errors).toEqual([]);
  });

  it("works in Firefox", async () => {
    const server = await startServer({ root: project.folder, isolated, strict: true });
    const firefox = await openInFirefox(`${server.url}/index.html`);
    const told = await firefox.page.evaluate(tell, { schema: SCHEMA, load });
    await firefox.close();
    await server.stop();
    check(told, server.requests);
  });
});
