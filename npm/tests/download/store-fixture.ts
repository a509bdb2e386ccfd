/** Fixture of the download tests. */

import { createHash } from "node:crypto";
import type { CrossOriginFiles } from "../../src/cross-origin-files.js";
import { FileChangedError } from "../../src/download/errors.js";
import { openStored } from "../../src/download/open-stored.js";
import type { DownloadSettings } from "../../src/download/settings.js";
import type { HubSource } from "../../src/hub-name.js";
import type { LoadProgress, OnProgress } from "../../src/load-progress.js";
import type { FetchOptions, OpenModel } from "../../src/open-model.js";
import { addressSource, type UrlSource } from "../../src/sources.js";
import type { WithLock } from "../../src/store/storage.js";
import { MemoryStorage } from "../memory-storage.js";

/** Bytes of a chunk in these tests. */
export const CHUNK = 64 << 10;

/** Bytes without repetition, so that misplaced chunks are found. */
export function bytes(count: number, seed: number): Uint8Array<ArrayBuffer> {
  let state = Math.imul(seed, 0x9e3779b9) | 1;
  return Uint8Array.from({ length: count }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 24;
  });
}

/** The SHA-256 of bytes. */
export function digest(of: Uint8Array): string {
  return createHash("sha256").update(of).digest("hex");
}

/** A store and the loads that use it. */
export class StoreFixture {
  readonly storage = new MemoryStorage();
  settings: Partial<DownloadSettings> = {
    chunkBytes: CHUNK,
    backoff: 2,
    idleTimeout: 60_000,
    revalidationTimeout: 60_000,
  };
  fetchOptions: FetchOptions = { store: true };
  /** Files that all sites share. */
  crossOrigin: CrossOriginFiles | undefined;
  readonly progress: LoadProgress[] = [];
  /** How often a lock was asked for. */
  lockRequests = 0;
  readonly #locks = new Map<string, Promise<unknown>>();

  /** Locks like those of a browser. */
  readonly withLock: WithLock = async (model, signal, work) => {
    signal.throwIfAborted();
    this.lockRequests += 1;
    const before = this.#locks.get(model) ?? Promise.resolve();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    const result = Promise.race([before, aborted]).then(() => {
      signal.throwIfAborted();
      return work();
    });
    aborted.catch(() => undefined);
    this.#locks.set(model, Promise.allSettled([before, result]));
    return result;
  };

  /** Resolves when no lock is held. */
  async free(): Promise<void> {
    await Promise.all(this.#locks.values());
  }

  source(text: string): UrlSource | HubSource {
    return addressSource(text, "http://localhost/", this.fetchOptions);
  }

  open(text: string, signal = new AbortController().signal, onProgress?: OnProgress): Promise<OpenModel> {
    const source = this.source(text);
    const { storage, withLock, settings, crossOrigin } = this;
    const context = { storage, withLock, settings, ...(crossOrigin && { crossOrigin }) };
    return openStored(source, this.fetchOptions, context, signal, onProgress);
  }

  /** Loads a model as the host does: reads `names`, again after a change, and commits. */
  async load(text: string, names: readonly string[], signal?: AbortSignal): Promise<Uint8Array[]> {
    const onProgress: OnProgress = (progress) => this.progress.push(progress);
    const model = await this.open(text, signal, onProgress);
    model.onProgress = onProgress;
    for (;;) {
      try {
        const { files } = await model.open();
        const open = files();
        model.prefetch();
        const read: Uint8Array[] = [];
        for (const name of names) {
          const found = await open.read(name, undefined);
          if (found === undefined) throw new Error(`no ${name}`);
          read.push(found);
        }
        await model.commit();
        return read;
      } catch (thrown) {
        if (thrown instanceof FileChangedError) continue;
        await model.close();
        await this.free();
        throw thrown;
      }
    }
  }

  /** Names of all stored files, without their folders. */
  files(): string[] {
    return [...this.storage.files.keys()].map((path) => path.replace(/^.*\//, "")).sort();
  }

  /** The SHA-256 of a stored file by its name. */
  digest(name: string): string | undefined {
    const stored = this.stored(name);
    return stored && digest(stored);
  }

  /** Bytes of a stored file by its name. */
  stored(name: string): Uint8Array | undefined {
    const paths = [...this.storage.files.keys()].filter((path) => path.endsWith(`/${name}`));
    return paths.length === 1 ? this.storage.files.get(paths[0] ?? "") : undefined;
  }
}
