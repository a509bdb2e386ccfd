/** Workers that share a model's weights, as a WebAssembly module and JavaScript see them. */

/** The way to the workers that share a model's weights. */
export interface WasmShards {
  readonly workers: number;
  send(worker: number, message: Uint8Array<ArrayBuffer>): void;
  /** The next answer of a worker. */
  receive(worker: number): Promise<Uint8Array>;
}

/** A worker's part of the weights. */
export interface WasmShardWorker {
  /** Takes a message of the engine, and gives the answer, if one is due. */
  handle(message: Uint8Array): Uint8Array | undefined;
  /** Why it can no longer serve. */
  failure(): string | undefined;
  free(): void;
}
