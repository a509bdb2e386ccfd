/** Embeddings, stop tokens, usage and streams of the packed engine, in Node. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProject, NODE_OPTIONS, writeFiles } from "../test-support/project.js";

/** Output of the `setun` command, whose tests read the same file. */
const GOLDEN = JSON.parse(
  readFileSync(new URL("../../tests/fixtures/embedded-embeddings.json", import.meta.url), "utf8"),
);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({});
});
afterAll(() => project?.remove());

/** Runs a module in the project; it prints one JSON value. @param {string} body */
async function inNode(body) {
  const begin = `import { load } from "setun";\nconst model = await load();`;
  await writeFiles(project.folder, { "script.js": `${begin}\n${body}` });
  return JSON.parse(
    execFileSync(process.execPath, [...NODE_OPTIONS, join(project.folder, "script.js")], {
      encoding: "utf8",
    }),
  );
}

describe("the engine in Node", () => {
  it("embeds texts as the command does, to the bit", async () => {
    const found = await inNode(`
      const texts = ${JSON.stringify(GOLDEN.texts)};
      const last = await model.embedMany(texts);
      const mean = await model.embedMany(texts, { pooling: "mean" });
      const one = await model.embed(texts[1], { normalize: false });
      const length = Math.hypot(...one.embedding);
      const cosine = one.embedding.reduce((sum, value, at) => sum + value * last.embeddings[1][at], 0) / length;
      const refused = await model.embedMany(["a", "a ".repeat(2000)]).catch(({ code }) => code);
      const values = ({ embeddings }) => embeddings.map((each) => [...each]);
      console.log(JSON.stringify({ last: values(last), mean: values(mean), usage: last.usage, cosine, length, refused }));
    `);
    for (const pooling of ["last", "mean"]) {
      for (const [index, expected] of GOLDEN[pooling].entries()) {
        expect(found[pooling][index].slice(0, expected.length)).toEqual(expected.map(Math.fround));
      }
    }
    expect(found.usage.promptTokens).toBe(GOLDEN.tokens[0] + GOLDEN.tokens[1]);
    expect(found.cosine).toBeCloseTo(1, 5);
    expect(Math.abs(found.length - 1)).toBeGreaterThan(0.01);
    expect(found.refused).toBe("context-full");
  });

  it("goes on beyond the context by a strategy's name, with the command's numbers", async () => {
    const { length, named, counted, cut } = await inNode(`
      const length = model.info.contextLength;
      const options = { temperature: 0, minTokens: length + 40, maxTokens: length + 40 };
      const texts = (strategies) => Promise.all(strategies.map((contextOverflow) =>
        model.generate("Once upon a time", { ...options, contextOverflow }).text()));
      const [quarter, half] = [4, 2].map((share) => Math.floor(length / share));
      const named = await texts(["truncate_middle", "sliding_window"]);
      const counted = await texts([
        { type: "truncate_middle", keep: quarter, room: quarter },
        { type: "sliding_window", sinks: 4, window: half },
      ]);
      const cut = await model.generate("Once upon a time", { ...options, contextOverflow: "stop" }).text();
      console.log(JSON.stringify({ length, named, counted, cut }));
    `);
    expect(named).toEqual(counted);
    expect(new Set([...named, cut]).size).toBe(3);
    for (const text of named) expect(text.length).toBeGreaterThan(cut.length);
    expect(length).toBeGreaterThan(4);
  });

  it("quantizes activations with as many scales as the option says", async () => {
    const bonsai = new URL("../../tests/fixtures/families/qwen3-bonsai/type142.gguf", import.meta.url);
    const [own, wide, row, narrow] = await inNode(`
      const embedded = async (options) => {
        const model = await load(${JSON.stringify(bonsai)}, options);
        return [...(await model.embed("Once upon a time")).embedding];
      };
      const all = [];
      for (const activationGroup of [undefined, 128, "row", 32]) all.push(await embedded({ activationGroup }));
      console.log(JSON.stringify(all));
    `);
    expect(wide).toEqual(own);
    expect(row).not.toEqual(own);
    expect(narrow).not.toEqual(own);
    expect(narrow).not.toEqual(row);
    const refused = await inNode(`
      const refused = await load(undefined, { activationGroup: 48 }).catch(({ code, message }) => ({ code, message }));
      console.log(JSON.stringify(refused));
    `);
    const message = "activationGroup: expected one of row, 32, 64, 128, found 48";
    expect(refused).toEqual({ code: "bad-option", message });
  });

  it("keeps heads as the option says: with and without a screen the bits are the same", async () => {
    const bonsai = ["type142", "type143", "type42g64"].map((name) => `families/qwen3-bonsai/${name}.gguf`);
    const gguf = ["i2_s", "tq2_0", "tq1_0", "qwen3-q2_0"].map((name) => `gguf/${name}.gguf`);
    const fixtures = ["golden/real-tinystories-1m", ...bonsai, ...gguf];
    const urls = fixtures.map((name) => new URL(`../../tests/fixtures/${name}`, import.meta.url).href);
    const found = await inNode(`
      const texts = async (source, headType) => {
        const model = await load(source, { headType });
        const all = [];
        for (const options of [{ temperature: 0 }, { temperature: 0.8, topK: 20, seed: 3 }, { temperature: 1, seed: 4 }]) {
          const { tokens, text } = await model.generate("Once", { ...options, maxTokens: 24 }).result;
          all.push([tokens, text]);
        }
        const { scores } = await model.classify("Once", [" a", " b"]);
        await model.dispose();
        return JSON.stringify([all, scores]);
      };
      const found = [];
      const { models } = await import("setun");
      for (const source of [undefined, ...${JSON.stringify(urls)}]) {
        const [auto, stored, screened, int8] = [
          await texts(source, "auto"), await texts(source, "stored"), await texts(source, "screened"), await texts(source, "int8"),
        ];
        found.push([auto === stored, screened === stored, int8 === stored]);
      }
      const estimates = {};
      for (const headType of ["auto", "stored", "screened", "int8"]) {
        const { memory, headType: taken } = await models.estimate(undefined, { headType });
        estimates[headType] = [memory.weights, taken];
      }
      console.log(JSON.stringify({ found, estimates }));
    `);
    for (const [auto, screened] of found.found) expect([auto, screened]).toEqual([true, true]);
    // The rounded head of the story model has other log-probabilities.
    expect(found.found[0][2]).toBe(false);
    const { auto, stored, screened, int8 } = found.estimates;
    expect([auto[1], stored[1], screened[1], int8[1]]).toEqual(["auto", "stored", "screened", "int8"]);
    expect(auto[0]).toBe(screened[0]);
    expect(stored[0]).toBeLessThan(auto[0]);
    expect(int8[0]).toBeLessThan(stored[0]);
  });

  it("ends at a stop token, and tells the cached tokens of a prompt and the text of likely ones", async () => {
    const { whole, stopped, again, named, counted, refused, filtered, wrong } = await inNode(`
      const prompt = "Once upon a time there was a little dog who liked to play in the park. ".repeat(4);
      const options = { temperature: 0, maxTokens: 20 };
      const whole = await model.generate(prompt, options).result;
      const stop = { ...options, stopTokenIds: [whole.tokens[7]] };
      const stopped = await model.generate(prompt, stop).result;
      const named = [];
      const deltas = model.generate(prompt, { ...options, topLogprobs: 1 }).toReadableStream();
      for await (const { text, topLogprobs } of deltas) named.push([text, topLogprobs[0].text]);
      const again = (await model.generate(prompt, options).result).usage;
      const counted = await model.countTokens(prompt);
      const refused = await model.generate("a", { stopTokenIds: [2 ** 31] }).text().catch(({ code }) => code);
      const filter = [{ word: "the", replace: "a" }, { regex: "[a-z]{4,}\\\\b", replace: "#" }];
      const filtered = await model.generate(prompt, { ...options, filter }).text();
      const wrong = await model.generate("a", { filter: [{ regex: "(", stop: true }] }).text().catch(({ message }) => message);
      console.log(JSON.stringify({ whole, stopped, again, named, counted, refused, filtered, wrong }));
    `);
    const first = whole.tokens.indexOf(whole.tokens[7]);
    expect(stopped.tokens).toEqual(whole.tokens.slice(0, first + 1));
    expect(whole.text.startsWith(stopped.text)).toBe(true);
    expect(stopped.finishReason).toBe("stop");
    expect(named.map(([text]) => text).join("")).toBe(named.map(([, text]) => text).join(""));
    expect(whole.usage).toMatchObject({ promptTokens: counted, cachedTokens: 0, totalTokens: counted + 20 });
    expect(again.cachedTokens).toBeGreaterThan(0);
    expect(refused).toBe("bad-option");
    expect(filtered).toBe(whole.text.replace(/\bthe\b/gi, "a").replace(/[a-z]{4,}\b/g, "#"));
    expect(filtered).toContain("#");
    expect(wrong).toContain("unclosed group");
  });
});
