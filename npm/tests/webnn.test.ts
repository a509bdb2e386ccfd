/** The report of WebNN, on a stand-in for a browser that has it. */

import { afterEach, expect, it, vi } from "vitest";
import type { Connection } from "../src/connection.js";
import { Model, type ModelInfo } from "../src/model.js";
import { withWebnn } from "../src/webnn.js";

const HIDDEN = 8;

/** A token takes 4 ms, of which a product's weights are a tenth. */
const MODEL = {
  embed: async () => ({ embedding: new Float32Array(HIDDEN) }),
  generate: () => ({ result: Promise.resolve({ timings: { tokensPerSecond: 250 } }) }),
  metrics: async () => ({ memory: { layers: 100, head: 500, prefilter: 60 } }),
} as unknown as Model;

const REPORT = { devices: [{ device: "cpu", level: "relaxed", verdict: "chosen", reason: "" }] } as const;

afterEach(() => vi.unstubAllGlobals());

/** WebNN with these kinds of devices, by the numbers that each multiplies; what it was asked is in the log. */
function standIn(devices: Record<string, readonly string[]>) {
  const log = { shapes: [] as string[], bytes: [] as number[], products: 0, created: 0, destroyed: 0 };
  const createContext = async ({ deviceType }: { deviceType: string }) => {
    const dataTypes = devices[deviceType];
    if (dataTypes === undefined) throw new DOMException("no such device", "NotSupportedError");
    log.created += 1;
    return {
      opSupportLimits: () => ({ matmul: { a: { dataTypes } } }),
      createTensor: async () => ({}),
      writeTensor: (_: object, { byteLength }: ArrayBuffer) => log.bytes.push(byteLength),
      readTensor: async () => new ArrayBuffer(0),
      dispatch: () => {
        log.products += 1;
      },
      destroy: () => {
        log.destroyed += 1;
      },
    };
  };
  class MLGraphBuilder {
    input = () => ({});
    matmul = () => ({});
    build = async () => ({});
    constant(descriptor: object, { byteLength }: ArrayBuffer) {
      log.shapes.push(JSON.stringify(descriptor));
      log.bytes.push(byteLength);
      return {};
    }
  }
  vi.stubGlobal("navigator", { ml: { createContext } });
  vi.stubGlobal("MLGraphBuilder", MLGraphBuilder);
  return log;
}

it("times a product of the hidden size on each device, in the smallest floats", async () => {
  const log = standIn({ gpu: ["float32", "float16"], cpu: ["float32"] });
  const { devices } = await withWebnn(REPORT, MODEL);
  expect(devices).toMatchObject([
    { device: "cpu", verdict: "chosen", productMicroseconds: 400 },
    { device: "webnn", level: "npu", verdict: "failed", reason: "no such device" },
    { device: "webnn", level: "gpu", verdict: "unused", reason: expect.stringMatching(/8 × 8 in float16/) },
    { device: "webnn", level: "cpu", verdict: "unused", reason: expect.stringMatching(/8 × 8 in float32/) },
  ]);
  expect(devices.slice(2).every(({ productMicroseconds }) => (productMicroseconds ?? -1) >= 0)).toBe(true);
  expect(log.shapes).toEqual([
    '{"dataType":"float16","shape":[8,8]}',
    '{"dataType":"float32","shape":[8,8]}',
  ]);
  expect(log.bytes).toEqual([128, 16, 256, 32]);
  expect(log.products).toBeGreaterThan(100);
  expect(log.destroyed).toBe(log.created);
});

it("says why a device multiplies nothing, and frees it", async () => {
  const log = standIn({ npu: ["int8"] });
  const { devices } = await withWebnn(REPORT, MODEL);
  expect(devices[1]).toMatchObject({ verdict: "failed", reason: "no product of floats; there are: int8" });
  expect(log).toMatchObject({ products: 0, created: 1, destroyed: 1 });
});

it("is absent where the host has none, and nothing is looked for without the option", async () => {
  const log = standIn({ cpu: ["float32"] });
  const host = { baseUrl: () => "http://localhost/" };
  const model = new Model({} as Connection, {} as ModelInfo, REPORT, host);
  const known = model.deviceReport().devices;
  const { devices } = await model.deviceReport({ webnn: true });
  expect(devices.slice(0, -1)).toEqual(known);
  expect(devices.at(-1)).toEqual({
    device: "webnn",
    level: "",
    verdict: "absent",
    reason: "only browsers have WebNN",
  });
  expect(log.created).toBe(0);
});
