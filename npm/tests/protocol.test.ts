import { beforeEach, describe, expect, it } from "vitest";
import { SetunError } from "../src/errors.js";
import { connectLocal } from "../src/host-links.js";
import { type Load, loadOn } from "../src/load.js";
import type { LoadProgress } from "../src/load-progress.js";
import type { Model } from "../src/model.js";
import { countedModel, emptyLog, fakeBuild, type Log } from "./fake-wasm.js";

const files = { "a.safetensors": new Uint8Array(16) };
let log: Log;
let load: Load;

beforeEach(() => {
  log = emptyLog();
  load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
});

async function collect(model: Model, prompt: string, maxTokens: number): Promise<string> {
  let text = "";
  for await (const delta of model.generate(prompt, { maxTokens })) text += delta.text;
  return text;
}

describe("load", () => {
  it("reads the requested files, and reports progress", async () => {
    const seen: unknown[] = [];
    const model = await load(files, { onProgress: (progress) => seen.push(progress) });
    const file = "a.safetensors";
    expect(seen).toEqual([
      { phase: "connecting", file, loadedBytes: 0 },
      { phase: "packing", file, loadedBytes: 8, totalBytes: 16 },
      { phase: "ready", file, loadedBytes: 16, totalBytes: 16 },
    ]);
    const used = { backend: "auto", build: "simd128", warnings: [], worker: false };
    expect(model.info).toEqual({ name: "a.safetensors", ...used });
    expect(log).toMatchObject({ opened: 1, closed: 1 });
  });

  it.each([
    [{ "a.safetensors": new Uint8Array(12) }, "truncated", "a.safetensors: too short"],
    [{ "b.gguf": new Uint8Array(16) }, "not-found", "a.safetensors (among b.gguf): no such file"],
  ])("rejects with a code and closes the files: %#", async (source, code, message) => {
    await expect(load(source as never)).rejects.toMatchObject({ name: "SetunError", code, message });
    expect(log).toMatchObject({ opened: 1, closed: 1 });
  });

  it("rejects with the reason of a signal that was aborted before or meanwhile", async () => {
    const reason = { mine: true };
    await expect(load(files, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const onProgress = ({ phase }: LoadProgress) => {
      if (phase === "packing") controller.abort(reason);
    };
    const loading = load(files, { signal: controller.signal, onProgress });
    await expect(loading).rejects.toBe(reason);
    await expect.poll(() => log).toMatchObject({ opened: 1, closed: 1, freed: [] });
  });

  it("passes the limits to the engine", async () => {
    await load(files, { contexts: 2, queue: 3 });
    expect(log.place).toEqual({ backend: "auto", threads: 1, contexts: 2, queue: 3 });
    await expect(load(files, { maxConcurrent: 0 })).rejects.toMatchObject({ code: "bad-option" });
  });

  it("passes the columns of activations that share a scale to the engine", async () => {
    for (const activationGroup of ["row", 32, 64, 128] as const) {
      await load(files, { activationGroup });
      expect(log.place).toEqual({ backend: "auto", threads: 1, activationGroup });
    }
    const message = "activationGroup: expected one of row, 32, 64, 128, found 48";
    const refused = load(files, { activationGroup: 48 as 32 });
    await expect(refused).rejects.toMatchObject({ code: "bad-option", message });
  });

  it("refuses a worker on a platform without workers", async () => {
    await expect(load(files, { worker: true })).rejects.toMatchObject({ code: "bad-option" });
  });
});

describe("a generation", () => {
  it("streams all tokens in order, then the result", async () => {
    const model = await load(files);
    const generation = model.generate("abc", { maxTokens: 5 });
    const deltas = [];
    for await (const delta of generation) deltas.push(delta);
    expect(deltas).toEqual([0, 1, 2, 3, 4].map((token) => ({ text: `${token} `, token })));
    expect(await generation.result).toMatchObject({
      text: "0 1 2 3 4 ",
      finishReason: "length",
      tokens: [0, 1, 2, 3, 4],
      usage: { promptTokens: 3, completionTokens: 5 },
      build: "simd128",
    });
    expect(await generation.text()).toBe("0 1 2 3 4 ");
    expect(log.freed).toEqual(["generation"]);
  });

  it("reports prompt log-probabilities apart from its tokens", async () => {
    const model = await load(files);
    const generation = model.generate("né", { maxTokens: 3, promptLogprobs: true });
    expect((await generation.promptLogprobs).map(({ text, token }) => [text, token])).toEqual([
      ["n", 110],
      ["é", 233],
    ]);
    expect(log.turns).toBeLessThanOrEqual(5);
    const deltas = [];
    for await (const { token } of generation) deltas.push(token);
    expect(deltas).toEqual([0, 1, 2]);
    expect(await generation.text()).toBe("0 1 2 ");
    expect(await model.generate("a", { maxTokens: 1 }).promptLogprobs).toEqual([]);
    await expect(model.generate("bad", { promptLogprobs: true }).promptLogprobs).rejects.toMatchObject({
      code: "context-full",
    });
  });

  it("runs to its end for text() and result", async () => {
    const model = await load(files);
    expect(await model.generate("a", { maxTokens: 50 }).text()).toMatch(/ 49 $/);
    expect((await model.generate("a", { maxTokens: 50 }).result).usage.completionTokens).toBe(50);
  });

  it("waits for a slow reader", async () => {
    const model = await load(files);
    const iterator = model.generate("a")[Symbol.asyncIterator]();
    await iterator.next();
    // Its credit, and the turn that was read.
    await expect.poll(() => log.turns).toBe(5);
    // Another one takes thirty turns meanwhile.
    await collect(model, "b", 60);
    expect(log.turns).toBe(5 + 30);
    await iterator.return?.();
  });

  it("runs in parallel with others", async () => {
    const model = await load(files);
    const texts = await Promise.all([
      collect(model, "a", 30),
      collect(model, "b", 20),
      collect(model, "c", 10),
    ]);
    expect(texts.map((text) => text.split(" ").length - 1)).toEqual([30, 20, 10]);
  });

  it("stops when the loop is left", async () => {
    const model = await load(files);
    const generation = model.generate("a");
    for await (const { token } of generation) if (token === 2) break;
    expect((await generation.result).finishReason).toBe("aborted");
    expect(log.freed).toEqual(["generation"]);
  });

  it("ends normally when stopped", async () => {
    const model = await load(files);
    const generation = model.generate("a");
    let text = "";
    for await (const delta of generation) {
      text += delta.text;
      if (delta.token === 2) generation.stop();
    }
    const result = await generation.result;
    expect(result.finishReason).toBe("aborted");
    expect(result.text).toBe(text);
  });

  it("rejects all promises with the signal's reason", async () => {
    const model = await load(files);
    const controller = new AbortController();
    const generation = model.generate("a", { signal: controller.signal });
    const reason = new Error("enough");
    const reading = (async () => {
      for await (const { token } of generation) if (token === 2) controller.abort(reason);
    })();
    await expect(reading).rejects.toBe(reason);
    await expect(generation.result).rejects.toBe(reason);
    await expect(generation.text()).rejects.toBe(reason);
    await expect.poll(() => log.freed).toEqual(["generation"]);
  });

  it("does nothing for a signal that is aborted already", async () => {
    const model = await load(files);
    const generation = model.generate("a", { signal: AbortSignal.abort("no") });
    await expect(generation.text()).rejects.toBe("no");
    expect(log.turns).toBe(0);
  });

  it("can be iterated once", async () => {
    const model = await load(files);
    const generation = model.generate("a", { maxTokens: 1 });
    for await (const _ of generation);
    await expect(generation[Symbol.asyncIterator]().next()).rejects.toThrow(TypeError);
  });

  it("fails with the engine's code, and the model stays usable", async () => {
    const model = await load(files);
    await expect(collect(model, "bad", 3)).rejects.toMatchObject({
      name: "SetunError",
      code: "context-full",
    });
    await expect(model.chat([{ role: "user", content: "hi" }]).text()).rejects.toMatchObject({
      code: "bad-option",
    });
    expect(await collect(model, "a", 3)).toBe("0 1 2 ");
  });

  it("throws for a bad option at once", async () => {
    const model = await load(files);
    expect(() => model.generate("a", { topP: 2 })).toThrow(expect.objectContaining({ code: "bad-option" }));
    expect(log.turns).toBe(0);
  });
});

describe("samples", () => {
  it("start with one request, and are read and stopped separately", async () => {
    const model = await load(files);
    const [first, second, third] = model.generateMany("abc", { n: 3, maxTokens: 30 });
    expect(await second?.text()).toMatch(/^0 1 .* 29 $/);
    third?.stop();
    expect(await third?.result).toMatchObject({ finishReason: "aborted" });
    const deltas = [];
    for await (const { token } of first ?? []) deltas.push(token);
    expect(deltas).toHaveLength(30);
    expect(log.asked).toEqual([{ prompt: "abc", count: 3 }]);
    expect(log.freed).toEqual(["generation", "generation", "generation"]);
    expect(await collect(model, "a", 3)).toBe("0 1 2 ");
  });

  it("fail together when refused, and separately later", async () => {
    const model = await load(files);
    for (const sample of model.generateMany([{ role: "user", content: "hi" }], { n: 2 }))
      await expect(sample.text()).rejects.toMatchObject({ code: "bad-option" });
    for (const sample of model.generateMany("bad", { n: 2 }))
      await expect(sample.result).rejects.toMatchObject({ code: "context-full" });
    await model.dispose();
    for (const sample of model.generateMany("a", { n: 2 }))
      await expect(sample.text()).rejects.toMatchObject({ code: "disposed" });
  });

  it("do nothing for an aborted signal, and all end when it aborts", async () => {
    const model = await load(files);
    for (const sample of model.generateMany("a", { n: 2, signal: AbortSignal.abort("no") }))
      await expect(sample.text()).rejects.toBe("no");
    expect(log.asked).toEqual([]);
    const controller = new AbortController();
    const samples = model.generateMany("a", { n: 2, signal: controller.signal });
    controller.abort("enough");
    for (const sample of samples) await expect(sample.text()).rejects.toBe("enough");
    await expect.poll(() => log.freed).toEqual(["generation", "generation"]);
  });

  it.each([0, 1.5, 65537, "2"])("refuse n of %s", async (count) => {
    const model = await load(files);
    const refused = () => model.generateMany("a", { n: count as number });
    expect(refused).toThrow(expect.objectContaining({ code: "bad-option" }));
  });
});

describe("a session", () => {
  it("is extended, forked and truncated", async () => {
    const model = await load(files);
    const session = model.session();
    expect(session.tokens).toEqual([]);
    await session.push("né");
    await session.push([97, 98]);
    await session.push(Uint32Array.of(99));
    await session.push([]);
    const fork = session.fork();
    fork.truncate(2);
    fork.truncate(7);
    await fork.push("x");
    expect(session.tokens).toEqual([110, 233, 97, 98, 99]);
    expect(fork.tokens).toEqual([110, 233, 120]);
    expect(await fork.generate({ maxTokens: 2 }).text()).toBe("0 1 ");
    expect(log.asked).toEqual([{ prompt: Uint32Array.of(110, 233, 120), count: 1 }]);
    fork.truncate(-1);
    expect(fork.tokens).toEqual([]);
  });

  it("is saved and restored", async () => {
    const model = await load(files);
    const session = model.session();
    await session.push("abc");
    const bytes = await session.save();
    expect((await model.restore(bytes)).tokens).toEqual(session.tokens);
    await expect(model.restore(new Uint8Array())).rejects.toMatchObject({ code: "bad-checkpoint" });
    await expect(model.restore("abc" as never)).rejects.toMatchObject({ code: "bad-option" });
  });

  it("keeps its tokens when a push fails, and is locked until then", async () => {
    const model = await load(files);
    const session = model.session();
    await session.push("abc");
    for (const wrong of [[1.5], [-1], [{ role: "user" }], 7, null])
      await expect(session.push(wrong as never)).rejects.toMatchObject({ code: "bad-option" });
    const pushed = session.push([{ role: "user", content: "hi" }]);
    expect(() => session.tokens).toThrow(TypeError);
    expect(() => session.generate()).toThrow(TypeError);
    await expect(session.push("d")).rejects.toThrow(TypeError);
    await expect(pushed).rejects.toMatchObject({ code: "bad-option" });
    expect(session.tokens).toEqual([97, 98, 99]);
  });
});

describe("a device that is lost", () => {
  const lone = new Blob([new Uint8Array(16)]);

  it("has the files read again, without progress reports", async () => {
    const seen: unknown[] = [];
    const model = await load({ "a.safetensors": lone }, { onProgress: (progress) => seen.push(progress) });
    const before = seen.length;
    expect(await collect(model, "lost", 5)).toBe("0 1 2 3 4 ");
    expect(seen).toHaveLength(before);
    expect(log.opened).toBe(2);
  });

  it("fails a generation with the error of the files, and can be disposed", async () => {
    let isGone = false;
    const slice = lone.slice.bind(lone);
    const blob = Object.assign(new Blob([new Uint8Array(16)]), {
      slice: (...range: [number, number]) => {
        if (isGone) throw new SetunError("not-found", "the file is gone");
        return slice(...range);
      },
    });
    const model = await load({ "a.safetensors": blob });
    isGone = true;
    const failed = collect(model, "lost", 5);
    await expect(failed).rejects.toMatchObject({ code: "not-found", message: "the file is gone" });
    expect(await collect(model, "a", 3)).toBe("0 1 2 ");
    await model.dispose();
  });
});

describe("a model", () => {
  it("reports and tests its device", async () => {
    const model = await load(files);
    const [runs, gpu, ...others] = model.deviceReport().devices;
    expect(runs).toMatchObject({ device: "cpu", verdict: "chosen" });
    expect(gpu).toMatchObject({ device: "webgpu", verdict: "absent" });
    expect(others).toEqual([]);
    expect(await model.selfTest()).toMatchObject({ device: "cpu", passed: true, seconds: 0.5 });
    await model.dispose();
    await expect(model.selfTest()).rejects.toMatchObject({ code: "disposed" });
  });

  it("has metrics, and resets its prefix cache", async () => {
    const model = await load(files);
    await collect(model, "a", 6);
    expect(await model.metrics()).toMatchObject({ steps: 3, running: 0 });
    await model.resetPrefixCache();
    expect(log.freed).toEqual(["generation", "prefixes"]);
  });

  it("releases memory", async () => {
    const model = await load(files);
    expect(await model.releaseMemory("moderate")).toBe(1024);
    expect(await model.releaseMemory("critical")).toBe(2048);
    await expect(model.releaseMemory("some" as never)).rejects.toMatchObject({ code: "bad-option" });
  });

  it("scores and classifies texts", async () => {
    const model = await load(files);
    const [short, long] = await model.score("a", ["b", "cd"]);
    expect(short).toMatchObject({ logprob: -Math.LN2, tokens: [{ token: 98, text: "b" }] });
    expect(long?.tokens).toHaveLength(2);
    expect(await model.classify("a", ["b", "c"])).toMatchObject({ best: 0, probabilities: [0.5, 0.5] });
    for (const wrong of [[""], "b", [1]])
      await expect(model.score("a", wrong as never)).rejects.toMatchObject({ code: "bad-option" });
    await expect(model.classify("a", [])).rejects.toMatchObject({ code: "bad-option" });
    await expect(model.score([{ role: "user" }] as never, ["b"])).rejects.toMatchObject({
      code: "bad-option",
    });
  });

  it("tokenizes and detokenizes", async () => {
    const model = await load(files);
    const ids = await model.tokenize("né");
    expect([...ids]).toEqual([110, 233]);
    expect(await model.detokenize([...ids])).toBe("né");
  });

  it("rejects everything once disposed, and is freed after its generations", async () => {
    const model = await load(files);
    const running = model.generate("a");
    const reading = running.text();
    await model[Symbol.asyncDispose]();
    await expect(reading).rejects.toMatchObject({ code: "disposed" });
    await expect(model.tokenize("a")).rejects.toMatchObject({ code: "disposed" });
    await expect(model.generate("a").text()).rejects.toMatchObject({ code: "disposed" });
    await expect.poll(() => log.freed).toEqual(["generation", "model"]);
    await model.dispose();
  });
});
