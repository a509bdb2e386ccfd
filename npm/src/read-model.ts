/** Feeds the reader of checkpoints with the bytes it asks for. */

import { SetunError } from "./errors.js";
import type { LoadProgress } from "./messages.js";
import type { ModelFiles } from "./model-files.js";
import type { Want, WasmLoader } from "./wasm.js";

/** Reads until the loader has all it wants. */
export async function readModel(
  loader: WasmLoader,
  files: ModelFiles,
  onProgress: (progress: LoadProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  let loadedBytes = 0;
  for (let want = loader.want(); want !== undefined; want = loader.want()) {
    const bytes = await files.read(want.file, rangeOf(want));
    signal.throwIfAborted();
    if (bytes === undefined && want.required) {
      throw new SetunError("not-found", `${files.where(want.file)}: no such file`);
    }
    loader.give(bytes);
    if (bytes === undefined) continue;
    loadedBytes += bytes.length;
    const totalBytes = files.totalBytes();
    onProgress({ loadedBytes, file: want.file, ...(totalBytes !== undefined && { totalBytes }) });
  }
}

function rangeOf({ start, end }: Want): { start: number; end: number } | undefined {
  return start === undefined || end === undefined ? undefined : { start, end };
}
