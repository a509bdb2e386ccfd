/** The built-in model as a folder in Hugging Face's layout. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedModel } from "../../npm/test-support/checkpoint.js";
import { WEB } from "./preview.mjs";

/** Its files by name. @param {Record<string, string>} more */
export function modelFiles(more = {}) {
  return { ...embeddedModel(WEB).folder, ...more };
}

/** A folder on the disk. @param {Record<string, string>} more */
export async function modelFolder(more = {}) {
  const path = await mkdtemp(join(tmpdir(), "setun-model-"));
  for (const [name, bytes] of Object.entries(modelFiles(more))) await writeFile(join(path, name), bytes);
  return { path, remove: () => rm(path, { recursive: true }) };
}
