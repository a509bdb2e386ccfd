/** The option `headType` of `load`. */

import { beforeEach, expect, it } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { type Load, loadOn } from "../src/load.js";
import { countedModel, emptyLog, type FakeOptions, fakeBuild, type Log } from "./fake-wasm.js";

const files = { "a.safetensors": new Uint8Array(16) };

/** Bytes of the weights of a model that fits without the screen of its head alone. */
const LARGE = { auto: 4.4e9, screened: 4.4e9, stored: 3.9e9, int8: 3.4e9 };

let log: Log;
beforeEach(() => {
  log = emptyLog();
});

function loadWith(options: FakeOptions = {}): Load {
  return loadOn({
    ...{ builds: ["simd128"], initialSharedPages: 0, hasWorkers: false },
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log, options), openModel: countedModel(log) }),
  });
}

it("reaches the engine", async () => {
  for (const headType of ["auto", "stored", "screened", "int8"] as const) {
    const { info } = await loadWith()(files, { headType });
    expect(log.place).toEqual({ backend: "auto", threads: 1, headType });
    expect(info.warnings).toEqual([]);
  }
  const message = 'headType: expected one of auto, stored, screened, int8, found "int4"';
  const refused = loadWith()(files, { headType: "int4" as "int8" });
  await expect(refused).rejects.toMatchObject({ code: "bad-option", message });
});

it("leaves out a screen that does not fit, with a warning", async () => {
  const { info } = await loadWith({ weights: LARGE })(files);
  expect(log.place).toEqual({ backend: "auto", threads: 1, headType: "stored" });
  expect(info.warnings).toEqual([expect.stringMatching(/^the head is kept without its screen/)]);
});

it("is what was asked for, or an error with the head that fits", async () => {
  const load = loadWith({ weights: LARGE });
  const { info } = await load(files, { headType: "int8" });
  expect(log.place).toEqual({ backend: "auto", threads: 1, headType: "int8" });
  expect(info.warnings).toEqual([]);
  await expect(load(files, { headType: "screened" })).rejects.toMatchObject({
    code: "out-of-memory",
    message: expect.stringContaining('headType: "int8" needs 3.40 GB'),
  });
});
