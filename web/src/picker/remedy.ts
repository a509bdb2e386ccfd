/** Advice after a failed download. */

import type { ErrorCode } from "setun";

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

/** One sentence by the error's code. */
export function remedyFor(error: unknown): string {
  const code = error instanceof Error && "code" in error ? (error.code as ErrorCode) : undefined;
  return (code && REMEDIES[code]) ?? "Choose another model.";
}
