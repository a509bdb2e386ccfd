/** First message to a thread; the worker script must answer it by `joinPool`. */
export interface ThreadMessage {
  readonly type: "setun-thread";
  /** Has the module and the memory. */
  readonly source: MessagePort;
}

/** The exports of `setun.js` that a thread needs. */
export interface ThreadGlue {
  default(options: { module_or_path: WebAssembly.Module; memory: WebAssembly.Memory }): Promise<unknown>;
  servePool(): void;
}

/** The exports of `setun.js` that start a pool. */
export interface PoolGlue {
  threadStart(): unknown[];
  setPoolWorkers(count: number): void;
}

/** Fills the pool with `count` threads: resolves once every one is ready. */
export function startPool(glue: PoolGlue, count: number): Promise<void>;

/** Makes this worker a thread of the pool that sent `message`. Does not return while the pool lives. */
export function joinPool(glue: ThreadGlue, message: ThreadMessage): Promise<void>;
