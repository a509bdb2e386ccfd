/** WebNN's time for a product of a ternary layer: measured on request, and never used for a text. */

import type { Model } from "./model.js";
import type { DeviceReport, DeviceVerdict } from "./wasm.js";

/** Devices that a context is requested for. A browser without one of them takes another, or refuses. */
const TYPES = ["npu", "gpu", "cpu"] as const;

/** Products between two waits for the device, and how often they are timed. */
const PRODUCTS = 16;
const ROUNDS = 5;

/** Tokens from which the running device's time is estimated. */
const TOKENS = 16;

/** Bits of 1 in each type of number, the smaller type first. */
const ONES = { float16: new Uint16Array([0x3c00]), float32: new Float32Array([1]) };

type DataType = keyof typeof ONES;

/** The part of WebNN that is used; TypeScript's library has none of it. */
interface Context {
  opSupportLimits(): { readonly matmul?: { readonly a: { readonly dataTypes: readonly string[] } } };
  createTensor(
    descriptor: Descriptor & { readonly readable?: true; readonly writable?: true },
  ): Promise<object>;
  writeTensor(tensor: object, data: ArrayBuffer): void;
  readTensor(tensor: object): Promise<ArrayBuffer>;
  dispatch(graph: object, inputs: Record<string, object>, outputs: Record<string, object>): void;
  destroy?(): void;
}

interface Descriptor {
  readonly dataType: DataType;
  readonly shape: readonly number[];
}

interface GraphBuilder {
  input(name: string, descriptor: Descriptor): object;
  constant(descriptor: Descriptor, data: ArrayBuffer): object;
  matmul(a: object, b: object): object;
  build(outputs: Record<string, object>): Promise<object>;
}

interface WebNN {
  readonly navigator: { readonly ml: { createContext(options: object): Promise<Context> } };
  readonly MLGraphBuilder: new (context: Context) => GraphBuilder;
}

/** A report with an entry for each device of WebNN, and the time of the device that runs. */
export async function withWebnn(
  report: DeviceReport,
  model: Pick<Model, "embed" | "generate" | "metrics">,
): Promise<DeviceReport> {
  const { embedding } = await model.embed("a");
  const hidden = embedding.length;
  const ternary = await ternaryMicroseconds(model, hidden);
  const devices = report.devices.map((found) =>
    found.verdict === "chosen" ? { ...found, productMicroseconds: ternary } : found,
  );
  for (const type of TYPES) devices.push(await probe(type, hidden));
  return { devices };
}

/** The running device's time for a product, by its share of the weights that a token reads. */
async function ternaryMicroseconds(
  model: Pick<Model, "generate" | "metrics">,
  hidden: number,
): Promise<number> {
  const options = { temperature: 0, minTokens: TOKENS, maxTokens: TOKENS };
  const { timings } = await model.generate("a", options).result;
  const { layers, head, prefilter } = (await model.metrics()).memory;
  const bytes = (hidden * hidden) / 4;
  return ((1e6 / timings.tokensPerSecond) * bytes) / (layers + (prefilter || head));
}

/** A failure is a verdict, whatever is thrown. */
async function probe(level: (typeof TYPES)[number], hidden: number): Promise<DeviceVerdict> {
  const device = "webnn";
  const { navigator, MLGraphBuilder } = globalThis as unknown as WebNN;
  let context: Context | undefined;
  try {
    context = await navigator.ml.createContext({ deviceType: level });
    const dataType = smallestType(context);
    const product = await buildProduct(context, new MLGraphBuilder(context), dataType, hidden);
    const productMicroseconds = await medianMicroseconds(product);
    const reason = `WebNN has no ternary weights; a product of ${hidden} × ${hidden} in ${dataType} was measured`;
    return { device, level, verdict: "unused", reason, productMicroseconds };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return { device, level, verdict: "failed", reason };
  } finally {
    context?.destroy?.();
  }
}

function smallestType(context: Context): DataType {
  const supported = context.opSupportLimits().matmul?.a.dataTypes ?? [];
  const found = (Object.keys(ONES) as DataType[]).find((type) => supported.includes(type));
  if (found === undefined) throw new Error(`no product of floats; there are: ${supported.join(", ")}`);
  return found;
}

/** Dispatches products of one row by a square matrix, and waits for the last. */
async function buildProduct(
  context: Context,
  builder: GraphBuilder,
  dataType: DataType,
  hidden: number,
): Promise<(count: number) => Promise<void>> {
  const row = { dataType, shape: [1, hidden] };
  const matrix = { dataType, shape: [hidden, hidden] };
  const weights = builder.constant(matrix, ones(dataType, hidden * hidden));
  const graph = await builder.build({ y: builder.matmul(builder.input("x", row), weights) });
  const x = await context.createTensor({ ...row, writable: true });
  const y = await context.createTensor({ ...row, readable: true });
  context.writeTensor(x, ones(dataType, hidden));
  return async (count) => {
    for (let i = 0; i < count; i += 1) context.dispatch(graph, { x }, { y });
    await context.readTensor(y);
  };
}

function ones(dataType: DataType, length: number): ArrayBuffer {
  const one = ONES[dataType];
  const all = dataType === "float16" ? new Uint16Array(length) : new Float32Array(length);
  return all.fill(one[0] as number).buffer;
}

async function medianMicroseconds(product: (count: number) => Promise<void>): Promise<number> {
  await product(1);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    await product(PRODUCTS);
    times.push(((performance.now() - begun) * 1000) / PRODUCTS);
  }
  return times.sort((a, b) => a - b)[ROUNDS >> 1] as number;
}
