/** What a browser's storage throws, in setun's words. */

import { SetunError } from "../errors.js";
import { storageFull } from "./quota.js";

/** How browsers say that there is no more room. */
const FULL = ["QuotaExceededError", "NS_ERROR_FILE_NO_DEVICE_SPACE"];

/** The name of an error, which tells the kinds of a browser's errors apart. */
export function nameOf(thrown: unknown): string {
  return thrown instanceof Error || thrown instanceof DOMException ? thrown.name : "";
}

/** True if there is no such file or folder. */
export function isMissing(thrown: unknown): boolean {
  return ["NotFoundError", "TypeMismatchError"].includes(nameOf(thrown));
}

/** Runs what may fail on `path`; `doing` is what it does, such as `write`. */
export async function translateErrors<Result>(
  doing: string,
  path: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof SetunError) throw thrown;
    if (FULL.includes(nameOf(thrown))) throw storageFull(path, `it refused to ${doing} it`, thrown);
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    const message = `the browser's storage cannot ${doing} ${path}: ${reason}; load with \`store: false\``;
    throw new SetunError("network", message, { cause: thrown });
  }
}
