/** Conversations in the browser's database. */

import type { Thread } from "./thread.js";

const DATABASE = "setun-page";
const TABLE = "threads";

/** Where conversations are kept. */
export interface ThreadStore {
  /** Whether they outlast the tab. */
  readonly isLasting: boolean;
  /** All, the last changed first. */
  all(): Promise<Thread[]>;
  put(thread: Thread): Promise<void>;
  remove(id: string): Promise<void>;
}

/** The browser's database; memory where there is none, as in some private windows. */
export async function openThreads(): Promise<ThreadStore> {
  try {
    return new StoredThreads(await open());
  } catch (error) {
    console.warn("setun: conversations are kept in memory only", error);
    return new ThreadsInMemory();
  }
}

class StoredThreads implements ThreadStore {
  readonly isLasting = true;
  readonly #database: IDBDatabase;

  constructor(database: IDBDatabase) {
    this.#database = database;
  }

  async all(): Promise<Thread[]> {
    const table = this.#database.transaction(TABLE).objectStore(TABLE);
    return newestFirst((await settled(table.getAll())) as Thread[]);
  }

  async put(thread: Thread): Promise<void> {
    await this.#write((table) => table.put(thread));
  }

  async remove(id: string): Promise<void> {
    await this.#write((table) => table.delete(id));
  }

  /** Resolves when the change is on the disk. */
  #write(change: (table: IDBObjectStore) => IDBRequest): Promise<void> {
    const transaction = this.#database.transaction(TABLE, "readwrite");
    change(transaction.objectStore(TABLE));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
  }
}

class ThreadsInMemory implements ThreadStore {
  readonly isLasting = false;
  readonly #threads = new Map<string, Thread>();

  async all(): Promise<Thread[]> {
    return newestFirst([...this.#threads.values()]);
  }

  async put(thread: Thread): Promise<void> {
    this.#threads.set(thread.id, structuredClone(thread));
  }

  async remove(id: string): Promise<void> {
    this.#threads.delete(id);
  }
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: "id" });
  return settled(request);
}

function settled<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function newestFirst(threads: Thread[]): Thread[] {
  return threads.sort((one, other) => other.updated - one.updated);
}
