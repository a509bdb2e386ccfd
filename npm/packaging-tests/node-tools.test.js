/** Calls of tools with the packed modules, in Node: the embedded model with a chat template of each family. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

const HERMES =
  "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}" +
  "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}";
const PLAIN = "{% for m in messages %}{{ m.content }}\n{% endfor %}";

const TOOLS = [
  {
    type: "function",
    function: {
      name: "weather",
      parameters: {
        type: "object",
        properties: { city: { type: "string", minLength: 1, maxLength: 8 }, unit: { enum: ["C", "F"] } },
        required: ["city", "unit"],
        additionalProperties: false,
      },
    },
  },
  { type: "function", function: { name: "time" } },
];

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
  const { folder } = embeddedModel(project.folder);
  for (const [name, template] of Object.entries({ hermes: HERMES, plain: PLAIN })) {
    const files = Object.entries({ ...folder, "chat_template.jinja": template });
    await writeFiles(
      project.folder,
      Object.fromEntries(files.map(([file, bytes]) => [`${name}/${file}`, bytes])),
    );
  }
});
afterAll(() => project?.remove());

/** Runs a module in the project, with a model of one of the folders; it prints one JSON value. @param {string} name @param {string} body */
async function inNode(name, body) {
  const begin = `
    import { readdirSync, readFileSync } from "node:fs";
    import { load } from "setun";
    const names = readdirSync("${name}");
    const files = Object.fromEntries(names.map((file) => [file, new Uint8Array(readFileSync("${name}/" + file))]));
    const model = await load(files);
    const tools = ${JSON.stringify(TOOLS)};
    const messages = [{ role: "user", content: "Hi." }];`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
}

/** @param {any} call */
function check({ id, type, function: { name, arguments: json } }) {
  expect(id).toMatch(/^[0-9A-Za-z]{9}$/);
  expect(type).toBe("function");
  const value = JSON.parse(json);
  if (name === "time") return expect(value).toEqual({});
  expect(name).toBe("weather");
  expect(Object.keys(value).sort()).toEqual(["city", "unit"]);
  expect([...value.city].length).toBeLessThanOrEqual(8);
  expect(["C", "F"]).toContain(value.unit);
}

it.each(["hermes", "plain"])("writes valid calls, whose pieces join to the result: %s", async (name) => {
  const { results, streamed } = await inNode(
    name,
    `
    const options = { tools, toolChoice: "required", parallelToolCalls: false, temperature: 1, maxTokens: 200 };
    const results = [];
    for (let seed = 0; seed < 6; seed += 1) {
      const parallelToolCalls = seed > 3;
      results.push(await model.chat(messages, { ...options, parallelToolCalls, seed }).result);
    }
    const streamed = [];
    for await (const { text, toolCalls = [] } of model.chat(messages, { ...options, seed: 0 })) {
      for (const { index, id = "", name = "", arguments: json = "" } of toolCalls) {
        streamed[index] ??= ["", "", ""];
        streamed[index] = [id, name, json].map((piece, part) => streamed[index][part] + piece);
      }
      if (text !== "") throw new Error("text: " + text);
    }
    console.log(JSON.stringify({ results, streamed }));
  `,
  );
  const whole = results.filter(({ finishReason }) => finishReason === "tool_calls");
  expect(whole.length).toBeGreaterThan(2);
  for (const { text, toolCalls } of whole) {
    expect(text).toBe("");
    expect(toolCalls.length).toBeGreaterThan(0);
    for (const call of toolCalls) check(call);
  }
  const joined = results[0].toolCalls.map(({ id, function: { name, arguments: json } }) => [id, name, json]);
  expect(streamed).toEqual(joined);
});

it("goes on after tokens of a call", async () => {
  const { whole, rests } = await inNode(
    "hermes",
    `
    const toolChoice = { type: "function", function: { name: "time" } };
    const options = { tools, toolChoice, parallelToolCalls: false, seed: 2 };
    const read = async (generation) => {
      const pieces = [];
      for await (const { toolCalls = [] } of generation) pieces.push(...toolCalls);
      return { pieces, ...(await generation.result) };
    };
    const whole = await read(model.chat(messages, options));
    const rests = [];
    for (let cut = whole.tokens.length; cut > 0; cut -= 5) {
      const generatedTokens = whole.tokens.slice(0, cut);
      const { pieces, tokens, finishReason } = await read(model.chat(messages, { ...options, generatedTokens }));
      rests.push({ tokens: [...generatedTokens, ...tokens], pieces, finishReason });
    }
    console.log(JSON.stringify({ whole, rests }));
  `,
  );
  expect(whole.toolCalls.map((/** @type {any} */ call) => call.function.name)).toEqual(["time"]);
  for (const { tokens, pieces, finishReason } of rests) {
    expect([tokens, finishReason]).toEqual([whole.tokens, "tool_calls"]);
    expect(pieces).toEqual(whole.pieces.slice(whole.pieces.length - pieces.length));
  }
  expect(rests[0].pieces).toEqual([]);
});

it("takes results, and refuses what does not fit together", async () => {
  const { named, after, none, warnings, failures } = await inNode(
    "plain",
    `
    const toolChoice = { type: "function", function: { name: "time" } };
    const options = { tools, toolChoice, parallelToolCalls: false, seed: 1, maxTokens: 60 };
    const named = await model.chat(messages, options).result;
    const [{ id }] = named.toolCalls;
    const results = [
      { role: "assistant", content: named.text, tool_calls: named.toolCalls },
      { role: "tool", tool_call_id: id, content: "nine" },
    ];
    const after = await model.chat([...messages, ...results], { tools, maxTokens: 8, temperature: 0 }).result;
    const none = await model.chat(messages, { tools, toolChoice: "none", maxTokens: 8, seed: 1 }).result;
    const failures = [];
    const parameters = { type: "object", not: {} };
    const bad = { type: "function", function: { name: "f", parameters, strict: true } };
    const free = { type: "function", function: { name: "f", parameters } };
    const { warnings } = await model.chat(messages, { tools: [free], maxTokens: 8, seed: 1 }).result;
    for (const generation of [
      () => model.chat(messages, { tools: [bad] }),
      () => model.chat(messages, { tools: [tools[1], tools[1]] }),
      () => model.generate("Hi.", { tools }),
    ]) failures.push(await generation().text().catch(({ code, message }) => code + ": " + message));
    console.log(JSON.stringify({ named, after, none, warnings, failures }));
  `,
  );
  expect(named.finishReason).toBe("tool_calls");
  expect(named.toolCalls.map((/** @type {any} */ call) => call.function)).toEqual([
    { name: "time", arguments: "{}" },
  ]);
  expect(after.tokens.length).toBeGreaterThan(0);
  expect(none.toolCalls).toEqual([]);
  const [keyword, twice, text] = failures;
  expect(keyword).toMatch(/^bad-option: .*keyword `not` at #/);
  expect(warnings).toEqual([expect.stringContaining("keyword `not` at #")]);
  expect(twice).toContain("bad-option: tools[1].function.name: expected a name of its own");
  expect(text).toContain("bad-option: option `tools` is given with a text");
});
