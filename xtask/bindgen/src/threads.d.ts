/** First message to a thread; the worker script must answer it by `joinPool`. */
export interface ThreadMessage {
  readonly type: "setun-thread";
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly receiver: number;
}

/** The exports of `setun.js` that a thread needs. */
export interface ThreadGlue {
  default(options: { module_or_path: WebAssembly.Module; memory: WebAssembly.Memory }): Promise<unknown>;
  wbg_rayon_start_worker(receiver: number): void;
}

/** Makes this worker a thread of the pool that sent `message`. Does not return while the pool lives. */
export function joinPool(glue: ThreadGlue, message: ThreadMessage): Promise<void>;
