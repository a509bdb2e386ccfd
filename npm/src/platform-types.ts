/**
 * Types of the platform, for a consumer whose TypeScript may know them or not.
 *
 * `scripts/declarations.js` imports them into the published declarations. A name is the global type where a library
 * declares it, as those of the DOM, of workers and of Node do. Elsewhere it is the part that this package needs, or
 * `never` for what only a page has.
 */

/** The instances of a global class, or else `Fallback`. */
type Instance<Name extends string, Fallback> = typeof globalThis extends {
  readonly [Each in Name]: { readonly prototype: infer Found };
}
  ? Found
  : Fallback;

interface OwnSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

interface OwnBlob {
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  slice(start?: number, end?: number, type?: string): OwnBlob;
}

interface OwnReader<Value> {
  read(): Promise<{ done: false; value: Value } | { done: true; value: undefined }>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
}

interface OwnStream<Value> extends AsyncIterable<Value> {
  readonly locked: boolean;
  cancel(reason?: unknown): Promise<void>;
  getReader(): OwnReader<Value>;
  pipeThrough<Next>(transform: { readable: OwnStream<Next>; writable: unknown }): OwnStream<Next>;
}

interface OwnEvent {
  readonly type: string;
}

interface OwnEventTarget {
  addEventListener(type: string, listener: ((event: OwnEvent) => void) | null): void;
  removeEventListener(type: string, listener: ((event: OwnEvent) => void) | null): void;
  dispatchEvent(event: OwnEvent): boolean;
}

export type AbortSignal = Instance<"AbortSignal", OwnSignal>;
export type AbortController = Instance<
  "AbortController",
  { readonly signal: AbortSignal; abort(reason?: unknown): void }
>;
export type Blob = Instance<"Blob", OwnBlob>;
export type DOMException = Instance<"DOMException", Error & { readonly code: number }>;
export type Event = Instance<"Event", OwnEvent>;
export type EventTarget = Instance<"EventTarget", OwnEventTarget>;
export type Response = Instance<"Response", { readonly status: number }>;
export type URL = Instance<"URL", { readonly href: string; toString(): string }>;

export type DataTransferItem = Instance<"DataTransferItem", never>;
export type DataTransferItemList = Instance<"DataTransferItemList", never>;
export type File = Instance<"File", never>;
export type FileSystemDirectoryHandle = Instance<"FileSystemDirectoryHandle", never>;
export type FileSystemEntry = Instance<"FileSystemEntry", never>;
export type FileSystemFileHandle = Instance<"FileSystemFileHandle", never>;
export type MessageEvent = Instance<"MessageEvent", never>;
export type ServiceWorkerRegistration = Instance<"ServiceWorkerRegistration", never>;

/** Those of WebAssembly, which is a namespace. */
type InstanceOfWasm<Name extends string> = typeof globalThis extends {
  readonly WebAssembly: { readonly [Each in Name]: { readonly prototype: infer Found } };
}
  ? Found
  : never;

export type WebAssemblyMemory = InstanceOfWasm<"Memory">;
export type WebAssemblyModule = InstanceOfWasm<"Module">;

/** Base classes. */
export declare const EventTarget: new () => EventTarget;
export declare const DOMException: new (message?: string, name?: string) => DOMException;

/** A stream of the platform. Of a generic class only a method says what it is with another parameter. */
declare const stream: Instance<"ReadableStream", OwnStream<unknown>>;
export type ReadableStream<Value> = ReturnType<typeof stream.pipeThrough<Value>>;

/** Arrays in memory of their own: generic since TypeScript 5.7. */
export type OwnArray<Constructor extends { of(...items: number[]): unknown }> = ReturnType<Constructor["of"]>;

/** What `await using` calls, where TypeScript knows it. */
export type AsyncDisposable = SymbolConstructor extends { readonly asyncDispose: infer Key extends symbol }
  ? { [Each in Key]: () => Promise<void> }
  : object;
