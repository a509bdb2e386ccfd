/** Opening a model in the engine, whose format may have a module of its own. */

import { refuseTooLarge } from "./backend-fit.js";
import { SetunError } from "./errors.js";
import type { HostPlatform } from "./host-platform.js";
import type { ModelBytes } from "./model-bytes.js";
import { EXPORT, hasEnd, type ModelEntry } from "./model-layout.js";
import { OnnxFiles } from "./onnx-files.js";
import type { HeadType, WasmLoader } from "./wasm.js";
import { startWasm } from "./wasm-instance.js";

/** What of a model is read, and where it runs. */
export interface OpenedPart {
  /** Whether the headers are enough. */
  readonly headersOnly?: boolean;
  /** Whether its weights will be in WebAssembly's memory. */
  readonly onProcessor?: boolean;
  /** Maximum size of that memory. */
  readonly memoryPages?: number | undefined;
  /** How its head is kept. */
  readonly headType?: HeadType | undefined;
  /** How a GGUF file's tokenizer splits text. */
  readonly pretokenizer?: string | undefined;
}

/** Reads all but the weights. The engine's build runs, and `bytes` are started. */
export async function openLoader(
  platform: HostPlatform,
  entry: ModelEntry,
  bytes: ModelBytes,
  part: OpenedPart,
): Promise<WasmLoader> {
  const { Loader } = platform.build.glue;
  if (entry.layout === "file" && hasEnd(entry.name, ".onnx")) return openOnnx(platform, entry, bytes, part);
  try {
    return await Loader.open(entry.layout, entry.name, bytes, part.headersOnly, part.pretokenizer);
  } catch (thrown) {
    if (entry.layout !== "folder" || !isMissing(thrown) || !(await bytes.has(EXPORT))) throw thrown;
    return openOnnx(platform, { layout: "file", name: EXPORT }, bytes, part);
  }
}

/** The graph is read once. A model that is too large is refused before its weights are read. */
async function openOnnx(
  { build, onnx }: HostPlatform,
  { name }: ModelEntry,
  bytes: ModelBytes,
  { headersOnly, onProcessor, memoryPages, headType }: OpenedPart,
): Promise<WasmLoader> {
  if (onnx === undefined) throw new SetunError("backend-unavailable", "this package has no ONNX module");
  const module = await onnx();
  await startWasm(module);
  bytes.signal.throwIfAborted();
  bytes.convert((read) => new OnnxFiles(module.glue, name, read));
  const header = await build.glue.Loader.open("tensors", name, bytes, true);
  if (headersOnly) return header;
  try {
    if (onProcessor) refuseTooLarge(name, header, memoryPages, headType);
  } finally {
    header.free();
  }
  return build.glue.Loader.open("tensors", name, bytes);
}

/** Whether a folder has no weights that the engine knows. */
function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "not-found";
}
