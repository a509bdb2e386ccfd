/** Detection of a model among local files. */

import { SetunError } from "./errors.js";

/** The folder or file that the checkpoint reader opens. */
export interface ModelEntry {
  readonly layout: "folder" | "file";
  /** Name of the file; of a folder the reported name of the model. */
  readonly name: string;
}

/** Maximum number of names in an error. */
const MAX_LISTED_NAMES = 8;

const CONFIG = "config.json";
const DEFAULT_WEIGHTS = ["model.safetensors", "model.safetensors.index.json"];

/**
 * Detects Hugging Face's layout, an ONNX export below it, or a single `.setun`, `.gguf`, `.safetensors` or `.onnx` file.
 * Other files in subfolders are ignored.
 *
 * @throws {SetunError} `not-found` without a model or with several; `bad-checkpoint` for a pickle.
 */
export function detectEntry(names: readonly string[], folder: string): ModelEntry {
  const topLevel = names.filter((name) => !name.includes("/") && !name.startsWith("."));
  if (topLevel.includes(CONFIG) && DEFAULT_WEIGHTS.some((name) => topLevel.includes(name))) {
    return { layout: "folder", name: folder };
  }
  if (names.includes(EXPORT)) return { layout: "file", name: EXPORT };
  for (const end of MODEL_ENDS) {
    const [first, second] = candidates(topLevel, end);
    if (first === undefined) continue;
    if (second === undefined) return { layout: "file", name: first };
    throw new SetunError("not-found", `source: found ${formatNames(topLevel)}; expected one model`);
  }
  throw missingModelError(topLevel, names);
}

/** The files with an ending; of a model in several parts the first part. */
function candidates(names: readonly string[], end: string): string[] {
  const ofEnd = names.filter((name) => hasEnd(name, end)).sort();
  const whole = ofEnd.filter((name) => partNumber(name) === undefined || partNumber(name) === 1);
  return whole.length > 0 ? whole : ofEnd.slice(0, 1);
}

function missingModelError(topLevel: readonly string[], all: readonly string[]): SetunError {
  const pickle = topLevel.find(isPickle);
  if (pickle !== undefined) return new SetunError("bad-checkpoint", `source: ${pickle} ${PICKLE_ADVICE}`);
  const found = topLevel.length > 0 ? topLevel : all;
  return new SetunError("not-found", `source: found ${formatNames(found)}; expected ${EXPECTED_MODEL}`);
}

/** Names in a message, the first ones of many. */
export function formatNames(names: readonly string[]): string {
  const more = names.length - MAX_LISTED_NAMES;
  if (names.length === 0) return "no files";
  return names.slice(0, MAX_LISTED_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** File name endings of single-file models, in order of preference. */
export const MODEL_ENDS = [".setun", ".gguf", ".safetensors", ".onnx"] as const;

/** Folder of ONNX exports, below the other files, and the one that a model without other weights has there. */
export const EXPORTS = "onnx";
export const EXPORT = `${EXPORTS}/model.onnx`;

/** Accepted models, for messages. */
export const EXPECTED_MODEL =
  "a .setun, .gguf, .safetensors or .onnx file, or a folder with config.json and model.safetensors";

/** Advice for pickles, for messages. */
export const PICKLE_ADVICE =
  "is a pickle, which can run anything when it is read; save the model as safetensors: " +
  "model.save_pretrained(folder, safe_serialization=True)";

/** Whether a file name is that of a single-file model. */
export function isModelFile(name: string): boolean {
  return MODEL_ENDS.some((end) => hasEnd(name, end));
}

/** Whether a file name is that of a pickle (`torch.save`). */
export function isPickle(name: string): boolean {
  return /\.(bin|pt|pth|ckpt)$/i.test(name);
}

/** Whether a name has an ending, ignoring case. */
export function hasEnd(name: string, end: string): boolean {
  return name.toLowerCase().endsWith(end);
}

/** Number of a part by `-00002-of-00003` in its name; `undefined` for a whole model. */
export function partNumber(name: string): number | undefined {
  const [, number] = /-(\d{1,9})-of-\d{1,9}\.[a-z]+$/i.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}
