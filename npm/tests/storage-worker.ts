/** Storage contract and further cases in a browser's worker. */

import { openStorage, withLock } from "../src/store/browser-storage.js";
import { CacheStorageOfModels } from "../src/store/cache-storage.js";
import { OpfsStorage } from "../src/store/opfs.js";
import type { Storage } from "../src/store/storage.js";
import { CONTRACT } from "./storage-contract.js";

/** Task of a worker. */
export interface Task {
  readonly run: keyof typeof TASKS;
  readonly storage: "opfs" | "cache" | "own";
  /** Methods that the browser shall lack. */
  readonly lacking?: readonly string[];
  /** Whether it waits for a locked file as long as it is locked, and says when one was refused. */
  readonly waits?: boolean;
}

const SUBJECT = '{"format":1,"bytes":99,"chunk_bytes":10,"identity":null,"sha256":null}';
const LINE = '{"chunk":[0,"0000000000000000000000000000000000000000000000000000000000000000"]}';
const forever = new Promise<never>(() => undefined);

const TASKS = {
  /** Names of the failed cases, with the reasons. */
  async contract(storage: Storage): Promise<string[]> {
    const failures: string[] = [];
    for (const [name, run] of Object.entries(CONTRACT)) {
      const folder = `contract/${failures.length}-${name.replaceAll(/\W/g, "-")}`;
      await run(storage, folder).catch((thrown) => failures.push(`${name}: ${thrown}`));
    }
    await storage.remove("contract");
    return failures;
  },

  /** Holds the lock and the file until the worker ends. */
  async hold(storage: Storage): Promise<string> {
    const held = new Promise<string>((resolve) => {
      void withLock("h/o/n", new AbortController().signal, async () => {
        const part = await storage.openPartial("models/h/o/n/r/model");
        await part.clear();
        await part.appendLine(SUBJECT);
        await part.writeChunk(0, new Uint8Array(10).fill(7), LINE);
        resolve("held");
        await forever;
      });
    });
    return held;
  },

  /** Contents of the file that {@link TASKS.hold} had. */
  async take(storage: Storage): Promise<{ lines: readonly string[]; bytes: number[] }> {
    return withLock("h/o/n", new AbortController().signal, async () => {
      const part = await storage.openPartial("models/h/o/n/r/model");
      const found = { lines: part.lines, bytes: [...(await part.read(0, 99))] };
      await part.close();
      return found;
    });
  },

  /** Like `take`, without locks. */
  async takeUnlocked(storage: Storage): Promise<string> {
    const part = await storage.openPartial("models/h/o/n/r/model");
    await part.close();
    return "taken";
  },

  /** Writes until the storage is full: the error, and the previous contents. */
  async fill(storage: Storage): Promise<{ code: unknown; message: string; lines: number; chunks: number }> {
    const part = await storage.openPartial("fill/model");
    await part.appendLine('{"format":1}');
    let chunks = 0;
    try {
      for (;;) {
        await part.writeChunk(
          chunks << 20,
          new Uint8Array(1 << 20).fill(chunks),
          `{"chunk":[${chunks},"00"]}`,
        );
        chunks += 1;
        if (chunks > 200) throw new Error("there is room for 200 MiB");
      }
    } catch (thrown) {
      const { code, message } = thrown as { code: unknown; message: string };
      await part.close();
      const again = await storage.openPartial("fill/model");
      const lines = again.lines.length;
      const last = await again.read((chunks - 1) << 20, chunks << 20);
      if (last.some((byte) => byte !== chunks - 1)) throw new Error("the last chunk is not what was put");
      await again.close();
      await storage.remove("fill");
      return { code, message, lines, chunks };
    }
  },

  /** Kind of this browser's storage. */
  async kind(storage: Storage): Promise<string> {
    return storage.kind;
  },
} as const;

self.addEventListener("message", ({ data }: MessageEvent<Task>) => void answer(data));

async function answer({ run, storage, lacking = [], waits = false }: Task): Promise<void> {
  try {
    if (waits) waitForFiles();
    for (const name of lacking) Reflect.deleteProperty(FileSystemFileHandle.prototype, name);
    self.postMessage({ result: await TASKS[run](await open(storage)) });
  } catch (thrown) {
    self.postMessage({ failure: String(thrown) });
  }
}

/** Time stands still, so no wait for a file is too long. */
function waitForFiles(): void {
  performance.now = () => 0;
  const { prototype } = FileSystemFileHandle as unknown as { prototype: SyncAccess };
  const { createSyncAccessHandle } = prototype;
  prototype.createSyncAccessHandle = async function (...options) {
    try {
      return await createSyncAccessHandle.apply(this, options);
    } catch (thrown) {
      self.postMessage({ refused: true });
      throw thrown;
    }
  };
}

interface SyncAccess {
  createSyncAccessHandle(...options: unknown[]): Promise<unknown>;
}

async function open(kind: Task["storage"]): Promise<Storage> {
  if (kind === "opfs") return new OpfsStorage(await navigator.storage.getDirectory());
  if (kind === "cache") return new CacheStorageOfModels(await caches.open("setun"));
  const storage = await openStorage();
  if (storage === undefined) throw new Error("this browser keeps nothing");
  return storage;
}
