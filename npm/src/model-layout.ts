/** Which of some files are a model: those of a folder, or that a user dropped or chose. */

import { SetunError } from "./errors.js";

/** How a reader opens them. */
export interface ModelEntry {
  readonly layout: "folder" | "file";
  /** Of a file its name, of a folder what the model is reported by. */
  readonly name: string;
}

/** Names that an error lists at most. */
const MAX_LISTED_NAMES = 8;

const CONFIG = "config.json";
const DEFAULT_WEIGHTS = ["model.safetensors", "model.safetensors.index.json"];

/**
 * Says how to read the files with these names: as Hugging Face's layout, or the one `.setun`, `.gguf` or `.safetensors` file
 * among them. Files in folders below are none of the model's own.
 *
 * @throws {SetunError} `not-found` if there is no model or more than one, with what there is instead; `bad-checkpoint` for
 * a pickle.
 */
export function detectEntry(names: readonly string[], folder: string): ModelEntry {
  const own = names.filter((name) => !name.includes("/") && !name.startsWith("."));
  if (own.includes(CONFIG) && DEFAULT_WEIGHTS.some((name) => own.includes(name))) {
    return { layout: "folder", name: folder };
  }
  for (const end of MODEL_ENDS) {
    const [first, second] = candidates(own, end);
    if (first === undefined) continue;
    if (second === undefined) return { layout: "file", name: first };
    throw new SetunError("not-found", `source: it has ${formatNames(own)}; hand over one model of these`);
  }
  throw missingModelError(own, names);
}

/** The files of an ending; of one in several parts the first that there is. */
function candidates(names: readonly string[], end: string): string[] {
  const ofEnd = names.filter((name) => hasEnd(name, end)).sort();
  const whole = ofEnd.filter((name) => partNumber(name) === undefined || partNumber(name) === 1);
  return whole.length > 0 ? whole : ofEnd.slice(0, 1);
}

function missingModelError(own: readonly string[], all: readonly string[]): SetunError {
  const pickle = own.find(isPickle);
  if (pickle !== undefined) return new SetunError("bad-checkpoint", `source: ${pickle} ${PICKLE_ADVICE}`);
  if (own.some((name) => hasEnd(name, ".onnx"))) {
    return new SetunError(
      "not-found",
      `source: it has ${formatNames(own)}; ONNX is read by the command line, which turns it into a .setun file`,
    );
  }
  const found = own.length > 0 ? own : all;
  return new SetunError("not-found", `source: it has ${formatNames(found)}; expected ${EXPECTED_MODEL}`);
}

function formatNames(names: readonly string[]): string {
  const more = names.length - MAX_LISTED_NAMES;
  if (names.length === 0) return "no files";
  return names.slice(0, MAX_LISTED_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Ends of the names of files that are a model by themselves, the best first. */
export const MODEL_ENDS = [".setun", ".gguf", ".safetensors"] as const;

/** What a model may be, in words. */
export const EXPECTED_MODEL =
  "a .setun, .gguf or .safetensors file, or a folder with config.json and model.safetensors";

/** What to do about a pickle, behind its name. */
export const PICKLE_ADVICE =
  "is a pickle, which can run anything when it is read; save the model as safetensors: " +
  "model.save_pretrained(folder, safe_serialization=True)";

/** True for the name of a file that is a model by itself. */
export function isModelFile(name: string): boolean {
  return MODEL_ENDS.some((end) => hasEnd(name, end));
}

/** True for the name of a file as `torch.save` writes it. */
export function isPickle(name: string): boolean {
  return /\.(bin|pt|pth|ckpt)$/i.test(name);
}

/** Whether a name ends so, in letters of any size. */
export function hasEnd(name: string, end: string): boolean {
  return name.toLowerCase().endsWith(end);
}

/** Which part of a model in several files this is, by `-00002-of-00003` before the ending; nothing of a whole one. */
export function partNumber(name: string): number | undefined {
  const [, number] = /-(\d{1,9})-of-\d{1,9}\.[a-z]+$/i.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}
