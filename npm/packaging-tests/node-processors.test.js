/** Custom logits processors in Node, which equal the engine's own options to the bit. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROCESSORS } from "../test-support/processors.js";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject(PROCESSORS);
});
afterAll(() => project?.remove());

const BEGIN = `
  import { load } from "setun";
  const model = await load();
  const prompt = "Once upon a time";
  const at = (module, options) => ({ logitsProcessors: [{ module: new URL(module, import.meta.url), options }] });
  /** All that can be told of a text. */
  const told = async (generation) => {
    const deltas = [];
    for await (const delta of generation) deltas.push(delta);
    return deltas;
  };
  const plain = { temperature: 0, maxTokens: 40, repetitionPenalty: 1 };
  const wild = { temperature: 1, topK: 0, topP: 1, seed: 5, maxTokens: 40, repetitionPenalty: 1.1 };
`;

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  await writeFiles(project.folder, { "script.js": `${BEGIN}\n${body}` });
  const script = join(project.folder, "script.js");
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, script], { cwd: project.folder, encoding: "utf8" }),
  );
}

describe("a processor in Node", () => {
  it("that bans tokens equals the option: greedy, sampled, speculated, in samples and beam search", async () => {
    const pairs = await inNode(`
      const tokens = (await model.generate(prompt, plain).result).tokens.slice(0, 20);
      const both = async (options, tell) => {
        const own = tell({ ...options, ...at("./ban.js", { tokens }) });
        return [await own, await tell({ ...options, bannedTokens: tokens })];
      };
      const generated = (options) => told(model.generate(prompt, options));
      const samples = (options) => Promise.all(model.generateMany(prompt, { ...options, n: 3 }).map(told));
      console.log(JSON.stringify([
        await both({ ...plain, logprobs: true, topLogprobs: 3 }, generated),
        await both({ ...wild, logprobs: true }, generated),
        await both({ ...plain, speculative: { lookahead: 12 } }, generated),
        await both({ ...wild, samplingOrder: ["topK", "logitsProcessors", "tokens"], topK: 300 }, generated),
        await both(wild, samples),
        await both({ numBeams: 3, numReturnSequences: 2, maxTokens: 12 }, (options) => model.beamSearch(prompt, options)),
      ]));
    `);
    for (const [own, option] of pairs) expect(own).toEqual(option);
    expect(new Set(pairs.map((/** @type {any} */ [own]) => JSON.stringify(own))).size).toBe(pairs.length);
    const [[greedy], , [ahead]] = pairs;
    const ids = (/** @type {any[]} */ deltas) => deltas.map(({ token }) => token);
    expect(ids(ahead)).toEqual(ids(greedy));
  });

  it("that adds to logits equals the option", async () => {
    const [own, option, without] = await inNode(`
      const biases = Object.fromEntries(Array.from({ length: 4096 }, (_, token) => [token, (token % 7) / 3]));
      const options = { ...wild, repetitionPenalty: 1, logprobs: true };
      console.log(JSON.stringify([
        await told(model.generate(prompt, { ...options, ...at("./bias.js", biases) })),
        await told(model.generate(prompt, { ...options, logitBias: biases })),
        await told(model.generate(prompt, options)),
      ]));
    `);
    expect(own).toEqual(option);
    expect(own).not.toEqual(without);
  });

  it("gets the logits of the reported probabilities, and all previous tokens", async () => {
    const { wrong, lengths, tokens, dropped } = await inNode(`
      const { seen } = await import("./seen.js");
      const [banned] = (await model.generate(prompt, plain).result).tokens;
      const options = { ...plain, bannedTokens: [banned], topLogprobs: 5, logprobs: true };
      const generation = model.generate(prompt, { ...options, logitsProcessors: ["seen.js"] });
      const wrong = [];
      let place = 0;
      for await (const { token, topLogprobs } of generation) {
        const [logits] = seen[place];
        if (logits.indexOf(Math.max(...logits)) !== token) wrong.push([place, "it is not the best"]);
        // Two logarithms of probabilities are as far from each other as their logits.
        const [first, ...others] = topLogprobs.filter(({ token }) => token !== banned);
        for (const other of others) {
          const found = logits[first.token] - logits[other.token];
          if (Math.abs(first.logprob - other.logprob - found) > 1e-12) wrong.push([place, first, other, found]);
        }
        place += 1;
      }
      const before = [...await model.tokenize(prompt)];
      const { tokens } = await generation.result;
      console.log(JSON.stringify({
        wrong,
        lengths: [seen.length, tokens.length],
        tokens: seen.every(([, known], place) => String([...known]) === String([...before, ...tokens.slice(0, place)])),
        dropped: seen.every(([logits]) => logits[banned] === -Infinity && logits.length === model.info.vocabSize),
      }));
    `);
    expect(wrong).toEqual([]);
    expect(lengths).toEqual([40, 40]);
    expect([tokens, dropped]).toEqual([true, true]);
  });

  it("works in a batch and under preemption", async () => {
    const { texts, expected, preemptions } = await inNode(`
      const lists = [[], [13, 15], [405], [260, 285, 15]];
      const options = { ...wild, maxTokens: 180, minTokens: 180 };
      const expected = [];
      for (const tokens of lists) {
        expected.push(await model.generate(prompt, { ...options, bannedTokens: tokens }).text());
      }
      const small = await load(undefined, { contexts: 1, maxConcurrent: 4 });
      const texts = await Promise.all(
        lists.map((tokens) => small.generate(prompt, { ...options, ...at("./ban.js", { tokens }) }).text()),
      );
      console.log(JSON.stringify({ texts, expected, preemptions: (await small.metrics()).preemptions }));
    `);
    expect(texts).toEqual(expected);
    expect(new Set(texts).size).toBe(4);
    expect(preemptions).toBeGreaterThan(0);
  });

  it("ends only its own generation when it fails", async () => {
    const { failed, beside, alone, after, counted } = await inNode(`
      const fails = [
        ["late.js", undefined], // a factory that wants options
        [{ module: "late.js", options: { tokens: 8 } }],
        ["nothing.js"],
        ["missing.js"],
        [() => 7, () => { throw "words"; }],
        [(logits) => void logits.fill(NaN)],
        [(logits) => void logits.fill(-Infinity)],
        [(logits) => void structuredClone(logits, { transfer: [logits.buffer] })],
        [async () => {}],
      ];
      const alone = await model.generate(prompt, wild).text();
      const beside = model.generate(prompt, wild).text();
      const failed = [];
      for (const processors of fails) {
        const generation = model.generate(prompt, { ...plain, logitsProcessors: processors.filter(Boolean) });
        const { name, code, message, cause } = await generation.text().catch((error) => error);
        failed.push([name, code, message, String(cause)]);
      }
      const { failed: count, running, waiting } = await model.metrics();
      console.log(JSON.stringify({
        failed, alone, beside: await beside, counted: [count, running, waiting],
        after: await model.generate(prompt, wild).text(),
      }));
    `);
    const words = failed.map((/** @type {string[]} */ [, , message, cause]) => `${message} | ${cause}`);
    for (const [name, code] of failed) expect([name, code]).toEqual(["SetunError", "bad-option"]);
    const [late, thrown, nothing, missing, second, number, none, away, promise] = words;
    expect(late).toMatch(/^logitsProcessors\[0\]: file:.*late\.js has thrown TypeError: .* \| TypeError/);
    expect(thrown).toMatch(
      /^a logits processor failed: file:.*late\.js has thrown RangeError: that is enough \| RangeError: that/,
    );
    expect(nothing).toMatch(/nothing\.js has undefined as its default export, expected a function/);
    expect(missing).toMatch(
      /missing\.js cannot be loaded: .*\[ERR_MODULE_NOT_FOUND\].* \| Error.*: Cannot find module/,
    );
    expect(second).toMatch(/^a logits processor failed: logitsProcessors\[1\] has thrown words \| words$/);
    expect(number).toMatch(/logitsProcessors\[0\] gave token 0 the logit NaN/);
    expect(none).toMatch(/no token may come next/);
    expect(away).toMatch(/has transferred its logits array/);
    expect(promise).toMatch(/has returned a promise/);
    expect([beside, after]).toEqual([alone, alone]);
    // Those that could not be made were never begun.
    expect(counted.slice(0, 1)).toEqual([6]);
  });
});
