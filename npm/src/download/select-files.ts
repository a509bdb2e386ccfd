/** Selection of a model's files in a repository, as `setun models pull` selects them. */

import { SetunError } from "../errors.js";
import type { ModelEntry } from "../model-layout.js";
import { isSafeFile } from "../store/names.js";

/** Shard index and single-file weights in Hugging Face's layout. */
export const SHARD_INDEX = "model.safetensors.index.json";
export const SINGLE_WEIGHTS = "model.safetensors";

/** Accepted files in order of preference. */
export const EXPECTED =
  "a .setun file, model.safetensors or its index and shards with config.json, or a .gguf file";

/** Small files that belong to a model in any format. */
const COMPANION_FILES = [
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "chat_template.jinja",
  "chat_template.json",
  "hadamard.json",
  "quantize_config.json",
  "quantization_config.json",
  "LICENSE",
  "LICENSE.md",
  "LICENSE.txt",
  "LICENCE",
  "NOTICE",
  "NOTICE.txt",
];

/** GGUF types with exact ternary codes, the fastest first. */
const GGUF_TYPES = ["i2_s", "tq2_0", "tq1_0", "pq2_0", "q2_0", "ptq1_0"];

/** The type of ONNX with exact ternary codes. */
const ONNX_TYPES = ["q2"];

/** The files of one model. */
export interface FileSelection {
  /** Files with weights. */
  readonly weights: readonly string[];
  /** Other files of the model. */
  readonly companions: readonly string[];
}

/**
 * Selects files by name; `requested` is the file that the caller names.
 *
 * @throws {SetunError} `not-found` without a model, `bad-option` for several.
 */
export function selectFiles(
  model: string,
  address: string,
  all: readonly string[],
  requested: string | undefined,
): FileSelection {
  const names = all.filter(isSafeFile);
  const companions = COMPANION_FILES.filter((name) => names.includes(name));
  const weights = requested === undefined ? byPreference(model, names) : byName(requested, names);
  if (weights === undefined) {
    const expected = requested === undefined ? EXPECTED : requested;
    const found = names.length === 0 ? "no file" : formatNames(names);
    throw new SetunError("not-found", `${address} has no model: looked for ${expected}, found ${found}`);
  }
  if (weights.some(isDefaultSet) && names.includes(SHARD_INDEX)) companions.push(SHARD_INDEX);
  return { weights, companions };
}

/** Selection among stored files, where a single model needs no name. */
export function selectStoredFiles(
  model: string,
  address: string,
  names: readonly string[],
  requested?: string,
): FileSelection {
  const [only, ...others] = firstParts(
    names.filter((name) => /\.(setun|safetensors|gguf|onnx)$/i.test(name)),
  );
  return selectFiles(model, address, names, requested ?? (others.length === 0 ? only : undefined));
}

/** What to open: one file, or the folder, which is reported as `name`. */
export function entryOfSelection({ weights, companions }: FileSelection, name: string): ModelEntry {
  const [first = ""] = weights;
  const isFolder = isDefaultSet(first) && companions.includes("config.json");
  return isFolder ? { layout: "folder", name } : { layout: "file", name: first };
}

function byName(requested: string, names: readonly string[]): string[] | undefined {
  return names.includes(requested) ? allParts(requested, names) : undefined;
}

function byPreference(model: string, names: readonly string[]): string[] | undefined {
  const ending = (end: string) => names.filter((name) => name.toLowerCase().endsWith(end));
  const oneOf = (found: readonly string[]) => {
    const several = firstParts(found);
    const [one] = several;
    if (several.length > 1) throw ambiguous(model, several);
    return one === undefined ? undefined : allParts(one, names);
  };
  const set = names.filter(isDefaultSet);
  const preferred = (end: string, types: readonly string[]) => {
    const found = ending(end);
    // Not the end of another type: q2_0 is not pq2_0.
    const kinds = types.map((kind) =>
      found.filter((name) => new RegExp(`(^|[^a-z0-9])${kind}`, "i").test(name)),
    );
    return oneOf(kinds.find((kind) => kind.length > 0) ?? found);
  };
  const container = oneOf(ending(".setun"));
  if (container !== undefined) return container;
  // Shards beside a single file are the same weights.
  if (set.length > 0 && names.includes("config.json"))
    return names.includes(SINGLE_WEIGHTS) ? [SINGLE_WEIGHTS] : set;
  return preferred(".gguf", GGUF_TYPES) ?? oneOf(ending(".safetensors")) ?? preferred(".onnx", ONNX_TYPES);
}

function ambiguous(model: string, files: readonly string[]): SetunError {
  const message = `source: ${model} has several models: ${files.join(", ")}; name one as "hf:${model}:FILE"`;
  return new SetunError("bad-option", message);
}

/** Whether a name is `model.safetensors` or `model-00001-of-00002.safetensors`. */
function isDefaultSet(name: string): boolean {
  return name === SINGLE_WEIGHTS || /^model-\d{5}-of-\d{5}\.safetensors$/.test(name);
}

/** Common name of the parts of a model; the name itself for other files. */
function nameWithoutPart(name: string): string {
  return name.replace(/-\d{5}(-of-\d{5}\.[^./]+)$/, "$1");
}

/** The first part of each model. */
function firstParts(names: readonly string[]): string[] {
  const firsts = new Map(
    [...names]
      .sort()
      .reverse()
      .map((name) => [nameWithoutPart(name), name]),
  );
  return [...firsts.values()].sort();
}

function allParts(name: string, names: readonly string[]): string[] {
  const parts = names.filter((other) => nameWithoutPart(other) === nameWithoutPart(name)).sort();
  // An ONNX file may have its data beside it.
  const isOnnx = name.toLowerCase().endsWith(".onnx");
  const data = isOnnx ? [`${name}_data`, `${name}.data`].filter((each) => names.includes(each)) : [];
  return [...parts, ...data];
}

/** Names for an error message. */
function formatNames(names: readonly string[]): string {
  const limit = 8;
  const rest = names.length > limit ? ` and ${names.length - limit} more` : "";
  return names.slice(0, limit).join(", ") + rest;
}
