/** Samples, sessions and limits of the packed engine, in Node. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedModel } from "../test-support/checkpoint.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Output of the `setun` command, whose tests read the same file. */
const GOLDEN = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/embedded-samples.json", import.meta.url), "utf8"),
);
const { prompt, seed, temperature, max_tokens: maxTokens, texts } = GOLDEN;
const OPTIONS = { seed, temperature, maxTokens };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
  const template = new URL("../../tests/fixtures/chat-templates/Qwen3.5-4B.jinja", import.meta.url);
  const files = { ...embeddedModel(project.folder).folder, "chat_template.jinja": readFileSync(template) };
  const paths = Object.entries(files).map(([name, bytes]) => [`qwen/${name}`, bytes]);
  const names = JSON.stringify(Object.keys(files));
  await writeFiles(project.folder, { ...Object.fromEntries(paths), "qwen/names.json": names });
});
afterAll(() => project?.remove());

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const given = `const prompt = ${JSON.stringify(prompt)}, options = ${JSON.stringify(OPTIONS)};`;
  await writeFiles(project.folder, { "script.js": `import { load } from "setun";\n${given}\n${body}` });
  const place = { cwd: project.folder, encoding: /** @type {const} */ ("utf8") };
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], place),
  );
}

describe("the engine in Node", () => {
  it("returns the samples of the command line, and computes their prompt once", async () => {
    const found = await inNode(`
      const model = await load();
      const length = (await model.tokenize(prompt)).length;
      const samples = model.generateMany(prompt, { ...options, n: ${texts.length} });
      const texts = await Promise.all(samples.map((sample) => sample.text()));
      const { promptRows } = await model.metrics();
      console.log(JSON.stringify({ texts, length, promptRows }));
    `);
    expect(found.texts).toEqual(texts);
    expect(found.promptRows).toBeLessThanOrEqual(found.length);
  });

  it("generates the same texts with a draft model, whose tokens are all accepted if it is the model itself", async () => {
    const { alone, beside, sampled, expected, draftTokens, acceptedTokens } = await inNode(`
      const source = new URL("node_modules/setun/model/stories.safetensors", import.meta.url);
      const greedy = { temperature: 0, maxTokens: 60, speculative: { lookahead: 8 } };
      const [one, both] = [await load(), await load(source, { speculative: { draft: source } })];
      const texts = async (model) => {
        const all = [greedy, { ...options, speculative: { lookahead: 8 } }].map((each) => model.generate(prompt, each).text());
        return Promise.all(all);
      };
      const [alone, expected] = await texts(one);
      const [beside, sampled] = await texts(both);
      const { draftTokens, acceptedTokens } = await both.metrics();
      console.log(JSON.stringify({ alone, beside, sampled, expected, draftTokens, acceptedTokens }));
    `);
    expect(beside).toBe(alone);
    expect(sampled).toBe(expected);
    expect(acceptedTokens).toBeGreaterThan(40);
    expect(draftTokens).toBe(acceptedTokens);
  });

  it("refuses a draft model with another vocabulary", async () => {
    const draft = new URL("../../tests/fixtures/gguf/i2_s.gguf", import.meta.url);
    const { code, message } = await inNode(`
      const { code, message } = await load(undefined, { speculative: { draft: ${JSON.stringify(draft)} } }).catch((error) => error);
      console.log(JSON.stringify({ code, message }));
    `);
    expect(code).toBe("bad-option");
    expect(message).toContain("the vocabulary of a draft");
  });

  it("continues sessions that are forked, saved and restored", async () => {
    const { text, fork, restored, tokens, again, reused, code } = await inNode(`
      const greedy = { temperature: 0, maxTokens: 20 };
      const model = await load();
      const session = model.session();
      await session.push(prompt);
      const { text, tokens } = await session.generate(options).result;
      await session.push(tokens);
      const fork = session.fork();
      await session.push(" Then");
      await fork.push(" Then");
      const [one, two] = [session, fork].map((each) => each.generate(greedy).text());
      const bytes = await session.save();
      const other = await load();
      const restored = await other.restore(bytes);
      const again = await restored.generate(greedy).text();
      const { cachedPromptTokens } = await other.metrics();
      const code = await other.restore(bytes.slice(1)).catch((error) => error.code);
      console.log(JSON.stringify({
        text, code, again, fork: [await one, await two], reused: cachedPromptTokens,
        tokens: session.tokens, restored: restored.tokens,
      }));
    `);
    expect(text).toBe(texts[0]);
    expect(fork[0]).toBe(fork[1]);
    expect(again).toBe(fork[0]);
    expect(restored).toEqual(tokens);
    expect(reused).toBeGreaterThanOrEqual(32);
    expect(code).toBe("bad-checkpoint");
  });

  it("ends at its deadline, refuses requests beyond its queue, and resets the prefix cache", async () => {
    const { reason, codes, text, blocks, given } = await inNode(`
      const model = await load(undefined, { maxConcurrent: 1, queue: 1, contexts: 1 });
      const { finishReason } = await model.generate(prompt, { timeout: 0 }).result;
      const asked = Array.from({ length: 4 }, () => model.generate(prompt, options).text());
      const outcomes = await Promise.allSettled(asked);
      const codes = outcomes.map(({ reason }) => reason?.code ?? "done");
      const blocks = [(await model.metrics()).cachedBlocks];
      await model.resetPrefixCache();
      blocks.push((await model.metrics()).cachedBlocks);
      const given = [await model.releaseMemory("critical"), await model.releaseMemory("moderate")];
      const told = { reason: finishReason, codes, text: outcomes[0].value, blocks, given };
      console.log(JSON.stringify(told));
    `);
    expect(reason).toBe("timeout");
    expect(codes[0]).toBe("done");
    expect(codes).toContain("busy");
    expect(text).toBe(texts[0]);
    expect(blocks[0]).toBeGreaterThan(0);
    expect(blocks[1]).toBe(0);
    expect(given[0]).toBeGreaterThan(0);
    expect(given[1]).toBe(0);
  });

  it("keeps messages that the template takes only with one of the user, until it comes", async () => {
    const { whole, parts, none, forked, refused } = await inNode(`
      import { readFileSync } from "node:fs";
      const read = (name) => new Uint8Array(readFileSync("qwen/" + name));
      const names = JSON.parse(readFileSync("qwen/names.json", "utf8"));
      const model = await load(Object.fromEntries(names.map((name) => [name, read(name)])));
      const [system, user] = [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi" }];
      const pushed = async (...parts) => {
        const session = model.session();
        for (const part of parts) await session.push(part);
        return session;
      };
      const whole = (await pushed([system, user])).tokens;
      const parts = (await pushed([system], [user])).tokens;
      const waiting = await pushed([system]);
      const none = waiting.tokens;
      const fork = waiting.fork();
      const refused = [];
      const works = [() => waiting.generate(), () => waiting.save(), () => waiting.push("Hi"), () => waiting.push([1])];
      works.push(() => pushed([user, system]), () => pushed([{ role: "wizard", content: "a" }]));
      for (const work of works) refused.push(await (async () => work())().catch(({ code, message }) => [code, message]));
      await fork.push([user]);
      console.log(JSON.stringify({ whole, parts, none, forked: fork.tokens, refused }));
    `);
    expect([parts, none, forked]).toEqual([whole, [], whole]);
    for (const [code] of refused) expect(code).toBe("bad-option");
    const words = refused.map((/** @type {string[]} */ [, message]) =>
      message.includes("wait for one of the user"),
    );
    expect(words).toEqual([true, true, true, true, false, false]);
  });
});
