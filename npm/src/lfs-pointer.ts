/** Git LFS pointers: small texts that a repository has in place of large files. */

import { SetunError } from "./errors.js";
import type { ByteRange, ModelFiles } from "./model-files.js";

const BEGINNING = new TextEncoder().encode("version https://git-lfs.github.com/spec/");

/** Maximum size of a pointer. */
const MAX_BYTES = 1024;

/**
 * Refuses a file whose first bytes are those of a pointer.
 *
 * @throws {SetunError} `bad-checkpoint`
 */
export async function refusePointer(
  files: ModelFiles,
  file: string,
  range: ByteRange | undefined,
  bytes: Uint8Array,
): Promise<void> {
  if ((range?.start ?? 0) > 0 || bytes.length < 4 || !begins(bytes)) return;
  // The first read of a file is a few bytes.
  const whole = (await files.read(file, { start: 0, end: MAX_BYTES })) ?? bytes;
  if (whole.length < BEGINNING.length || !begins(whole)) return;
  const [, size] = /^size (\d+)$/m.exec(new TextDecoder().decode(whole)) ?? [];
  const where = files.where(file);
  const real = realAddress(where);
  const way = real === where ? "run `git lfs pull` where the files are" : `its address is ${real}`;
  const message = `${where}: is a Git LFS pointer in place of the file of ${size ?? "unknown"} bytes; ${way}`;
  throw new SetunError("bad-checkpoint", message);
}

function begins(bytes: Uint8Array): boolean {
  return bytes.subarray(0, BEGINNING.length).every((byte, index) => byte === BEGINNING[index]);
}

/** Address of the file itself on the servers that have others for pointers. */
function realAddress(address: string): string {
  return address
    .replace(/^(https:\/\/huggingface\.co\/.+?)\/raw\//, "$1/resolve/")
    .replace("https://raw.githubusercontent.com/", "https://media.githubusercontent.com/media/");
}
