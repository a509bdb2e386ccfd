/** Structured output with the packed modules, in Node. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Results of the native crate `setun-grammar`, whose tests read the same file. */
const WALKS = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/grammar/walks.json", import.meta.url), "utf8"),
);

/** Forms beyond the bounds, with the messages of the native crate. */
const REFUSALS = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/grammar/refusals.json", import.meta.url), "utf8"),
);

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 1, maximum: 99 },
    pets: { type: "array", items: { enum: ["cat", "dog"] }, maxItems: 3 },
  },
  required: ["name", "age", "pets"],
  additionalProperties: false,
};

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
});
afterAll(() => project?.remove());

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const begin = `import { load } from "setun"; const SCHEMA = ${JSON.stringify(SCHEMA)};`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], {
      encoding: "utf8",
    }),
  );
}

/** @param {any} value */
function checkPerson(value) {
  expect(Object.keys(value)).toEqual(["name", "age", "pets"]);
  expect([...value.name].length).toBeLessThanOrEqual(12);
  expect(value.age).toBeGreaterThanOrEqual(1);
  expect(value.age).toBeLessThanOrEqual(99);
  expect(value.pets.length).toBeLessThanOrEqual(3);
  for (const pet of value.pets) expect(["cat", "dog"]).toContain(pet);
}

describe("the grammar module", () => {
  it("computes the same masks as the native crate", async () => {
    const forms = await inNode(`
      import { readFileSync } from "node:fs";
      import * as engine from "setun/wasm/simd128/setun.js";
      import * as grammars from "setun/wasm/grammar/setun.js";
      const file = (path) => readFileSync(new URL(path, import.meta.url));
      const compiled = (build) => new WebAssembly.Module(file(\`node_modules/setun/dist/wasm/\${build}/setun_bg.wasm\`));
      await engine.default({ module_or_path: compiled("simd128") });
      await grammars.default({ module_or_path: compiled("grammar") });
      const bytes = file("node_modules/setun/model/stories.safetensors");
      const files = {
        read: async (_, start, end) => new Uint8Array(bytes.subarray(start, end)),
        rewind() {},
        close() {},
      };
      const loader = await engine.Loader.open("file", "stories.safetensors", files);
      const model = await loader.finish({ backend: "cpu", threads: 1 });
      const vocabulary = new grammars.Vocabulary(model.tokenTable());
      const END = 1, { most, forms } = ${JSON.stringify(WALKS)};

      function walk(grammar, seed) {
        const constraint = grammar.begin();
        let state = seed, hash = 0x811c9dc5;
        for (let taken = 0; taken < most; taken += 1) {
          const mask = constraint.mask(), allowed = [];
          for (const [index, word] of mask.entries()) {
            hash = Math.imul(hash ^ word, 0x01000193);
            for (let bit = 0; bit < 32; bit += 1) if ((word >>> bit) & 1) allowed.push(32 * index + bit);
          }
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          const token = allowed[(state >>> 8) % allowed.length];
          constraint.accept(token);
          if (token === END) return { tokens: taken, hash: hash >>> 0 };
        }
        return { tokens: most, hash: hash >>> 0 };
      }

      for (const form of forms) {
        const grammar = new grammars.Grammar(vocabulary, form.kind, form.text);
        form.walks = form.walks.map(({ seed }) => ({ seed, ...walk(grammar, seed) }));
      }
      console.log(JSON.stringify(forms));
    `);
    expect(forms).toEqual(WALKS.forms);
  });
});

describe("a generation with a response format", () => {
  it("is valid under its schema with any seed, beside generations without one", async () => {
    const { people, alone, beside } = await inNode(`
      const model = await load();
      const options = { temperature: 1, maxTokens: 450 };
      const story = { temperature: 0, maxTokens: 30 };
      const alone = await model.generate("The dog", story).text();
      const person = (seed, more) =>
        model.generate("Once upon a time", { ...options, seed, responseFormat: { type: "json_schema", schema: SCHEMA }, ...more }).result;
      const besideIt = model.generate("The dog", story).text();
      const asText = { responseFormat: { type: "json_schema", schema: JSON.stringify(SCHEMA) } };
      const people = await Promise.all([
        person(1), person(2, { topK: 20 }), person(3, { temperature: 0 }), person(4, { logprobs: true, topLogprobs: 2 }),
        person(5, { speculative: { lookahead: 6 } }), person(1, asText), person(1, { speculative: { lookahead: 6 } }),
      ]);
      console.log(JSON.stringify({ people, alone, beside: await besideIt }));
    `);
    for (const { text, finishReason } of people) {
      expect(finishReason).toBe("stop");
      expect(text).toMatch(/^\{"name": ?"[^\n]*\}$/);
      checkPerson(JSON.parse(text));
    }
    expect(people[5].text).toBe(people[0].text);
    expect(people[6].text).toBe(people[0].text);
    expect(beside).toBe(alone);
  });

  it("is the same for samples, sessions and streams", async () => {
    const { samples, first, streamed } = await inNode(`
      const model = await load();
      const options = { temperature: 1, seed: 9, maxTokens: 450, responseFormat: { type: "json_schema", schema: SCHEMA } };
      const samples = await Promise.all(model.generateMany("Once", { ...options, n: 3 }).map((each) => each.text()));
      const session = model.session();
      await session.push("Once");
      const first = await session.generate(options).text();
      let streamed = "";
      for await (const { text } of model.generate("Once", options)) streamed += text;
      console.log(JSON.stringify({ samples, first, streamed }));
    `);
    for (const text of samples) checkPerson(JSON.parse(text));
    expect(new Set(samples).size).toBe(3);
    expect(first).toBe(samples[0]);
    expect(streamed).toBe(samples[0]);
  });

  it("ends for every seed, as the README's example expects, and says where it does not", async () => {
    const { people, objects, open, cut } = await inNode(`
      const model = await load();
      const schema = {
        type: "object",
        properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
        required: ["name", "age"],
      };
      const all = (responseFormat, more) => Promise.all(
        Array.from({ length: 20 }, (_, seed) => model.generate("Alice is", { temperature: 1, seed, responseFormat, ...more }).result),
      );
      const people = await all({ type: "json_schema", schema });
      const objects = await all({ type: "json_object" }, { maxTokens: 20 });
      const open = await all({ type: "json_schema", schema, openObjects: true }, { maxTokens: 80 });
      const long = { type: "json_schema", schema: { type: "string", minLength: 90 } };
      const cut = await model.generate("Alice is", { maxTokens: 5, responseFormat: long }).result;
      console.log(JSON.stringify({ people, objects, open, cut }));
    `);
    for (const { text, finishReason, unfinished } of people) {
      expect([finishReason, unfinished]).toEqual(["stop", undefined]);
      expect(Object.keys(JSON.parse(text))).toEqual(["name", "age"]);
    }
    for (const { text } of objects) expect(JSON.parse(text)).toBeTypeOf("object");
    const names = open.map((/** @type {any} */ { text }) => Object.keys(JSON.parse(text)).length);
    expect(Math.max(...names)).toBeGreaterThan(2);
    expect([cut.finishReason, cut.unfinished]).toEqual(["length", true]);
  });

  it("follows each kind of grammar", async () => {
    const { texts, objects } = await inNode(`
      const model = await load();
      const formats = [
        { type: "grammar", syntax: "regex", definition: "[0-9]{4}-[01][0-9]" },
        { type: "choice", choices: ["a very large elephant", "the moon"] },
        { type: "grammar", syntax: "lark", definition: 'start: "from " WORD " to " WORD\\nWORD: /[a-z]{3}/' },
        { type: "grammar", syntax: "gbnf", definition: 'root ::= "(" root ")" | [a-z] [a-z]' },
      ];
      const options = { temperature: 1, maxTokens: 400 };
      const text = (responseFormat, seed) => model.generate("The", { ...options, seed, responseFormat }).text();
      const texts = await Promise.all(formats.map(text));
      const objects = [1, 2, 3, 8, 24, 41].map((seed) => model.generate("The", { ...options, seed, responseFormat: { type: "json_object" } }).result);
      console.log(JSON.stringify({ texts, objects: await Promise.all(objects) }));
    `);
    const [regex, choice, lark, gbnf] = texts;
    for (const { text } of objects) expect(JSON.parse(text)).toBeTypeOf("object");
    expect(regex).toMatch(/^[0-9]{4}-[01][0-9]$/);
    expect(["a very large elephant", "the moon"]).toContain(choice);
    expect(lark).toMatch(/^from [a-z]{3} to [a-z]{3}$/);
    expect(gbnf).toMatch(/^\(*[a-z]{2}\)*$/);
  });

  it("is refused before its first token if the grammar does not compile, and the model stays usable", async () => {
    const { failures, after } = await inNode(`
      const model = await load();
      const formats = [
        { type: "json_schema", schema: { not: { type: "string" } } },
        { type: "json_schema", schema: { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] } },
        { type: "json_schema", schema: "no JSON" },
        { type: "grammar", syntax: "regex", definition: "(" },
        { type: "choice", choices: [] },
        { type: "grammar", syntax: "lark", definition: 'start: "a" start' },
        { type: "grammar", syntax: "gbnf", definition: "root ::= [a-" },
      ];
      const failures = [];
      for (const responseFormat of formats) {
        const seen = [];
        try {
          for await (const delta of model.generate("The", { responseFormat, maxTokens: 5 })) seen.push(delta);
        } catch ({ name, code, message }) {
          failures.push({ name, code, message, seen: seen.length });
        }
      }
      const after = await model.generate("The", { responseFormat: { type: "choice", choices: ["dog"] } }).text();
      console.log(JSON.stringify({ failures, after }));
    `);
    expect(failures).toHaveLength(7);
    for (const failure of failures) expect(failure).toMatchObject({ code: "bad-option", seen: 0 });
    const words = [
      "`not`",
      "goes on forever",
      "is no JSON",
      "regular expression",
      "choices is empty",
      "goes on",
    ];
    for (const [index, word] of words.entries()) expect(failures[index].message).toContain(word);
    expect(failures[6].message).toContain("line 1");
    expect(after).toBe("dog");
  });

  it("is refused in the words of the native crate if it exceeds a bound or its time", async () => {
    const { messages, late, after } = await inNode(`
      const model = await load();
      const format = ({ kind, text }) =>
        kind === "json_schema" ? { type: kind, schema: text }
        : kind === "choice" ? { type: kind, choices: JSON.parse(text) }
        : { type: "grammar", syntax: kind, definition: text };
      const refusal = (options) =>
        model.generate("The", options).text().then(() => "", ({ code, message }) => \`\${code}: \${message}\`);
      const messages = [];
      for (const form of ${JSON.stringify(REFUSALS)}) messages.push(await refusal({ responseFormat: format(form) }));
      const late = await refusal({ responseFormat: { type: "json_object" }, timeout: 0 });
      const after = await model.generate("The", { responseFormat: { type: "choice", choices: ["dog"] } }).text();
      console.log(JSON.stringify({ messages, late, after }));
    `);
    expect(messages).toEqual(
      REFUSALS.map((/** @type {{ message: string }} */ { message }) => `bad-option: ${message}`),
    );
    expect(late).toContain("is not compiled after 0ns");
    expect(after).toBe("dog");
  });

  it("ends if the grammar module fails, and the model stays usable", async () => {
    const { failures, after } = await inNode(`
      import { Constraint, Grammar } from "setun/wasm/grammar/setun.js";
      const broken = () => {
        throw new WebAssembly.RuntimeError("unreachable");
      };
      const model = await load();
      const failures = [];
      for (const [proto, name] of [[Constraint.prototype, "mask"], [Constraint.prototype, "accept"], [Grammar.prototype, "begin"]]) {
        const whole = { [name]: proto[name], free: proto.free };
        Object.assign(proto, { [name]: broken, free: broken });
        const failed = model.generate("The", { responseFormat: { type: "json_object" }, temperature: 1, maxTokens: 20 }).text();
        const beside = model.generate("The dog", { temperature: 0, maxTokens: 5 }).text();
        failures.push({ message: await failed.catch(({ message }) => message), beside: await beside });
        Object.assign(proto, whole);
      }
      const after = await model.generate("The", { responseFormat: { type: "choice", choices: ["dog"] } }).text();
      console.log(JSON.stringify({ failures, after }));
    `);
    expect(failures).toHaveLength(3);
    for (const { message, beside } of failures) {
      expect(message).toContain("unreachable");
      expect(beside).toBe(failures[0].beside);
      expect(beside).not.toBe("");
    }
    expect(after).toBe("dog");
  });

  it("can be stopped and aborted at any time, and frees its state", async () => {
    const { atOnce, reason, used, live } = await inNode(`
      import { Constraint, Grammar } from "setun/wasm/grammar/setun.js";
      const live = { states: 0, grammars: 0 };
      const count = (name, proto, begin, by) => {
        const made = proto[begin], freed = by.free;
        proto[begin] = function (...given) { live[name] += 1; return made.apply(this, given); };
        by.free = function () { live[name] -= 1; return freed.call(this); };
      };
      count("states", Grammar.prototype, "begin", Constraint.prototype);
      count("grammars", Grammar.prototype, "share", Grammar.prototype);
      const model = await load();
      const options = { responseFormat: { type: "json_object" }, temperature: 1, seed: 2 };
      // Before its grammar is compiled.
      const early = model.generate("The", options);
      early.stop();
      const atOnce = await early.result;
      const controller = new AbortController();
      let reason;
      try {
        for await (const _ of model.generate("The", { ...options, signal: controller.signal })) {
          controller.abort("enough");
        }
      } catch (thrown) {
        reason = thrown;
      }
      for await (const _ of model.generate("The", options)) break;
      await model.generate("The", { ...options, responseFormat: { type: "choice", choices: ["the moon"] } }).text();
      // What is stopped is freed some turns later.
      let used = 1;
      for (let left = 10_000; left > 0 && used + live.states + live.grammars > 0; left -= 1) {
        await new Promise((resolve) => setImmediate(resolve));
        used = (await model.metrics()).usedBlocks;
      }
      console.log(JSON.stringify({ atOnce, reason, used, live }));
    `);
    expect(atOnce).toMatchObject({ finishReason: "aborted", text: "" });
    expect(reason).toBe("enough");
    expect({ used, live }).toEqual({ used: 0, live: { states: 0, grammars: 0 } });
  });
});
