/** SHA-256 as 64 lower-case hexadecimal digits. */

import { sha256 as incrementalSha256 } from "@noble/hashes/sha2.js";

/** Hash of bytes in memory. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A valid digest in lower case; `undefined` for any other value. */
export function parseDigest(value: unknown): string | undefined {
  return typeof value === "string" && /^[0-9a-f]{64}$/i.test(value) ? value.toLowerCase() : undefined;
}

/** Incremental SHA-256, which browsers lack. */
export class Sha256Hasher {
  readonly #hash = incrementalSha256.create();

  add(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** The digest. No bytes can be added after it. */
  finish(): string {
    return Array.from(this.#hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
