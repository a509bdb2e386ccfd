/** Failed loads of models, in words. */

import type { ErrorCode } from "setun";
import { explain } from "./explain.js";

const REMEDIES: Partial<Record<ErrorCode, string>> = {
  network: "Check the connection and press the button again: what has arrived is kept.",
  truncated: "Press the button again: what has arrived is kept.",
  "not-found": "Check the name or the address of the model.",
  "storage-full": "Delete a model that you no longer use, and press the button again.",
  "out-of-memory": "Close other tabs, or choose a smaller model.",
  "backend-unavailable": "Choose another device in the settings, or a smaller model.",
  "device-lost": "Choose the CPU in the settings, and press the button again.",
  busy: "Close the other tab that loads this model, or wait for it.",
};

/** A load that failed. It says what to do, which model was to be loaded, and what went wrong. */
export class LoadFailure extends Error {
  constructor(model: string, cause: unknown) {
    super(`${remedyFor(cause)} ${model} was not loaded: ${explain(cause)}`, { cause });
  }
}

/** One sentence by the error's code. */
function remedyFor(error: unknown): string {
  const code = error instanceof Error && "code" in error ? (error.code as ErrorCode) : undefined;
  return (code && REMEDIES[code]) ?? "Choose another model.";
}
