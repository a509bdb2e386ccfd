/** Cross-Origin Storage in a page of a test. */

/**
 * Gives the page `navigator.crossOriginStorage` as the explainer of the Web Incubator Community Group has it on 27 March
 * 2026 (WICG/cross-origin-storage, commit 2d2d998b): pages alone have it, handles for writing cannot be read, a file is
 * there once its bytes have the hash, and a request finds all of its files or none. Files are real ones of the origin
 * private file system. `globalThis.crossOrigin` has what was requested, and whether the user allows it.
 */
export function installCrossOriginStorage() {
  const state = { requests: /** @type {object[]} */ ([]), isAllowed: true };
  const folder = async () =>
    (await navigator.storage.getDirectory()).getDirectoryHandle("cross-origin-storage", { create: true });

  /** @param {Blob} blob */
  const digestOf = async (blob) => {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  };

  /** @param {string} hash */
  const toWrite = (hash) => ({
    kind: "file",
    name: hash,
    async getFile() {
      throw new DOMException("the handle is for writing only", "NotAllowedError");
    },
    async createWritable() {
      const handle = await (await folder()).getFileHandle(`${hash}.new`, { create: true });
      const writable = await handle.createWritable();
      return {
        write: (/** @type {Blob} */ content) => writable.write(content),
        async close() {
          await writable.close();
          const file = await handle.getFile();
          if ((await digestOf(file)) !== hash)
            throw new DOMException("the bytes have another hash", "DataError");
          await /** @type {any} */ (handle).move(hash);
        },
      };
    },
  });

  const crossOriginStorage = {
    /** @param {{ algorithm: string, value: string }[]} hashes @param {{ create?: boolean }} options */
    async requestFileHandles(hashes, { create = false } = {}) {
      for (const { algorithm, value } of hashes) {
        if (algorithm !== "SHA-256" || !/^[0-9a-f]{64}$/.test(value))
          throw new TypeError("expected a SHA-256");
      }
      const values = hashes.map(({ value }) => value);
      state.requests.push({ create, values });
      if (create) return values.map(toWrite);
      if (!state.isAllowed) throw new DOMException("the user refuses", "NotAllowedError");
      const files = await folder();
      // Without a file this rejects with a `NotFoundError`.
      return Promise.all(values.map((value) => files.getFileHandle(value)));
    },
  };
  Object.defineProperty(navigator, "crossOriginStorage", { value: crossOriginStorage });
  Object.assign(globalThis, { crossOrigin: state });
}
