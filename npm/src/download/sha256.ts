/** SHA-256 of bytes that come piece by piece, which browsers do not offer. */

import { sha256 } from "@noble/hashes/sha2.js";

/** See the module. */
export class Hasher {
  readonly #hash = sha256.create();

  add(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** The hash in hexadecimal digits; nothing can be added after it. */
  finish(): string {
    return Array.from(this.#hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
