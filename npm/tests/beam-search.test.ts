import { beforeEach, describe, expect, it } from "vitest";
import type { BeamOptions } from "../src/beam-search.js";
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

describe("a search", () => {
  it("gives its texts, the best first, and frees what it had", async () => {
    expect(await model.beams("a", { beams: 6, best: 2, groups: 3, diversityPenalty: 0.5 })).toEqual([
      { text: "beam 0", tokens: [0], score: 0, finishReason: "length" },
      { text: "beam 1", tokens: [1], score: -1, finishReason: "length" },
    ]);
    expect(log.freed).toEqual(["search"]);
    expect(log.searched).toMatchObject({
      beams: 6,
      best: 2,
      lengthPenalty: 1,
      earlyStopping: "false",
      groups: 3,
    });
    await model.beams("a", { earlyStopping: "never", lengthPenalty: -1 });
    expect(log.searched).toEqual({
      beams: 4,
      best: 1,
      lengthPenalty: -1,
      earlyStopping: "never",
      groups: 1,
      diversityPenalty: 0,
    });
  });

  it.each([
    { beams: 0 },
    { beams: 1025 },
    { best: 1.5 },
    { lengthPenalty: Number.NaN },
    { earlyStopping: "maybe" },
    { groups: "2" },
    { diversityPenalty: -1 },
    { temperature: 0.5 },
    { minTokens: -1 },
    { nothing: 1 },
    null,
  ])("refuses %j", async (options) => {
    await expect(model.beams("a", options as BeamOptions)).rejects.toMatchObject({ code: "bad-option" });
    expect(log.freed).toEqual([]);
  });

  it("fails with the engine's code, and the model goes on", async () => {
    await expect(model.beams("bad")).rejects.toMatchObject({ name: "SetunError", code: "context-full" });
    expect(log.freed).toEqual(["search"]);
    expect(await model.beams([{ role: "user", content: "hi" }]).catch(({ code }) => code)).toBe("bad-option");
    expect(await model.beams("a")).toHaveLength(1);
  });

  it("ends with its signal, and with its model", async () => {
    await expect(model.beams("long", { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(log.freed).toEqual([]);
    const controller = new AbortController();
    const aborted = model.beams("long", { signal: controller.signal });
    setTimeout(() => controller.abort("enough"), 5);
    await expect(aborted).rejects.toBe("enough");
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(log.freed).toEqual(["search"]);
    const disposed = expect(model.beams("long")).rejects.toMatchObject({ code: "disposed" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await model.dispose();
    await disposed;
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(log.freed).toEqual(["search", "search", "model"]);
  });
});
