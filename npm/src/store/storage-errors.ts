/** Translation of storage errors to {@link SetunError}. */

import { remedy } from "../environment.js";
import { SetunError } from "../errors.js";
import { storageFull } from "./quota.js";

/** Names of errors of a full storage. */
const FULL = ["QuotaExceededError", "NS_ERROR_FILE_NO_DEVICE_SPACE"];

/** Name of an error, which distinguishes browser errors. */
export function nameOf(thrown: unknown): string {
  return thrown instanceof Error || thrown instanceof DOMException ? thrown.name : "";
}

/** Whether the file or folder does not exist. */
export function isMissing(thrown: unknown): boolean {
  return ["NotFoundError", "TypeMismatchError"].includes(nameOf(thrown));
}

/** Runs `work` on `path` and translates its errors; `doing` is the verb, such as `write`. */
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
    const message = `the browser's storage cannot ${doing} ${path}: ${reason}; ${remedy("storage")}`;
    throw new SetunError("io", message, { cause: thrown });
  }
}
