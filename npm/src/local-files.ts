/** Which of some files are a model: those of a folder, or that a user dropped or chose. */

import { SetunError } from "./errors.js";
import { EXPECTED_MODEL, hasEnd, isPickle, MODEL_ENDS, PICKLE_ADVICE, partNumber } from "./model-names.js";

/** How a reader opens them. */
export interface Layout {
  readonly layout: "folder" | "file";
  /** Of a file its name, of a folder what the model is reported by. */
  readonly name: string;
}

/** Names that an error lists at most. */
const MOST_NAMES = 8;

const CONFIG = "config.json";
const DEFAULT_WEIGHTS = ["model.safetensors", "model.safetensors.index.json"];

/**
 * Says how to read the files with these names: as Hugging Face's layout, or the one `.setun`, `.gguf` or `.safetensors` file
 * among them. Files in folders below are none of the model's own.
 *
 * @throws {SetunError} `not-found` if there is no model or more than one, with what there is instead; `bad-checkpoint` for
 * a pickle.
 */
export function chooseLayout(names: readonly string[], folder: string): Layout {
  const own = names.filter((name) => !name.includes("/") && !name.startsWith("."));
  if (own.includes(CONFIG) && DEFAULT_WEIGHTS.some((name) => own.includes(name))) {
    return { layout: "folder", name: folder };
  }
  for (const end of MODEL_ENDS) {
    const [first, second] = models(own, end);
    if (first === undefined) continue;
    if (second === undefined) return { layout: "file", name: first };
    throw new SetunError("not-found", `source: it has ${listed(own)}; hand over one model of these`);
  }
  throw noModel(own, names);
}

/** The files of an ending; of one in several parts the first that there is. */
function models(names: readonly string[], end: string): string[] {
  const ofEnd = names.filter((name) => hasEnd(name, end)).sort();
  const whole = ofEnd.filter((name) => partNumber(name) === undefined || partNumber(name) === 1);
  return whole.length > 0 ? whole : ofEnd.slice(0, 1);
}

function noModel(own: readonly string[], all: readonly string[]): SetunError {
  const pickle = own.find(isPickle);
  if (pickle !== undefined) return new SetunError("bad-checkpoint", `source: ${pickle} ${PICKLE_ADVICE}`);
  if (own.some((name) => hasEnd(name, ".onnx"))) {
    return new SetunError(
      "not-found",
      `source: it has ${listed(own)}; ONNX is read by the command line, which turns it into a .setun file`,
    );
  }
  const found = own.length > 0 ? own : all;
  return new SetunError("not-found", `source: it has ${listed(found)}; expected ${EXPECTED_MODEL}`);
}

function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  if (names.length === 0) return "no files";
  return names.slice(0, MOST_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
