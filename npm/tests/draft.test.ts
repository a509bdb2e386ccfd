import { beforeEach, expect, it } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { type Load, loadOn } from "../src/load.js";
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

it("loads with its model, and both report progress", async () => {
  const seen: unknown[] = [];
  const model = await load(files, {
    speculative: { draft: files },
    onProgress: (progress) => seen.push(progress),
  });
  const file = "a.safetensors";
  expect(seen).toEqual([
    { phase: "connecting", file, loadedBytes: 0 },
    { phase: "packing", file, loadedBytes: 8, totalBytes: 16 },
    { phase: "ready", file, loadedBytes: 32, totalBytes: 32 },
  ]);
  // Those of the draft were let go of while the model's were read.
  expect(log).toMatchObject({ opened: 3, closed: 3 });
  expect(await model.generate("x", { maxTokens: 3 }).text()).toBe("0 1 2 ");
});

it("speculates for all generations without a lookahead of 0", async () => {
  const [alone, beside] = [await load(files), await load(files, { speculative: { draft: files } })];
  for (const model of [alone, beside]) {
    for (const options of [{}, { lookahead: undefined as never }, { lookahead: 3 }, { lookahead: 0 }]) {
      await model.generate("x", { maxTokens: 3, speculative: options }).text();
    }
  }
  expect(log.lookaheads).toEqual([undefined, undefined, 3, 0, undefined, undefined, 3, 0]);
});

it.each([
  [{ "a.safetensors": new Uint8Array(12) }, "truncated", "a.safetensors: too short", []],
  [{ "b.gguf": new Uint8Array(16) }, "not-found", "a.safetensors (among b.gguf): no such file", ["loader"]],
])("fails with its own error, and all files are closed: %#", async (draft, code, message, freed) => {
  await expect(load(files, { speculative: { draft: draft as never } })).rejects.toMatchObject({
    code,
    message,
  });
  expect(log.freed).toEqual(freed);
  expect(log.closed).toBe(log.opened);
});

it("ends when its model fails, with the model's error", async () => {
  const short = { "a.safetensors": new Uint8Array(12) };
  const message = "a.safetensors: too short";
  await expect(load(short, { speculative: { draft: files } })).rejects.toMatchObject({
    code: "truncated",
    message,
  });
  expect(log.opened).toBe(log.closed);
});

it("ends with its model on an abort", async () => {
  for (const turns of [1, 2, 3, 4]) {
    const controller = new AbortController();
    let left = turns;
    const blob = Object.assign(new Blob([new Uint8Array(16)]), {
      slice: (...range: [number, number]) => {
        left -= 1;
        if (left === 0) controller.abort("enough");
        return Blob.prototype.slice.apply(blob, range);
      },
    });
    const source = { "a.safetensors": blob };
    const loading = load(source, { speculative: { draft: source }, signal: controller.signal });
    await expect(loading).rejects.toBe("enough");
    // A whole load has more to do than is left of this one.
    await load(files, { speculative: { draft: files } });
    await expect.poll(() => log.opened - log.closed).toBe(0);
  }
});

it.each([
  [null, "bad-option", "speculative.draft: expected a source"],
  ["", "bad-option", "speculative.draft: expected a source"],
  [7, "bad-option", "speculative.draft: expected a URL"],
  [{}, "not-found", "speculative.draft: found no files"],
  ["https://example.org/model.bin", "bad-checkpoint", "speculative.draft: model.bin"],
  [{ "a.safetensors": 7 }, "bad-option", 'speculative.draft["a.safetensors"]'],
])("is refused by the option's name: %j", async (draft, code, message) => {
  const loading = load(files, { speculative: { draft: draft as never } });
  await expect(loading).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  expect(log.opened).toBe(0);
});

it("is read before the first wait, since dropped items become invalid", async () => {
  let looked = false;
  const look = () => {
    looked = true;
    return new File([new Uint8Array(16)], "a.safetensors");
  };
  const loading = load(files, { speculative: { draft: [{ getAsFile: look }] as never } });
  expect(looked).toBe(true);
  await loading;
});
