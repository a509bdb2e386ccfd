/** Tokenizers, templates and prompts of strangers in the packed engine, which cannot catch a panic: bounds alone hold. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Most bytes that WebAssembly and the script may take beside the model, which has some 100 MB with its engine. */
const MOST = 400_000_000;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

/** @type {any} */
let tokenizer;

beforeAll(async () => {
  project = await makeProject({});
  const { folder } = embeddedModel(project.folder);
  tokenizer = JSON.parse(String(folder["tokenizer.json"]));
  await writeFiles(
    project.folder,
    Object.fromEntries(
      Object.entries(folder).map(([name, bytes]) => [`model/${name}`, /** @type {any} */ (bytes)]),
    ),
  );
});
afterAll(() => project?.remove());

/** Runs a module in the project, with `opened(files)`: a model with other texts beside it. @param {string} body */
async function inNode(body) {
  const begin = `
    import { readdirSync, readFileSync } from "node:fs";
    import { load } from "setun";
    const names = readdirSync("model");
    const own = Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync("model/" + name))]));
    const bytes = (text) => new TextEncoder().encode(text);
    const opened = (texts) =>
      load({ ...own, ...Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, bytes(text)])) });
    const words = (promise) => promise.then(() => "", ({ code, message }) => \`\${code}: \${message}\`);`;
  const end = "console.log(JSON.stringify({ ...told, memory: process.resourceUsage().maxRSS * 1024 }));";
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}\n${end}` });
  const options = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  const told = JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], options),
  );
  expect(told.memory).toBeLessThan(MOST);
  return told;
}

/** The messages of `told`, each of which contains the words of its case. @param {string[]} told @param {string[][]} cases */
function expectWords(told, cases) {
  expect(told).toHaveLength(cases.length);
  for (const [index, [, words]] of cases.entries()) expect(told[index]).toContain(words);
}

it("refuses a tokenizer that would panic or grow, and loads the model with a good one afterwards", async () => {
  const double = { type: "Replace", pattern: { String: "a" }, content: "aa" };
  const strip = { type: "Strip", content: "a", start: 0, stop: 4_294_967_295 };
  const special = { ...tokenizer.post_processor, single: [{ SpecialToken: { id: "<none>", type_id: 0 } }] };
  const changed = (/** @type {object} */ change) => JSON.stringify({ ...tokenizer, ...change });
  const pieces = Array.from({ length: 500 }, (_, length) => ["a".repeat(length + 1), -1]);
  const cases = [
    [
      changed({ decoder: { type: "Sequence", decoders: [strip] } }),
      "`decoder.decoders[0].stop` of tokenizer.json",
    ],
    [changed({ post_processor: special }), "`post_processor.single[0]` of tokenizer.json is `<none>`"],
    [changed({ normalizer: { type: "Precompiled", precompiled_charsmap: "AAAA" } }), "precompiled_charsmap`"],
    [
      changed({ normalizer: { type: "Prepend", prepend: "a".repeat(1 << 20) } }),
      "is 1048576 bytes, expected",
    ],
    [
      changed({ model: { ...tokenizer.model, vocab: { ...tokenizer.model.vocab, zz: 4_294_967_295 } } }),
      "4294967295 of `zz`",
    ],
    [changed({ model: { type: "Unigram", unk_id: 0, vocab: pieces } }), "of tokens that begin one token"],
    [changed({}).slice(0, 100_000), "tokenizer.json cannot be read: EOF"],
    [`{"normalizer": ${"[".repeat(100_000)}`, "recursion limit"],
  ];
  const growing = changed({ normalizer: { type: "Sequence", normalizers: Array(40).fill(double) } });
  const told = await inNode(`
    const refused = [];
    for (const text of ${JSON.stringify(cases.map(([text]) => text))}) {
      refused.push(await words(opened({ "tokenizer.json": text })));
    }
    const growing = await opened({ "tokenizer.json": ${JSON.stringify(growing)} });
    const grown = await words(growing.generate("a".repeat(300), { maxTokens: 1 }).text());
    const [after, prompt] = [await growing.generate("The dog", { maxTokens: 1 }).result, "a".repeat(10_500_000)];
    const long = await words(growing.generate(prompt).text());
    const good = await opened({});
    const beyond = await words(good.generate(prompt).text());
    const text = await good.generate("The dog", { temperature: 0, maxTokens: 5 }).text();
    const told = { refused, grown, long, beyond, text, after: after.finishReason };
  `);
  expectWords(told.refused, cases);
  for (const refused of told.refused) expect(refused).toMatch(/^bad-checkpoint: /);
  expect(told.grown).toContain("a normalizer could make");
  expect(told.long).toMatch(/context-full|a normalizer could make/);
  expect(told.beyond).toMatch(/^context-full: .*at least/);
  expect(told.after).toBe("length");
  expect(told.text).not.toBe("");
});

it("stops a chat template that requests too much, and renders the next conversation", async () => {
  const cases = [
    ["{{ range(100000)|join('a'*100000) }}", "bytes of text and lists"],
    ["{{ 'a' * 999999999 }}", "bytes of text and lists"],
    ["{{ ('a' * 99999)|replace('', 'a' * 99999) }}", "bytes of text and lists"],
    ["{{ '%999999999d'|format(1) }}", "characters in one field of a format"],
    ["{% for i in range(999999999) %}{% endfor %}", "entries of a range"],
    ["{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "open blocks and macros"],
    [
      "{% set s = 'a' * 1000000 %}{% for i in range(9999) %}{% if s is endingwith s %}{% endif %}{% endfor %}",
      "steps, at most 50000000 are allowed",
    ],
  ];
  const told = await inNode(`
    const messages = [{ role: "user", content: "Once" }];
    const refused = [];
    for (const source of ${JSON.stringify(cases.map(([source]) => source))}) {
      const model = await opened({ "chat_template.jinja": "{% if messages[0].content == 'Once' %}" + source + "{% endif %}Once" });
      refused.push(await words(model.chat(messages, { maxTokens: 1 }).text()));
      const other = [{ role: "user", content: "The dog" }];
      if ((await model.chat(other, { maxTokens: 1 }).result).finishReason !== "length") refused.push("it ended");
      await model.dispose();
    }
    const told = { refused, deep: await words(opened({ "chat_template.jinja": ${JSON.stringify("{{ ")} + "[".repeat(9999) })) };
  `);
  expectWords(told.refused, cases);
  for (const refused of told.refused)
    expect(refused).toMatch(/^bad-option: template `default` is stopped at line 1/);
  expect(told.deep).toMatch(/^bad-checkpoint: /);
});
