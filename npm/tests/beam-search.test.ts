import { beforeEach, describe, expect, it } from "vitest";
import type { BeamSearchOptions } from "../src/beam-search.js";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import type { Model } from "../src/model.js";
import { countedModel, emptyLog, fakeBuild, type Log } from "./fake-wasm.js";

let log: Log;
let model: Model;

beforeEach(async () => {
  log = emptyLog();
  const load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
  model = await load({ "a.safetensors": new Uint8Array(16) });
});

describe("beam search", () => {
  it("returns its texts, the best first, and frees the search", async () => {
    expect(
      await model.beamSearch("a", {
        numBeams: 6,
        numReturnSequences: 2,
        numBeamGroups: 3,
        diversityPenalty: 0.5,
      }),
    ).toEqual([
      { text: "beam 0", tokens: [0], score: 0, finishReason: "length" },
      { text: "beam 1", tokens: [1], score: -1, finishReason: "length" },
    ]);
    expect(log.freed).toEqual(["search"]);
    expect(log.searched).toEqual({
      numBeams: 6,
      numReturnSequences: 2,
      numBeamGroups: 3,
      diversityPenalty: 0.5,
    });
    await model.beamSearch("a", { earlyStopping: "never", lengthPenalty: -1 });
    expect(log.searched).toEqual({ lengthPenalty: -1, earlyStopping: "never" });
  });

  it.each([
    { numBeams: 0 },
    { numBeams: 1025 },
    { numReturnSequences: 1.5 },
    { lengthPenalty: Number.NaN },
    { earlyStopping: "maybe" },
    { numBeamGroups: "2" },
    { diversityPenalty: -1 },
    { temperature: 0.5 },
    { minTokens: -1 },
    { nothing: 1 },
    null,
  ])("refuses %j", async (options) => {
    await expect(model.beamSearch("a", options as BeamSearchOptions)).rejects.toMatchObject({
      code: "bad-option",
    });
    expect(log.freed).toEqual([]);
  });

  it("fails with the engine's code, and the model stays usable", async () => {
    await expect(model.beamSearch("bad")).rejects.toMatchObject({ name: "SetunError", code: "context-full" });
    expect(log.freed).toEqual(["search"]);
    expect(await model.beamSearch([{ role: "user", content: "hi" }]).catch(({ code }) => code)).toBe(
      "bad-option",
    );
    expect(await model.beamSearch("a")).toHaveLength(1);
  });

  it("ends when its signal aborts and when its model is disposed", async () => {
    await expect(model.beamSearch("long", { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(log.freed).toEqual([]);
    const controller = new AbortController();
    const aborted = model.beamSearch("long", { signal: controller.signal });
    await expect.poll(() => log.searched).toBeDefined();
    controller.abort("enough");
    await expect(aborted).rejects.toBe("enough");
    await expect.poll(() => log.freed).toEqual(["search"]);
    log.searched = undefined;
    const disposed = expect(model.beamSearch("long")).rejects.toMatchObject({ code: "disposed" });
    await expect.poll(() => log.searched).toBeDefined();
    await model.dispose();
    await disposed;
    await expect.poll(() => log.freed).toEqual(["search", "search", "model"]);
  });
});
